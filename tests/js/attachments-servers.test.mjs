// Servers that do not stream attachments: their documents come with base64 inside, or one request
// an attachment, a few at a time and always with the revision. And what nobody should pay for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../../demo/server.mjs';
import { getDocs } from '../../dist/index.js';
import { alike, pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { filesOf } from './support/files.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { stock, fast } = pouchesOnce(9);
const STREAM = { path: /attachments=true/ };

/** @param {number} count @param {number} [each] */
const filed = (count, each = 1) => notes(count).map((doc, at) => ({ ...doc, _attachments: Object.fromEntries(
  Array.from({ length: each }, (_, n) => [`f${n}`, { content_type: n % 2 ? 'text/plain' : 'image/png', data: Buffer.from(`${at} ${n} `.repeat(20)).toString('base64') }])) }));

const conflict = [
  replicated('forked', [rev(2, 'a'), rev(1, 'f')], { _attachments: { 'p+q/ü.png': { content_type: 'image/png', data: 'AAAA' } } }),
  replicated('forked', [rev(2, 'b'), rev(1, 'f')], { _attachments: { 'p+q/ü.png': { content_type: 'image/png', data: 'BBBB' } } }),
];

/** @type {[what: string, action: any][]} */
const refusals = [
  ['406', faults.status(406, { error: 'not_acceptable', reason: 'application/json' })],
  ['406 without JSON', faults.html(406)],
  ['400', faults.status(400, { error: 'bad_request', reason: 'attachments' })],
  ['405', faults.status(405, { error: 'method_not_allowed', reason: 'no' })],
  ['415 without JSON', faults.html(415)],
  ['501', faults.status(501, { error: 'not_implemented', reason: 'no' })],
  ['a proxy\'s page, always', faults.html(200)],
  ['JSON without results, always', faults.status(200, { ok: true })],
];

for (const [what, action] of refusals) {
  test(`a server that answers a stream with ${what}`, async (t) => {
    const { couch, database, url } = await scene(t, { docs: filed(30, 2) });
    database.bulkDocs(conflict, { new_edits: false });
    const refused = couch.faults.add({ when: STREAM, times: Infinity, action });
    const db = local(t, fast);
    const remote = new fast(url);
    const replication = db.replicate.from(remote, { fastSync: { concurrency: 3 } });
    await replication;
    compare(serverSnapshot(database), await snapshot(db));
    assert.ok(refused.hits <= 4, `${refused.hits} streams`);
    assert.equal(replication.fastSync.stats.attachmentsOneByOne, true);
    const pieces = /GET \/db\/(note|forked)[^/]*\/./;
    assert.equal(couch.count(pieces), 62);
    assert.ok(couch.peak(pieces) <= 3, `${couch.peak(pieces)} at once`);
    for (const { url: path } of couch.matching(pieces)) assert.match(path, /\?rev=\d+-/);

    // Known for the next run of this handle, not for ever, and not by another.
    const known = refused.hits;
    database.bulkDocs(filed(10).map((doc) => ({ ...doc, _id: `more-${doc._id}` })));
    await db.replicate.from(remote);
    assert.equal(refused.hits, known, 'not asked again');
    couch.faults.clear();
    database.bulkDocs(filed(10).map((doc) => ({ ...doc, _id: `again-${doc._id}` })));
    couch.clearLog();
    await db.replicate.from(url);
    assert.ok(couch.count(/attachments=true/) > 0);
    compare(serverSnapshot(database), await snapshot(db));
  });
}

test('a server without _bulk_get', async (t) => {
  const { couch, database, url } = await scene(t, { docs: filed(12, 2) });
  database.bulkDocs(conflict, { new_edits: false });
  couch.faults.add({ when: { path: /_bulk_get/ }, times: Infinity, action: faults.status(404, { error: 'not_found', reason: 'missing' }) });
  const db = local(t, fast);
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
});

test('a server that answers JSON where a stream was asked for: as many requests, and the same bytes', async (t) => {
  const seen = [];
  for (const asked of ['multipart/mixed', 'application/json']) {
    const { couch, database, url } = await scene(t, { docs: [...filed(30, 2), { _id: 'empty', _attachments: { e: { content_type: 'image/png', data: '' } } }] });
    const { handle } = couch;
    couch.handle = (request, ...rest) => {
      if (/_bulk_get/.test(request.url) && request.headers.accept === 'multipart/mixed') request.headers = { ...request.headers, accept: asked };
      return handle.call(couch, request, ...rest);
    };
    const db = local(t, fast);
    await db.replicate.from(url);
    compare(serverSnapshot(database), await snapshot(db));
    seen.push([couch.count(/_bulk_get/), await filesOf(db)]);
  }
  assert.deepEqual(seen[1], seen[0]);
});

test('a server that is PouchDB\'s own', async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const url = `${server.url}files`;
  const remote = new stock(url);
  await remote.bulkDocs(/** @type {any} */ (filed(20, 2)));
  const found = [];
  for (const PouchDB of [stock, fast]) {
    const db = local(t, PouchDB);
    await db.replicate.from(url);
    const doc = await db.get('note-00003');
    await remote.put({ ...await remote.get('note-00003'), edited: PouchDB === fast });
    await db.replicate.from(url);
    assert.notEqual((await db.get('note-00003'))._rev, doc._rev);
    found.push(await filesOf(db));
  }
  const without = (/** @type {any} */ all) => ({ ...all, 'note-00003': undefined });
  assert.deepEqual(without(found[1]), without(found[0]));
  assert.equal(Object.values(found[1]['note-00003'])[0].f1.bytes, Object.values(found[0]['note-00003'])[0].f1.bytes);
});

