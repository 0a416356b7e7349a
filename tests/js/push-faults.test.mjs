// A server that fails in the middle of a push: every document arrives, and once; what it refuses
// is told as stock tells it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alike, pouchesOnce, told } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { counts, observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const WRITE = { path: /_bulk_docs/ };
const { fast } = pouchesOnce(9);

/**
 * A push of 600 documents, some with several leaves, after which the server holds just these.
 * @param {string} name
 * @param {(couch: import('./support/couch/index.mjs').Couch) => void} spoil
 * @param {any} [options] of the replication
 */
function survives(name, spoil, options = {}) {
  test(`every document arrives, once: ${name}`, { timeout: 60_000 }, async (t) => {
    const { couch, database, url } = await scene(t);
    const db = local(t, fast);
    await db.bulkDocs(notes(600));
    const first = await db.get('note-00000');
    await db.bulkDocs([{ ...first, _rev: '1-b0b', _revisions: { start: 1, ids: ['b0b'] } }], { new_edits: false });
    spoil(couch);
    const { result, error } = await observe(db.replicate.to(url, options)).ended;
    assert.equal(error, undefined);
    assert.deepEqual([result.docs_written, result.doc_write_failures], [601, 0]);
    compare(await snapshot(db), serverSnapshot(database));
    // Each leaf moved its document in the feed once.
    assert.ok(parseInt(database.updateSeq, 10) <= 601, `${database.updateSeq} updates`);
  });
}

for (const [name, action] of /** @type {const} */ ([
  ['a reset before the server did anything', faults.resetBefore()],
  ['a reset after the server wrote', faults.resetAfter()],
  ['an answer cut short', faults.truncate(1)],
  ['a proxy\'s page', faults.html(502)],
  ['a proxy\'s page with status 200', faults.html(200)],
  ['429 with Retry-After', faults.status(429, { error: 'too_many_requests', reason: 'slow down' }, { 'Retry-After': '0.05' })],
  ['503', faults.status(503)],
  ['500', faults.status(500)],
])) {
  survives(`${name}, every second write`, (couch) => {
    let count = 0;
    couch.faults.add({ when: (entry) => /_bulk_docs/.test(entry.url) && (count += 1) % 2 === 1, times: 6, action });
  });
}

survives('no answer', (couch) => couch.faults.add({ when: WRITE, times: 2, after: 1, action: faults.hang() }),
  { fastSync: { stallTimeout: 1000 } });
survives('all of them at once', (couch) => {
  const kinds = [faults.resetAfter(), faults.status(503), faults.resetBefore(), faults.html(502)];
  kinds.forEach((action, at) => couch.faults.add({ when: WRITE, after: at, times: 1, action }));
  couch.faults.add({ when: { path: /_revs_diff/ }, times: 2, action: faults.resetBefore() });
  couch.faults.add({ when: { method: 'PUT', path: /_local/ }, times: 0, action: faults.status(503) });
});
survives('a proxy that takes 5 kB', (couch) => { couch.limits.maxRequestSize = 5_000; });

alike('a document is too large', async ({ db, url, couch, database, isFast }) => {
  await db.bulkDocs([...notes(60), { _id: 'note-large', text: 'x'.repeat(5_000) }]);
  couch.limits.maxDocumentSize = 4_000;
  database.limits = couch.limits;
  const { events, error } = await observe(db.replicate.to(url)).ended;
  if (isFast) {
    // Stock writes none of the batch, and cannot tell which it was.
    assert.equal(database.docs.size, 60);
    assert.equal(error.result.errors[0].id, 'note-large');
    assert.equal(error.name, 'document_too_large');
  }
  return { events, status: error.status };
}, { check({ status }) { assert.equal(status, 413); } });

