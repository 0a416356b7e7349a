// Streams of attachments that break off, lie, trickle or are refused: what came is kept, what did
// not is asked for again, alone if need be, and nothing wrong is stored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { bytesOf } from './support/couch/http.mjs';
import { observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);
const STREAM = { path: /attachments=true/ };
const PIECE = { method: 'GET', path: /\/db\/note-\d+\/a\?rev=/ };

/** @param {number} count @param {number} [size] */
const filed = (count, size = 500) => notes(count).map((doc, at) => ({ ...doc, _attachments: { a: {
  content_type: at % 3 ? 'image/png' : 'text/plain', data: Buffer.from(`${at} `.repeat(size)).subarray(0, size).toString('base64'),
} } }));

/** A stream whose bytes are changed. @param {(bytes: Buffer) => Buffer} change @returns {import('./support/couch/faults.mjs').Action} */
const changed = (change, name = 'changed bytes') => ({ name, after: (answer) => ({ ...answer, body: change(bytesOf(answer.body ?? '')) }) });

/** @param {Buffer} bytes @param {string} what @param {number} which of several @param {(at: number) => number} from */
function place(bytes, what, which, from = (at) => at) {
  let at = -1;
  for (let left = which; left >= 0; left -= 1) at = bytes.indexOf(what, at + 1);
  return from(at);
}

/** @param {Buffer} bytes @param {number} at */
function flip(bytes, at) {
  const copy = Buffer.from(bytes);
  copy[at] ^= 1;
  return copy;
}

/** @type {[what: string, action: any, pieces: number][]} how many documents then come in pieces */
const broken = [
  ['cut in the middle of a document', faults.truncate(6000), 1],
  ['cut inside its first', faults.truncate(300), 1],
  ['whose connection is lost', faults.truncate(6000, { reset: true }), 0],
  ['without its end', changed((bytes) => bytes.subarray(0, -8)), 0],
  ['with a header that is none', changed((bytes) => Buffer.from(bytes.toString('latin1').replace(/(.*)Content-Length: 500\r\n/s, '$1Content-Length: many\r\n'), 'latin1')), 1],
  ['with a length that does not lead to a delimiter', changed((bytes) => Buffer.from(bytes.toString('latin1').replace(/(.*)Content-Length: 500/s, '$1Content-Length: 499'), 'latin1')), 1],
  ['with a document that is no JSON', changed((bytes) => Buffer.from(bytes.toString('latin1').replace('{"_id":"note-00007"', '{_id:"note-00007"'), 'latin1')), 1],
  ['with an attachment that is not named', changed((bytes) => Buffer.from(bytes.toString('latin1').replace('"_attachments":{"a":', '"_attachmentz":{"a":'), 'latin1')), 1],
  ['with one document less', changed((bytes) => {
    const parts = bytes.toString('latin1').split(/(?=\r\n------?[0-9a-f]{32}\r\nX-Doc-Id)/);
    return Buffer.from([...parts.slice(0, 3), ...parts.slice(4)].join(''), 'latin1');
  }), 0],
  ['whose plain bytes are others', changed((bytes) => flip(bytes, place(bytes, 'Content-Type: image/png\r\nContent-Length: 500\r\n\r\n', 2, (at) => at + 60))), 1],
  ['whose compressed bytes are others', changed((bytes) => flip(bytes, place(bytes, 'Content-Encoding: gzip\r\n\r\n', 1, (at) => at + 40))), 1],
  ['that is a proxy\'s page', faults.html(200), 0],
  ['that is an error for once', faults.status(500), 0],
];

for (const [what, action, pieces] of broken) {
  test(`a stream ${what}`, async (t) => {
    const { couch, database, url } = await scene(t, { docs: filed(20) });
    const db = local(t, fast);
    const fault = couch.faults.add({ when: STREAM, action });
    const seen = await observe(db.replicate.from(url)).ended;
    assert.equal(seen.error, undefined);
    assert.equal(fault.hits, 1);
    compare(serverSnapshot(database), await snapshot(db));
    assert.equal(couch.count(/GET \/db\/note-\d+\/a\?rev=/), pieces, 'requests for single attachments');
  });
}

