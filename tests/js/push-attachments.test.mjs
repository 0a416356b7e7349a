// Attachments on their way to a server: small ones inside `_bulk_docs`, large ones behind their
// document, and the same database as stock leaves in every case.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { alike, pouchesOnce, told } from './support/alike.mjs';
import { faults, startCouch } from './support/couch/index.mjs';
import { counts, observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);
const UPLOAD = { method: 'PUT', path: /new_edits=false/ };

/** Bytes of a kind that looks like parts of a multipart body. @param {number} size @param {number} seed */
const bytes = (size, seed) => Buffer.alloc(size, `--${seed}\r\n\r\n--boundary--\r\n`);
/** @param {number} size @param {number} [seed] @param {string} [type] */
const file = (size, seed = 1, type = 'image/png') => ({ content_type: type, data: bytes(size, seed).toString('base64') });

/** Documents of every kind that makes a difference. */
const every = () => [
  { _id: 'none' },
  { _id: 'small', _attachments: { 'a.txt': file(200, 2, 'text/plain'), empty: file(0) } },
  { _id: 'large', text: 'ü\ud800', _attachments: { 'b.bin': file(300_000, 3) } },
  { _id: 'many', _attachments: { z: file(90_000, 4), 10: file(90_000, 5), 9: file(90_000, 6), 'ü "q" \r\n/x+%': file(10, 7), empty: file(0) } },
  { _id: 'text', _attachments: { 'a.txt': file(400_000, 8, 'text/plain'), 'b.json': file(10, 9, 'application/json') } },
  { _id: 'a/b ü?#+', _attachments: { x: file(270_000, 10) } },
  { _id: '_design/app', views: {}, _attachments: { 'index.html': file(270_000, 11, 'text/html') } },
  { _id: '..', _attachments: { x: file(270_000, 12) } },
  replicated('forked', [rev(2, 'a'), rev(1, 'r')], { _attachments: { x: file(270_000, 13) } }),
  replicated('forked', [rev(2, 'b'), rev(1, 'r')], { _attachments: { x: file(280_000, 14) } }),
  { ...replicated('gone', [rev(2, 'c'), rev(1, 's')]), _deleted: true, _attachments: { x: file(270_000, 15) } },
].map((doc) => ('_rev' in doc ? doc : { ...doc, ...replicated(doc._id, [rev(1, doc._id)]) }));

for (const version of /** @type {const} */ ([9, 8, 7])) {
  alike(`every kind of attachment, PouchDB ${version}`, async ({ db, url, couch, database, isFast }) => {
    await db.bulkDocs(every(), { new_edits: false });
    const { result, error } = await observe(db.replicate.to(url)).ended;
    assert.equal(error, undefined);
    compare(await snapshot(db), serverSnapshot(database));
    if (isFast) {
      assert.equal(couch.matching(/new_edits=false/).length, 7, 'each large document went by itself');
      const sent = couch.matching(/_bulk_docs/).flatMap(({ bodyJSON }) => bodyJSON.docs.map((/** @type {any} */ doc) => doc._id));
      assert.deepEqual(sent.sort(), ['..', 'gone', 'none', 'small']);
    }
    return { counts: counts(result), dump: database.dump(), revpos: [...database.docs.values()].map(({ id, tree }) =>
      [id, tree.leaves().map((leaf) => leaf.value?.atts.map((att) => [att.name, att.revpos]))]).sort() };
  }, { pouch: version });
}

alike('from one server to another', async ({ t, PouchDB, couch, database, isFast }) => {
  const other = await startCouch();
  t.after(() => other.stop());
  // Stock gets no attachment of a document of that name.
  const docs = every().filter(({ _id: id }) => id !== '..');
  for (const doc of docs) database.put(doc, { new_edits: false });
  const { result } = await observe(PouchDB.replicate(couch.dbUrl('db'), other.dbUrl('db'))).ended;
  if (isFast) assert.equal(other.count(/new_edits=false/), 7);
  return { counts: counts(result), dump: other.db('db').dump() };
}, { check({ counts: { docs_written: written } }) { assert.equal(written, 10); } });

for (const [name, action] of /** @type {const} */ ([
  ['a reset before', faults.resetBefore()], ['a reset after it was written', faults.resetAfter()],
  ['503', faults.status(503)], ['a proxy\'s page', faults.html(502)],
  ['429', faults.status(429, { error: 'too_many_requests', reason: '' }, { 'Retry-After': '0.05' })],
])) {
  test(`an upload is repeated: ${name}`, { timeout: 30_000 }, async (t) => {
    const { couch, database, url } = await scene(t);
    const db = local(t, fast);
    await db.bulkDocs(every(), { new_edits: false });
    couch.faults.add({ when: UPLOAD, times: 4, action });
    const result = await db.replicate.to(url);
    assert.deepEqual([result.docs_written, result.doc_write_failures], [11, 0]);
    compare(await snapshot(db), serverSnapshot(database));
    assert.equal(parseInt(database.updateSeq, 10), 11, 'each leaf once');
  });
}

