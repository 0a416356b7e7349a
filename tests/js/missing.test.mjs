// Revisions that a server does not give: replicas that lag behind, revisions that are gone, and
// rows with errors of another kind. One of them never stops the rest.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { checkpointLags, hurt } from './support/hurt.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { stock, fast } = pouchesOnce(9);
const DOCS = /_bulk_get/;

/** Answers other rows for some documents. @param {Record<string, (rev: string) => any[]>} instead */
const rows = (instead) => faults.mapJson((json, { bodyJSON }) => ({
  results: json.results.map((/** @type {any} */ result, /** @type {number} */ at) =>
    (instead[result.id] ? { id: result.id, docs: instead[result.id](bodyJSON.docs[at].rev) } : result)),
}));

test('a replica that lags behind: asked again with the full quorum, and only for what it missed', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 120 });
  database.lag(['note-00003', 'note-00070', 'note-00119']);
  const db = local(t, fast);
  const replication = db.replicate.from(url);
  const { docs_written } = await replication;
  assert.equal(docs_written, 120);
  compare(serverSnapshot(database), await snapshot(db));
  const again = couch.matching(DOCS).filter(({ query }) => query.latest === 'true');
  assert.deepEqual(again.flatMap(({ bodyJSON }) => bodyJSON.docs.map((/** @type {any} */ doc) => doc.id)).sort(), ['note-00003', 'note-00070', 'note-00119']);
  assert.ok(again.every(({ query }) => query.r === undefined));
  assert.equal(/** @type {any} */ (replication).fastSync.stats.gone, 0);
});

test('a replica that lags behind in every read of one', async (t) => {
  const { database, url } = await scene(t, { docs: 300 });
  database.lag(() => true);
  const db = local(t, fast);
  await db.replicate.from(url, { batch_size: 50 });
  compare(serverSnapshot(database), await snapshot(db));
});

test('a revision that was edited and compacted meanwhile: its newest leaves come instead', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 20 });
  database.bulkDocs([
    replicated('forks', [rev(1, 'f')], { n: 1 }),
  ], { new_edits: false });
  let done = false;
  database.onRequest = ({ url: path }) => {
    if (!DOCS.test(path) || done) return;
    done = true;
    database.bulkDocs([
      replicated('forks', [rev(2, 'g'), rev(1, 'f')], { n: 2 }), replicated('forks', [rev(3, 'h'), rev(2, 'h'), rev(1, 'f')], { n: 3 }),
      replicated('note-00004', [rev(2, 'i'), database.leaves('note-00004')[0].rev], { edited: true }),
    ], { new_edits: false });
    database.compact();
  };
  const db = local(t, fast);
  await db.replicate.from(url, { batch_size: 5 });
  assert.equal(done, true);
  const entry = (await snapshot(db)).docs.get('forks');
  assert.deepEqual(Object.keys(entry?.leaves ?? {}).sort(), [rev(2, 'g'), rev(3, 'h')].sort(), 'both leaves, from one entry asked for');
  assert.equal((await db.get('note-00004')).edited, true);
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
  assert.ok(couch.count(DOCS) > 0);
});

for (const [what, row] of /** @type {[string, (rev: string) => any[]][]} */ ([
  ['as CouchDB says it', (gone) => [{ error: { id: 'note-00007', rev: gone, error: 'not_found', reason: 'missing' } }]],
  ['as PouchDB\'s servers say it', (gone) => [{ missing: gone }]],
  ['as an empty object', () => [{}]],
  ['as no document at all', () => []],
])) {
  test(`a revision that is gone for good, ${what}: passed over, counted and named`, async (t) => {
    const seen = await hurt(t, fast, {
      options: { batch_size: 10 }, equalAfterwards: false,
      prepare({ couch }) { couch.faults.add({ when: { path: DOCS }, times: Infinity, action: rows({ 'note-00007': row }) }); },
    });
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 59);
    assert.equal(seen.result.last_seq, seen.database.updateSeq);
    assert.equal(seen.stats.gone, 1);
    assert.deepEqual(seen.stats.goneRevisions.map(String).length, 1);
    assert.match(JSON.stringify(seen.stats.goneRevisions), new RegExp(`note-00007.*${seen.database.leaves('note-00007')[0].rev}`));
    // It is not waited for: the rest of the feed has a checkpoint beyond it.
    seen.couch.clearLog();
    const again = await seen.db.replicate.from(seen.url);
    assert.equal(again.docs_read, 0);
  });
}