test('what is left of a broken stream is not waited for', async (t) => {
  const { couch, database, url } = await scene(t, { docs: filed(20) });
  const db = local(t, fast);
  let ended = false;
  couch.faults.add({ when: STREAM, action: { name: 'endless', after: (answer) => ({ ...answer, async stream(/** @type {any} */ write, /** @type {AbortSignal} */ signal) {
    const bytes = bytesOf(answer.body ?? '');
    write(flip(bytes, place(bytes, '{"_id":"note-00004"', 0)));
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    ended = true;
  } }) } });
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
  while (!ended) await sleep(5);
});

test('what a broken stream brought is not asked for again', async (t) => {
  const { couch, database, url } = await scene(t, { docs: filed(40) });
  const db = local(t, fast);
  couch.faults.add({ when: STREAM, times: 3, action: faults.truncate(12_000, { reset: true }) });
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
  const asked = couch.matching(/attachments=true/).map(({ bodyJSON }) => bodyJSON.docs.length);
  assert.equal(asked[0], 40);
  const [, ...again] = asked;
  assert.ok(again.reduce((sum, count) => sum + count, 0) < 75, `asked again: ${again}`);
});

/** @type {[what: string, prepare: (couch: any) => any][]} */
const lasting = [
  ['is too short, in a stream and alone', (couch) => {
    couch.faults.add({ when: STREAM, times: Infinity, action: changed((bytes) => flip(bytes, place(bytes, 'note-00005', 0, (at) => bytes.indexOf('\r\n\r\n5 5', at) + 10))) });
    couch.faults.add({ when: { path: /note-00005\/a/ }, times: Infinity, action: changed((bytes) => bytes.subarray(1)) });
  }],
  ['is refused', (couch) => {
    couch.faults.add({ when: STREAM, times: Infinity, action: changed((bytes) => flip(bytes, place(bytes, 'note-00005', 0, (at) => bytes.indexOf('\r\n\r\n5 5', at) + 10))) });
    couch.faults.add({ when: { path: /note-00005\/a/ }, times: Infinity, action: faults.status(403, { error: 'forbidden', reason: 'not yours' }) });
  }],
];

for (const [what, prepare] of lasting) {
  test(`an attachment that ${what}, for good: all before it is written, it is reported, and a later sync goes on`, async (t) => {
    const { couch, database, url } = await scene(t, { docs: filed(12) });
    const db = local(t, fast);
    prepare(couch);
    const seen = await observe(db.replicate.from(url)).ended;
    assert.equal(seen.error?.code, 'fast_sync_attachment', String(seen.error?.message));
    assert.match(seen.error.message, /note-00005 at 1-\w+: .*/);
    const { rows } = await db.allDocs();
    assert.deepEqual(rows.map((/** @type {any} */ { id }) => id), filed(5).map(({ _id }) => _id), 'those before it');
    couch.faults.clear();
    await db.replicate.from(url);
    compare(serverSnapshot(database), await snapshot(db));
  });
}

test('a stream that trickles is let be, one that stalls is not', async (t) => {
  const { couch, database, url } = await scene(t, { docs: filed(10) });
  const trickle = { name: 'trickle', after: (/** @type {any} */ answer) => ({ ...answer, async stream(/** @type {any} */ write) {
    const bytes = bytesOf(answer.body);
    const step = Math.ceil(bytes.length / 8);
    for (let at = 0; at < bytes.length; at += step) {
      write(bytes.subarray(at, at + step));
      await sleep(300);
    }
  } }) };
  const slow = couch.faults.add({ when: STREAM, action: trickle });
  const db = local(t, fast);
  await db.replicate.from(url, { fastSync: { stallTimeout: 1000 } });
  compare(serverSnapshot(database), await snapshot(db));
  assert.deepEqual([slow.hits, couch.count(/attachments=true/)], [1, 1], 'not given up');

  couch.clearLog();
  couch.faults.add({ when: STREAM, action: faults.hang() });
  const other = local(t, fast);
  const replication = other.replicate.from(url, { fastSync: { stallTimeout: 1000 } });
  await replication;
  compare(serverSnapshot(database), await snapshot(other));
  assert.ok(replication.fastSync.stats.retries >= 1);
});

