// The options of a replication mean what they mean to stock: which documents arrive, what is
// counted, where checkpoints are written, and that a second run goes on from there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alike, counter, pouchesOnce } from './support/alike.mjs';
import { counts, observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { snapshot } from './support/snapshot.mjs';

/** Notes of two kinds, a design document that tells them apart, a conflict and a deleted one. */
const docs = [
  ...notes(23).map((doc, at) => ({ ...doc, kind: at % 3 === 0 ? 'x' : 'y', at })),
  {
    _id: '_design/kinds',
    filters: {
      x: 'function (doc) { return doc.kind === "x"; }',
      asked: 'function (doc, req) { return doc.kind === req.query.kind; }',
      living: 'function (doc) { return !doc._deleted; }',
    },
    views: { y: { map: 'function (doc) { if (doc.kind === "y") emit(doc._id, 1); }' } },
  },
];

/** @param {import('./support/couch/database.mjs').Database} database */
function fill(database) {
  database.bulkDocs([
    replicated('note-00005', [rev(2, 'a'), database.leaves('note-00005')[0].rev], { kind: 'x', which: 'a' }),
    replicated('note-00005', [rev(2, 'b'), database.leaves('note-00005')[0].rev], { kind: 'y', which: 'b' }),
    replicated('note-00006', [rev(2, 'c'), database.leaves('note-00006')[0].rev], { _deleted: true }),
  ], { new_edits: false });
}

/**
 * Two runs with the same options, and a change of the server between them.
 * @param {any} options
 * @param {(stage: any) => any} [later] options of the second run
 */
const twice = (options, later = () => options) => async (/** @type {import('./support/alike.mjs').Stage} */ stage) => {
  const { db, url, database, couch } = stage;
  const chosen = () => (typeof options === 'function' ? options(stage) : structuredClone(options));
  fill(database);
  const first = await observe(db.replicate.from(url, chosen())).ended;
  assert.equal(first.error, undefined);
  database.bulkDocs(notes(3, 900).map((doc) => ({ ...doc, kind: 'x' })));
  couch.clearLog();
  const second = await observe(db.replicate.from(url, typeof options === 'function' ? chosen() : later(stage))).ended;
  assert.equal(second.error, undefined);
  return {
    first: { ...counts(first.result), last: counter(first.result.last_seq), docs: first.docs.sort() },
    second: { ...counts(second.result), last: counter(second.result.last_seq), docs: second.docs.sort() },
    beganAt: counter(couch.matching(/_changes/)[0].query.since),
    onServer: database.locals.size,
    holds: [...(await snapshot(db)).docs],
  };
};

const many = notes(17).map(({ _id }) => _id);

/** @type {[string, any, (seen: any) => void][]} */
const cases = [
  ['none', {}, ({ first, second }) => assert.deepEqual([first.docs.length, second.docs.length], [25, 3])],
  ['batch_size 1', { batch_size: 1 }, ({ first }) => assert.equal(first.docs.length, 25)],
  ['batch_size 7, batches_limit 1', { batch_size: 7, batches_limit: 1 }, ({ first }) => assert.equal(first.docs.length, 25)],
  ['doc_ids, more of them than batch_size', { doc_ids: many, batch_size: 3 }, ({ first }) => assert.equal(first.docs.length, 18)],
  ['doc_ids of which some do not exist', { doc_ids: ['nobody', 'note-00002', 'note-00003'] }, ({ first }) => assert.equal(first.docs.length, 2)],
  ['doc_ids: none', { doc_ids: [] }, () => {}],
  ['selector', { selector: { kind: 'x' }, batch_size: 3 }, ({ first }) => assert.ok(first.docs.length >= 8)],
  ['selector with operators', { selector: { at: { $gte: 10 } } }, ({ first }) => assert.equal(first.docs.length, 13)],
  ['a filter of a design document', { filter: 'kinds/x', batch_size: 4 }, ({ first }) => assert.ok(first.docs.length >= 8)],
  ['a filter that leaves deletions out', { filter: 'kinds/living' }, () => {}],
  ['a filter with query_params', { filter: 'kinds/asked', query_params: { kind: 'y' } }, ({ first }) => assert.ok(first.docs.length >= 14)],
  ['a filter by view', { filter: '_view', view: 'kinds/y' }, ({ first }) => assert.ok(first.docs.length >= 14)],
  ['query_params without a filter', { query_params: { any: 'thing' } }, ({ first }) => assert.equal(first.docs.length, 25)],
  ['style main_only', { style: 'main_only' }, ({ first }) => assert.equal(first.docs.length, 24)],
  ['heartbeat and timeout', { heartbeat: 5000, timeout: 20000 }, ({ first }) => assert.equal(first.docs.length, 25)],
  ['heartbeat false', { heartbeat: false, timeout: false }, ({ first }) => assert.equal(first.docs.length, 25)],
  ['checkpoint false', { checkpoint: false }, ({ beganAt, onServer }) => assert.deepEqual([beganAt, onServer], [0, 0])],
  ['checkpoint source', { checkpoint: 'source' }, ({ beganAt, onServer }) => assert.deepEqual([beganAt, onServer], [26, 1])],
  ['checkpoint target', { checkpoint: 'target' }, ({ beganAt, onServer }) => assert.deepEqual([beganAt, onServer], [26, 0])],
  ['since 0', { since: 0 }, ({ first }) => assert.equal(first.docs.length, 25)],
];

for (const [name, options, check] of cases) alike(`option: ${name}`, twice(options), { docs, check });

alike('option: a filter function, which runs here', twice(() => ({ filter: (/** @type {any} */ doc) => doc.kind === 'x' })), {
  docs, check({ first }) { assert.ok(first.docs.length >= 7); },
});

alike('option: a filter function with query_params', twice(() => ({
  filter: (/** @type {any} */ doc, /** @type {any} */ req) => doc.kind === req.query.kind, query_params: { kind: 'y' },
})), { docs, check({ first }) { assert.ok(first.docs.length >= 14); } });

alike('option: since a seq of the server, and "now"', async ({ db, url, database }) => {
  const before = database.updateSeq;
  database.bulkDocs(notes(4, 500));
  const first = await db.replicate.from(url, { since: before });
  const second = await db.replicate.from(url, { since: 'now' });
  const third = await db.replicate.from(url, {});
  return [first, second, third].map(({ docs_written, last_seq }) => [docs_written, counter(last_seq)]);
}, { docs: 6 });

alike('option: live with doc_ids', async ({ db, url, database }) => {
  const replication = db.replicate.from(url, { live: true, doc_ids: ['note-00001', 'late'] });
  const seen = observe(replication);
  while ((await db.info()).doc_count < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  database.bulkDocs([{ _id: 'late' }, { _id: 'other' }]);
  while ((await db.info()).doc_count < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  replication.cancel();
  await seen.ended;
  return seen.docs.sort();
}, { docs: 5, check(seen) { assert.equal(seen.length, 2); } });

alike('option: doc_ids that is no list throws at once', async ({ db, url }) => {
  try {
    db.replicate.from(url, { doc_ids: 'note-00001' });
  } catch (/** @type {any} */ error) {
    return [error.name, error.status, error.reason];
  }
  return 'nothing was thrown';
}, { check: (seen) => assert.equal(seen[1], 400) });

alike('options are not changed for the caller', async ({ db, url }) => {
  const options = Object.freeze({ batch_size: 3, doc_ids: ['b', 'a'], selector: undefined });
  const callers = { ...options };
  await db.replicate.from(url, callers);
  const { complete: _stocksOwn, ...left } = /** @type {any} */ (callers);
  return left;
}, { docs: 2 });

test('fastSync: false is stock: the same requests, and no statistics', async (t) => {
  const { stock, fast } = pouchesOnce(9);
  const seen = [];
  for (const [PouchDB, options] of [[stock, {}], [fast, { fastSync: false }]]) {
    const { couch, url } = await scene(t, { docs: 250 });
    const replication = local(t, PouchDB).replicate.from(url, options);
    assert.equal(replication.fastSync, undefined);
    const { docs_written } = await replication;
    seen.push([docs_written, couch.log.map((entry) => `${entry.method} ${entry.path.replace(/_local.*/, '_local')} ${entry.query.limit}`)]);
  }
  assert.deepEqual(seen[1], seen[0]);
});