alike('documents that the server refuses', async ({ db, url, database }) => {
  database.put({ _id: '_design/check', validate_doc_update: `function (doc) {
    if (/3$/.test(doc._id)) throw { forbidden: 'no threes' };
    if (/4$/.test(doc._id)) throw { unauthorized: 'no fours' };
  }` });
  await db.bulkDocs(notes(120));
  /** @type {any[]} */
  const denied = [];
  const replication = db.replicate.to(url);
  replication.on('denied', (/** @type {any} */ error) => denied.push(shown(error)));
  const { events, result } = await observe(replication).ended;
  const order = (/** @type {any} */ a, /** @type {any} */ b) => (a.id < b.id ? -1 : 1);
  return {
    events: events.filter((name) => name !== 'change'), denied: denied.sort(order), counts: { ...counts(result), errors: result.errors.map(shown).sort(order) },
    held: [...database.docs.keys()].sort(),
  };
}, { check({ denied, held, counts: { doc_write_failures: failures } }) { assert.deepEqual([denied.length, failures, held.length], [24, 24, 97]); } });

/** @param {any} error */
const shown = ({ stack, ...rest }) => ({ ...rest, stack: typeof stack });

alike('a design document that refuses what comes in its own batch', async ({ db, url, database }) => {
  const check = { _id: '_design/check', validate_doc_update: "function () { throw { forbidden: 'nothing more' }; }" };
  await db.bulkDocs([check, ...notes(120)]);
  const first = await observe(db.replicate.to(url, { batch_size: 200 })).ended;
  await db.bulkDocs(notes(5, 500));
  const second = await observe(db.replicate.to(url, { batch_size: 200 })).ended;
  return { first: counts(first.result), second: second.result.doc_write_failures, held: database.docs.size };
}, { check({ first, second, held }) { assert.deepEqual([first.docs_written, second, held], [121, 5, 121]); } });

for (const [name, status, body] of /** @type {const} */ ([
  ['the session ends', 401, { error: 'unauthorized', reason: 'You are not authorized to access this db.' }],
  ['the user may not write', 403, { error: 'forbidden', reason: 'no' }],
  ['the server is broken', 500, { error: 'internal_server_error', reason: 'No DB shards could be opened.' }],
])) {
  alike(`${name} in mid-push`, async ({ db, url, couch }) => {
    await db.bulkDocs(notes(60));
    couch.faults.add({ when: WRITE, times: Infinity, action: faults.status(status, body) });
    const { events, error } = await observe(db.replicate.to(url)).ended;
    return { events, error: told(error), failures: error.result.doc_write_failures };
  }, { check({ error }) { assert.equal(error.status, status); } });
}

test('a failed push goes on where it was', async (t) => {
  const { couch, database, url } = await scene(t);
  const db = local(t, fast);
  await db.bulkDocs(notes(300));
  const broken = couch.faults.add({ when: WRITE, after: 3, times: Infinity, action: faults.status(500) });
  const failed = await observe(db.replicate.to(url, { batch_size: 50 })).ended;
  assert.equal(failed.error.status, 500);
  const held = database.docs.size;
  assert.ok(held > 0 && held < 300, `${held}`);
  broken.remove();
  couch.clearLog();
  await db.replicate.to(url, { batch_size: 50 });
  compare(await snapshot(db), serverSnapshot(database));
  const again = couch.matching(/_bulk_docs/).flatMap(({ bodyJSON }) => bodyJSON.docs);
  assert.equal(again.length, 300 - held, 'what was there was not sent again');
});

test('writes that failed are counted, and one that always hangs ends with an error', { timeout: 60_000 }, async (t) => {
  const { couch, url } = await scene(t, { docs: 0 });
  const db = local(t, fast);
  await db.bulkDocs(notes(20));
  couch.faults.add({ when: WRITE, times: 2, action: faults.status(503) });
  const passes = db.replicate.to(url);
  await passes;
  assert.equal(passes.fastSync.stats.failures, 2);
  await db.bulkDocs(notes(20, 100));
  couch.faults.add({ when: WRITE, times: Infinity, action: faults.hang() });
  await assert.rejects(db.replicate.to(url, { fastSync: { stallTimeout: 1000 } }), { code: 'fast_sync_stalled' });
});
