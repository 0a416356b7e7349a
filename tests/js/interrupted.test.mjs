// The world ends after any request, or at any write of the target: nothing that the checkpoint
// claims is lost, and stock or the plugin goes on from there to the same database.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { decodeSeq } from './support/couch/seq.mjs';
import { observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);
const OPTIONS = { batch_size: 8 };

/** @param {import('node:test').TestContext} t */
async function filled(t) {
  const docs = /** @type {any[]} */ (notes(36));
  docs[5]._attachments = docs[30]._attachments = { a: { content_type: 'text/plain', data: 'aGVsbG8=' } };
  const stage = await scene(t, { docs });
  stage.database.bulkDocs([
    replicated('forked', [rev(2, 'a'), rev(1, 'f')], { which: 'a' }), replicated('forked', [rev(2, 'b'), rev(1, 'f')], { which: 'b' }),
    replicated('note-00002', [rev(2, 'd'), stage.database.leaves('note-00002')[0].rev], { _deleted: true }),
  ], { new_edits: false });
  return stage;
}

/**
 * What the two checkpoints claim is there.
 * @param {any} db
 * @param {any} database
 */
async function claimed(db, database) {
  const [id, stored] = [...database.locals][0] ?? [];
  const local = id ? await db.get(id).catch(() => ({})) : {};
  for (const { last_seq: seq } of [stored?.body ?? {}, local]) {
    if (typeof seq !== 'string') continue;
    const read = decodeSeq(seq, database.uuid, database.seqs.length);
    const before = [...database.docs.values()].filter((doc) => doc.seq <= read[doc.shard]);
    const leaves = Object.fromEntries(before.map((doc) => [doc.id, database.leaves(doc.id).map((/** @type {any} */ leaf) => leaf.rev)]));
    assert.deepEqual(await db.revsDiff(leaves), {}, `all up to ${seq} is there`);
  }
}

test('after any request', { timeout: 120_000 }, async (t) => {
  const { couch, url } = await filled(t);
  await local(t, fast).replicate.from(url, { ...OPTIONS });
  const total = couch.log.length;
  const turns = Array.from({ length: total }, (_, at) => at);
  // Some at once: a dead server is tried again for some seconds.
  const lane = async () => {
    for (let at = turns.shift(); at !== undefined; at = turns.shift()) {
      const after = at;
      await t.test(`after ${after} requests`, async (t) => {
        const { couch, database, url } = await filled(t);
        const db = local(t, fast);
        // Refused for good, so that nothing waits: the last ones are lost after they were handled.
        couch.faults.add({ when: { path: /./ }, after, times: 2, action: faults.resetAfter() });
        couch.faults.add({ when: { path: /./ }, times: Infinity, after, action: faults.status(400) });
        await observe(db.replicate.from(url, { ...OPTIONS })).ended;
        couch.faults.clear();
        await claimed(db, database);
        await db.replicate.from(url, { ...OPTIONS, fastSync: after % 2 === 0 ? false : undefined });
        compare(serverSnapshot(database), await snapshot(db));
      });
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
});

test('at any write of the target', { timeout: 120_000 }, async (t) => {
  for (const name of ['bulkDocs', 'put']) {
    for (let failing = 1; failing <= 5; failing += 1) {
      await t.test(`${name} number ${failing}`, async (t) => {
        const { database, url } = await filled(t);
        const db = local(t, fast);
        const original = db[name];
        let calls = 0;
        db[name] = (/** @type {any[]} */ ...args) => {
          calls += 1;
          return calls === failing ? Promise.reject(new Error('disk full')) : original.apply(db, args);
        };
        const { error } = await observe(db.replicate.from(url, { ...OPTIONS })).ended;
        assert.equal(error?.message, 'disk full');
        await claimed(db, database);
        db[name] = original;
        await db.replicate.from(url, { ...OPTIONS, fastSync: failing % 2 === 0 ? false : undefined });
        compare(serverSnapshot(database), await snapshot(db));
      });
    }
  }
});

test('cancelled at any moment', { timeout: 120_000 }, async (t) => {
  const { couch, database, url } = await filled(t);
  couch.latency = 4;
  for (let ms = 0; ms < 120; ms += 6) {
    database.locals.clear(); // those of the targets before
    const db = local(t, fast);
    const replication = db.replicate.from(url, { ...OPTIONS });
    setTimeout(() => replication.cancel(), ms);
    await replication;
    await claimed(db, database);
    await db.replicate.from(url, { ...OPTIONS });
    compare(serverSnapshot(database), await snapshot(db), `cancelled after ${ms} ms`);
  }
});

test('the database is closed in mid-flight', async (t) => {
  for (const which of ['target', 'source']) {
    const { couch, database, url } = await filled(t);
    const db = new fast(`closed-${which}`, { adapter: 'memory' });
    const remote = new fast(url);
    const replication = db.replicate.from(remote, { ...OPTIONS });
    let closing;
    replication.once('change', () => { closing = (which === 'target' ? db : remote).close(); });
    await observe(replication).ended;
    await closing;
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepEqual(couch.log.filter(({ end }) => end === null), [], 'no request is open');
    const again = new fast(`closed-${which}`, { adapter: 'memory' });
    t.after(() => again.destroy());
    await claimed(again, database);
    await again.replicate.from(url, { ...OPTIONS });
    compare(serverSnapshot(database), await snapshot(again));
  }
});