for (const status of [400, 405, 406, 415, 501]) {
  test(`a server that answers ${status} to multipart is not asked again`, { timeout: 30_000 }, async (t) => {
    const { couch, database, url } = await scene(t);
    const db = local(t, fast);
    await db.bulkDocs(every().slice(0, 3), { new_edits: false });
    couch.faults.add({ when: UPLOAD, times: Infinity, action: faults.status(status, { error: 'bad_content_type', reason: 'json only' }) });
    await db.replicate.to(url, { fastSync: { concurrency: 1 } });
    await db.bulkDocs(every().slice(3), { new_edits: false });
    await db.replicate.to(url);
    compare(await snapshot(db), serverSnapshot(database));
    assert.equal(couch.count(/new_edits=false/), 1);
  });
}

test('a server that does not say that it is CouchDB gets none', async (t) => {
  const { couch, database, url } = await scene(t);
  couch.faults.add({ when: { path: /^\/$/ }, times: Infinity, action: faults.mapJson(({ couchdb, ...rest }) => rest) });
  couch.faults.add({ when: { path: /^.db.$/ }, times: Infinity, action: faults.mapJson(({ cluster, ...rest }) => rest) });
  const db = local(t, fast);
  await db.bulkDocs(every(), { new_edits: false });
  await db.replicate.to(url);
  compare(await snapshot(db), serverSnapshot(database));
  assert.equal(couch.count(/new_edits=false/), 0);
});

alike('a refused document with a large attachment is denied', async ({ db, url, database }) => {
  database.put({ _id: '_design/check', validate_doc_update: "function (doc) { if (doc._id === 'large') throw { forbidden: 'no' }; }" });
  await db.bulkDocs(every(), { new_edits: false });
  /** @type {any[]} */
  const denied = [];
  const replication = db.replicate.to(url);
  replication.on('denied', (/** @type {any} */ { stack, ...error }) => denied.push(error));
  const { result } = await observe(replication).ended;
  return { denied, written: result.docs_written, failures: result.doc_write_failures };
}, { check({ denied, failures }) { assert.deepEqual([denied[0].id, denied[0].name, failures], ['large', 'forbidden', 1]); } });

alike('the session ends before a large attachment', async ({ db, url, couch, database }) => {
  await db.bulkDocs([every()[2]], { new_edits: false });
  const body = { error: 'unauthorized', reason: 'You are not authorized to access this db.' };
  couch.faults.add({ when: { path: /new_edits=false|_bulk_docs/ }, times: Infinity, action: faults.status(401, body) });
  const { events, error } = await observe(db.replicate.to(url)).ended;
  return { events, status: told(error).status, name: error.name, held: database.docs.size };
}, { check({ status, held }) { assert.deepEqual([status, held], [401, 0]); } });

test('a document with a small and one with a large attachment in many batches', async (t) => {
  const { database, url } = await scene(t);
  const db = local(t, fast);
  await db.bulkDocs(every(), { new_edits: false });
  await db.replicate.to(url, { batch_size: 1 });
  compare(await snapshot(db), serverSnapshot(database));
});

test('cancel in the middle of an upload', { timeout: 30_000 }, async (t) => {
  const { couch, url } = await scene(t);
  const db = local(t, fast);
  await db.bulkDocs(every(), { new_edits: false });
  couch.faults.add({ when: UPLOAD, times: Infinity, action: faults.hang() });
  const replication = db.replicate.to(url);
  while (couch.count(/new_edits=false/) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  replication.cancel();
  const result = await replication;
  assert.deepEqual([result.status, result.doc_write_failures], ['cancelled', 0]);
  while (couch.log.some(({ end }) => end === null)) await new Promise((resolve) => setTimeout(resolve, 5));
  const count = couch.count();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(couch.count(), count, 'nothing is asked any more');
});

test('a document of 50 MB of attachments needs no 400 MB of memory', { timeout: 120_000 }, async (t) => {
  const { database, url } = await scene(t);
  const folder = mkdtempSync(join(tmpdir(), 'fast-sync-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const child = fileURLToPath(new URL('./support/push-child.mjs', import.meta.url));
  const run = (/** @type {string[]} */ ...args) => new Promise((resolve, reject) => {
    execFile(process.execPath, [child, join(folder, 'db'), ...args], (error, stdout, stderr) => (error ? reject(new Error(stderr)) : resolve(stdout)));
  });
  await run('fill', '5000000', '10');
  const { written, peak } = JSON.parse(await run('fast', url));
  assert.equal(written, 1);
  assert.equal(database.docs.get('large')?.tree.leaves()[0].value?.atts.reduce((sum, { length }) => sum + length, 0), 50_000_000);
  t.diagnostic(`${Math.round(peak / 1e6)} MB at most`);
  assert.ok(peak < 400e6, `${Math.round(peak / 1e6)} MB`);
});