test('a document with 300 attachments: in one stream, or a few at a time', async (t) => {
  for (const streams of [true, false]) {
    const { couch, database, url } = await scene(t, { docs: [...notes(3), { ...filed(1, 300)[0], _id: 'many' }] });
    if (!streams) couch.faults.add({ when: STREAM, times: Infinity, action: faults.status(406) });
    const db = local(t, fast);
    await db.replicate.from(url);
    compare(serverSnapshot(database), await snapshot(db));
    assert.equal(couch.count(/GET \/db\/many\//), streams ? 0 : 300);
    assert.ok(couch.peak(/GET \/db\/many\//) <= 6);
  }
});

test('an overloaded server is asked for single attachments more slowly, and nothing is asked for in vain', async (t) => {
  const { couch, database, url } = await scene(t, { docs: filed(3, 20) });
  couch.faults.add({ when: STREAM, times: Infinity, action: faults.status(406) });
  const overload = couch.faults.add({ when: { method: 'GET', path: /\/f\d+\?rev/ }, after: 10, times: 4, action: faults.status(429, undefined, { 'Retry-After': '1' }) });
  const db = local(t, fast);
  await db.replicate.from(url, { fastSync: { stallTimeout: 1000 } });
  compare(serverSnapshot(database), await snapshot(db));
  assert.equal(couch.count(/\/f\d+\?rev/), 60 + overload.hits, 'each once, but for those refused');
});

test('no more streams at once than allowed, and small documents are not held up', async (t) => {
  const big = (/** @type {number} */ at) => ({ _id: `big-${at}`, _attachments: { a: { content_type: 'image/png', data: Buffer.alloc(1_500_000, at).toString('base64') } } });
  const docs = [...Array.from({ length: 12 }, (_, at) => big(at)), ...notes(2500)];
  const { couch, database, url } = await scene(t, { docs, latency: 20 });
  const db = local(t, fast);
  couch.faults.add({ when: STREAM, times: Infinity, action: faults.delay(150) });
  await db.replicate.from(url, { fastSync: { concurrency: 4 } });
  compare(serverSnapshot(database), await snapshot(db));
  assert.ok(couch.peak(/_bulk_get/) <= 4, `${couch.peak(/_bulk_get/)} at once`);
  const [streams, plain] = [/attachments=true/, /_bulk_get\?r=1/].map((each) => couch.matching(each));
  const lastStream = Math.max(...streams.map(({ end }) => Number(end)));
  assert.ok(plain.filter(({ end }) => Number(end) < lastStream).length >= plain.length - 1, 'documents arrive while attachments do');
});

alike('a database without attachments is asked what stock asks, and no more', async ({ db, url, couch }) => {
  await db.replicate.from(url);
  return couch.log.some(({ url: path, headers }) => /attachments|att/.test(path) || /multipart/.test(String(headers.accept)));
}, { docs: 1500, check: (asked) => assert.equal(asked, false) });

test('documents without attachments cost the same beside those with', async (t) => {
  const seen = [];
  for (const extra of [[], filed(1).map((doc) => ({ ...doc, _id: 'zz' }))]) {
    const { couch, url } = await scene(t, { docs: [...notes(400), ...extra] });
    const db = local(t, fast);
    await db.replicate.from(url);
    seen.push(couch.matching(/_bulk_get/).map(({ url: path, bytesOut, bodyJSON }) => ({ path, bytesOut, asked: bodyJSON.docs.length })));
  }
  const [plain, mixed] = seen;
  const streams = mixed.filter(({ path }) => /attachments/.test(path));
  assert.deepEqual(streams.map(({ asked }) => asked), [1]);
  assert.deepEqual([plain.length, mixed.length], [plain.length, plain.length + 1]);
});

test('getDocs: what the target holds is taken from there, and is no stub', async (t) => {
  const { couch, database, url } = await scene(t);
  const files = { f: { content_type: 'text/plain', data: Buffer.from('text '.repeat(3000)).toString('base64'), revpos: 1 } };
  const [one, two] = [rev(1, 'one'), rev(2, 'two')];
  database.bulkDocs([replicated('doc', [one], { _attachments: files })], { new_edits: false });
  const db = local(t, stock);
  await db.replicate.from(url);
  database.bulkDocs([replicated('doc', [two, one], { edited: true, _attachments: files })], { new_edits: false });
  couch.clearLog();
  const { ok, docs } = await getDocs(new stock(url), db, { doc: { missing: [two] } }, {});
  assert.equal(ok, true);
  const { f } = /** @type {any} */ (docs[0])._attachments;
  assert.deepEqual([f.data.toString('base64'), f.stub, f.length], [files.f.data, undefined, undefined]);
  assert.equal(couch.count(/GET \/db\/doc\//), 0);
  await db.bulkDocs({ docs: /** @type {any[]} */ (docs), new_edits: false });
  compare(serverSnapshot(database), await snapshot(db));
});

test('getDocs: into another server', async (t) => {
  const from = await scene(t, { docs: filed(5, 2) });
  const to = await scene(t);
  const diffs = Object.fromEntries([...from.database.docs.keys()].map((id) => [id, { missing: from.database.leaves(id).map((/** @type {any} */ leaf) => leaf.rev) }]));
  const target = new stock(to.url);
  const { docs } = await getDocs(new stock(from.url), target, diffs, {});
  await target.bulkDocs({ docs: /** @type {any[]} */ (docs), new_edits: false });
  compare(serverSnapshot(from.database), serverSnapshot(to.database));
});
