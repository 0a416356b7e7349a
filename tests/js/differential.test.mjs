// Stock and the plugin over the same generated server databases: whatever happened there, and
// whatever the target held before, both leave the same database and say the same about it.
// FC_RUNS widens a run, FC_SEED repeats one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { startCouch } from './support/couch/index.mjs';
import { Histories, steps } from './support/histories.mjs';
import { counts, observe } from './support/observe.mjs';
import { local, pouches, wholly } from './support/pouches.mjs';
import { compare, serverSnapshot, snapshot, withAttachmentsOf } from './support/snapshot.mjs';

const RUNS = Number(process.env.FC_RUNS ?? 40);
const SETTINGS = {
  includeErrorInReport: true, timeout: 30_000, interruptAfterTimeLimit: 120_000, ...(process.env.FC_SEED ? { seed: Number(process.env.FC_SEED) } : {}),
};

/** A batch of one, of a few, and what the plugin and stock choose themselves. */
const batchSizes = fc.constantFrom({}, { batch_size: 1 }, { batch_size: 2 }, { batch_size: 7 }, { batch_size: 1000 });

/** What the target holds already of the server's revisions, in order. */
const held = fc.oneof(
  { weight: 2, arbitrary: fc.constant(() => false) },
  fc.nat(30).map((count) => (/** @type {number} */ at) => at < count),
  fc.integer({ min: 2, max: 4 }).map((n) => (/** @type {number} */ at) => at % n === 0),
);

const standing = fc.record({
  before: steps({ minLength: 1, maxLength: 40 }),
  own: steps({ minLength: 0, maxLength: 4 }),
  options: batchSizes,
  feedOrder: /** @type {fc.Arbitrary<any>} */ (fc.constantFrom('update', [0, 1], [1, 1, 0])),
  held,
  // Reads of one replica miss documents, as often as that.
  lag: fc.oneof(fc.constant(0), fc.nat(20)),
});

const moving = fc.record({
  standing,
  // What happens on the server before the n-th request for rows or documents is answered.
  during: fc.array(fc.record({ at: fc.nat(8), steps: steps({ minLength: 1, maxLength: 8 }), compacts: fc.boolean() }), { minLength: 1, maxLength: 4 }),
});

/**
 * A server and what was written to it.
 * @param {any} given
 * @param {(server: { couch: any, database: any, url: string, docs: any[], own: any[], histories: Histories }) => Promise<any>} use
 */
async function withServer({ before, own, held: isHeld, feedOrder, lag }, use) {
  const couch = await startCouch();
  try {
    const database = couch.db('db');
    database.feedOrder = feedOrder;
    const histories = new Histories();
    const docs = histories.write(before);
    for (const doc of docs) database.bulkDocs([doc], { new_edits: false });
    if (lag > 0) database.lag((id) => id.length % 2 === 0, { times: lag });
    const target = [...docs.filter((_doc, at) => isHeld(at)), ...new Histories(histories).write(own)];
    return await use({ couch, database, url: couch.dbUrl('db'), docs, own: target, histories });
  } finally {
    await couch.stop();
  }
}

/**
 * @param {any} PouchDB
 * @param {any[]} docs that it holds
 * @param {(db: any) => Promise<any>} use
 */
async function withTarget(PouchDB, docs, use) {
  /** @type {(() => unknown)[]} */
  const after = [];
  try {
    const db = local({ after: (fn) => after.push(fn) }, PouchDB);
    // In several batches, as earlier replications would have.
    for (let at = 0; at < docs.length; at += 10) {
      await db.bulkDocs(docs.slice(at, at + 10).map((doc) => structuredClone(doc)), { new_edits: false });
    }
    return await use(db);
  } finally {
    for (const fn of after) await fn();
  }
}

/** @param {any} db @param {any} source @param {any} options */
async function sync(db, source, options) {
  const { result, error, docs } = await observe(db.replicate.from(source, { ...options })).ended;
  assert.equal(error, undefined);
  return { result, docs };
}

/** Of a document that the target holds, stock fetches attachments without naming the revision. */
const repaired = (/** @type {any} */ stock, /** @type {any} */ server, /** @type {any[]} */ own) =>
  (own.length > 0 ? withAttachmentsOf(stock, server) : stock);

for (const [version, runs] of /** @type {const} */ ([[9, RUNS], [8, RUNS / 6], [7, RUNS / 6]])) {
  const { stock, fast } = pouches(version);
  const settings = { ...SETTINGS, numRuns: Math.ceil(runs) };
  const sourceOf = (/** @type {any} */ PouchDB, /** @type {string} */ url) =>
    (PouchDB === stock && version === 7 ? wholly(new PouchDB(url)) : url);

  test(`a database that stands still, PouchDB ${version}`, async () => {
    await fc.assert(fc.asyncProperty(standing, (given) => withServer(given, async ({ database, url, own }) => {
      const once = (/** @type {any} */ PouchDB) => withTarget(PouchDB, own, async (db) => {
        const { result, docs } = await sync(db, sourceOf(PouchDB, url), given.options);
        const found = await snapshot(db);
        const again = await sync(db, url, { ...given.options, fastSync: false });
        const moved = [again.result.docs_read, again.result.docs_written, again.result.last_seq];
        assert.deepEqual(moved, [0, 0, result.last_seq], 'a following stock sync moves nothing');
        return { counts: counts(result), docs: docs.sort(), found };
      });
      const [a, b] = [await once(stock), await once(fast)];
      const server = serverSnapshot(database);
      compare(repaired(a.found, server, own), b.found, 'stock and the plugin');
      if (own.length === 0) compare(server, b.found, 'the server and the plugin');
      assert.deepEqual([b.counts, b.docs], [a.counts, a.docs]);
    })), settings);
  });

  test(`a database that changes meanwhile, PouchDB ${version}`, async () => {
    await fc.assert(fc.asyncProperty(moving, (given) => withServer(given.standing, async ({ database, url, own, histories }) => {
      let asked = 0;
      database.onRequest = ({ url: path }) => {
        if (!/_changes|_bulk_get/.test(path)) return;
        for (const { steps: list, compacts } of given.during.filter(({ at }) => at === asked)) {
          for (const doc of histories.write(list)) database.bulkDocs([doc], { new_edits: false });
          if (compacts) database.compact();
        }
        asked += 1;
      };
      const found = await withTarget(fast, own, async (db) => {
        const { error } = await observe(db.replicate.from(url, { ...given.standing.options })).ended;
        // An attachment may be compacted away between its document and itself, as with stock.
        if (error) assert.ok(given.during.some(({ compacts }) => compacts), error);
        database.onRequest = null;
        await sync(db, url, given.standing.options);
        return snapshot(db);
      });
      // Stock comes when all is quiet.
      const oracle = await withTarget(stock, own, async (db) => {
        await sync(db, sourceOf(stock, url), {});
        return snapshot(db);
      });
      const server = serverSnapshot(database);
      compare(repaired(oracle, server, own), found, 'stock and the plugin');
      if (own.length === 0) compare(server, found, 'the server and the plugin');
    })), settings);
  });
}