test('the target loses what was left to it before the write', async (t) => {
  const { couch, database, url } = await scene(t);
  const big = { a: { content_type: 'image/png', data: Buffer.from('x'.repeat(9000)).toString('base64'), revpos: 1 } };
  const [one, two] = [rev(1, 'one'), rev(2, 'two')];
  const around = filed(4).map((doc, at) => replicated(doc._id, [rev(1, String(at))], { _attachments: doc._attachments }));
  database.bulkDocs([replicated('doc', [one], { _attachments: big })], { new_edits: false });
  const db = local(t, fast, { auto_compaction: true });
  await db.replicate.from(url);
  database.bulkDocs([...around, replicated('doc', [two, one], { edited: true, _attachments: big })], { new_edits: false });
  couch.clearLog();
  // Another tab edits the document without its attachment, just before the batch is written.
  const { bulkDocs } = db;
  let first = true;
  db.bulkDocs = async function (/** @type {any} */ req, /** @type {any[]} */ ...rest) {
    if (first && req.docs?.some((/** @type {any} */ doc) => doc._id === 'doc')) {
      first = false;
      await bulkDocs.call(db, { docs: [{ _id: 'doc', _rev: one, mine: true }] });
    }
    return bulkDocs.call(db, req, ...rest);
  };
  const { result, error } = await observe(db.replicate.from(url)).ended;
  assert.equal(error, undefined);
  assert.deepEqual([result.docs_written, result.doc_write_failures], [5, 0]);
  assert.equal(couch.count(/GET \/db\/doc\/a\?rev=2-/), 1, 'fetched in full');
  const stored = await db.get('doc', { rev: two, attachments: true });
  assert.equal(stored._attachments.a.data, big.a.data);
});

test('two local edits, each with its own file of the name, are not mixed up', async (t) => {
  const { couch, database, url } = await scene(t);
  const text = (/** @type {string} */ letter) => ({ content_type: 'text/plain', data: Buffer.from(letter.repeat(3000)).toString('base64') });
  const [one, two, three] = [rev(1, 'one'), rev(2, 'two'), rev(3, 'three')];
  database.bulkDocs([replicated('doc', [one], { _attachments: { a: { ...text('a'), revpos: 1 } } })], { new_edits: false });
  const db = local(t, fast);
  await db.replicate.from(url);
  database.bulkDocs([replicated('doc', [two, one], { n: 2, _attachments: { a: { ...text('a'), revpos: 1 } } })], { new_edits: false });
  // While the stream is on its way, the target's leaf gets another file of the same name and length.
  couch.faults.add({ when: STREAM, action: { name: 'meanwhile', before: async () => {
    await db.put({ _id: 'doc', _rev: one, _attachments: { a: text('b') } });
  } } });
  await db.replicate.from(url);
  database.bulkDocs([replicated('doc', [three, two, one], { n: 3, _attachments: { a: { ...text('a'), revpos: 1 } } })], { new_edits: false });
  await db.replicate.from(url);
  for (const revision of [two, three]) {
    const found = await db.get('doc', { rev: revision, attachments: true }).catch(() => null);
    if (found) assert.equal(found._attachments.a.data, text('a').data, revision);
  }
});

test('cancelled in the middle of a stream, and in the middle of pieces', async (t) => {
  for (const when of [STREAM, PIECE]) {
    const { couch, url } = await scene(t, { docs: filed(30) });
    if (when === PIECE) couch.faults.add({ when: STREAM, times: Infinity, action: faults.status(406) });
    const hung = couch.faults.add({ when, times: Infinity, action: faults.hang() });
    const db = local(t, fast);
    const replication = db.replicate.from(url);
    while (hung.hits === 0) await sleep(5);
    replication.cancel();
    const result = await replication;
    assert.equal(result.status, 'cancelled');
    // What was on its way may still arrive.
    await sleep(200);
    const asked = couch.count();
    await sleep(100);
    assert.equal(couch.count(), asked, `nothing is asked any more: ${couch.log.slice(asked).map(({ method, url: path }) => `${method} ${path}`)}`);
  }
});