for (const [what, row, reason] of /** @type {[string, any, RegExp][]} */ ([
  ['an error of the cluster', { error: 'internal_fabric_error', reason: 'No DB shards could be opened.' }, /note-00025.*internal_fabric_error.*No DB shards/],
  ['a refusal', { error: 'forbidden', reason: 'not yours' }, /note-00025.*forbidden.*not yours/],
  ['an error that has no name', { reason: 'odd' }, /note-00025.*odd/],
])) {
  test(`a row with ${what}, for good: it fails after everything before it was written`, { timeout: 60_000 }, async (t) => {
    const seen = await hurt(t, fast, {
      options: { batch_size: 10 },
      prepare({ couch }) {
        couch.faults.add({ when: { path: DOCS }, times: Infinity, action: rows({ 'note-00025': (bad) => [{ error: { id: 'note-00025', rev: bad, ...row } }] }) });
      },
    });
    assert.equal(seen.error.code, 'fast_sync_row');
    assert.match(seen.error.message, reason);
    for (const id of seen.order.slice(0, 20)) assert.ok(seen.written.has(id), `${id} was written`);
    checkpointLags(seen);
  });

  test(`a row with ${what}, once`, async (t) => {
    const seen = await hurt(t, fast, {
      options: { batch_size: 10 },
      prepare({ couch }) {
        couch.faults.add({ when: { path: DOCS }, times: 1, action: rows({ 'note-00002': (bad) => [{ error: { id: 'note-00002', rev: bad, ...row } }] }) });
      },
    });
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 60);
  });
}

test('an answer in another order, and one that gathers what belongs to one document', async (t) => {
  for (const change of [
    (/** @type {any} */ json) => ({ results: json.results.toReversed() }),
    (/** @type {any} */ json) => ({ results: [...json.results].sort((a, b) => (a.id < b.id ? -1 : 1)) }),
  ]) {
    const seen = await hurt(t, fast, {
      docs: [...notes(30)].toReversed(),
      prepare({ couch, database }) {
        const parent = database.leaves('note-00004')[0].rev;
        database.bulkDocs(['a', 'b', 'c'].map((which) => replicated('note-00004', [rev(2, which), parent], { which })), { new_edits: false });
        couch.faults.add({ when: { path: DOCS }, times: Infinity, action: faults.mapJson(change) });
      },
    });
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 32);
  }
});

test('an answer with more results than asked for', { timeout: 60_000 }, async (t) => {
  for (const first of [false, true]) {
    const seen = await hurt(t, fast, {
      prepare({ couch }) { couch.faults.add({ when: { path: DOCS }, times: Infinity, action: faults.strangerInResults({ first }) }); },
    });
    assert.ok(!seen.written.has('stranger'), 'a stranger is never written');
    if (seen.error) assert.equal(seen.error.code, 'fast_sync_bad_shape');
    assert.equal((await seen.db.allDocs({ keys: ['stranger'] })).rows[0].error, 'not_found');
  }
});

test('a revision of generation 1 whose history was not asked for makes no conflict', async (t) => {
  const { database, url } = await scene(t, { docs: 30 });
  const [early, late] = [local(t, fast), local(t, stock)];
  for (const db of [early, late]) await db.replicate.from(url);
  for (let edit = 0; edit < 3; edit += 1) database.put({ ...database.get('note-00009'), edit });
  for (const db of [early, late]) await db.replicate.from(url);
  const [a, b] = [await snapshot(early), await snapshot(late)];
  compare(b, a);
  assert.deepEqual(a.docs.get('note-00009')?.conflicts, []);
  compare(serverSnapshot(database), a);
});

// Stock of PouchDB 7 writes the winner a second time instead, in every direction.
test('PouchDB 7: a tombstone of generation 1, where the target holds the winner beside it', async (t) => {
  const { fast: PouchDB } = pouchesOnce(7);
  const [tombstone, winner] = [replicated('both', [rev(1, 'a')], { _deleted: true }), replicated('both', [rev(1, 'b')], { text: 'kept' })];
  const { couch, database, url } = await scene(t);
  const db = local(t, PouchDB);
  const [pushed, copied] = [couch.db('pushed'), couch.db('copied')];
  database.bulkDocs([tombstone, winner], { new_edits: false });
  for (const target of [pushed, copied]) target.bulkDocs([winner], { new_edits: false });
  await db.bulkDocs([winner], { new_edits: false });
  const written = [
    await db.replicate.from(url), await db.replicate.to(couch.dbUrl('pushed')), await PouchDB.replicate(url, couch.dbUrl('copied')),
  ].map((result) => result.docs_written);
  assert.deepEqual(written, [1, 1, 1]);
  for (const found of [await snapshot(db), serverSnapshot(pushed), serverSnapshot(copied)]) compare(serverSnapshot(database), found);
});
