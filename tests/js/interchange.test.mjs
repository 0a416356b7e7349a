// The plugin can be switched on and off at any time: what one began, the other goes on with, from
// the same checkpoint, and reads nothing twice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counter, pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);
const STOCK = { fastSync: false };

/** @type {[string, any, any][]} */
const orders = [['stock, then the plugin', STOCK, {}], ['the plugin, then stock', {}, STOCK], ['the plugin, then the plugin', {}, {}]];

/**
 * Cancels after some batches.
 * @param {any} replication
 * @param {number} batches
 */
async function half(replication, batches) {
  let left = batches;
  let last = 0;
  replication.on('checkpoint', (/** @type {any} */ { checkpoint }) => {
    if (!checkpoint) return;
    last = counter(checkpoint);
    left -= 1;
    if (left === 0) replication.cancel();
  });
  await replication;
  return last;
}

for (const [order, first, second] of orders) {
  for (const options of [{ batch_size: 10 }, { batch_size: 10, checkpoint: 'target' }, { batch_size: 10, checkpoint: 'source' }, { batch_size: 10, doc_ids: notes(80).map(({ _id }) => _id) }]) {
    test(`${order}: ${Object.keys(options).slice(1).join() || 'no other option'} ${/** @type {any} */ (options).checkpoint ?? ''}`, async (t) => {
      const { couch, database, url } = await scene(t, { docs: 100 });
      const db = local(t, fast);
      const reached = await half(db.replicate.from(url, { ...options, ...first }), 4);
      const held = (await db.info()).doc_count;
      assert.ok(held > 0 && held < 80, `${held} documents by the first`);
      couch.clearLog();
      const { result, error } = await observe(db.replicate.from(url, { ...options, ...second })).ended;
      assert.equal(error, undefined);
      const since = Math.min(...couch.matching(/_changes/).map(({ query }) => counter(query.since)));
      // The source's checkpoint may lag by what was in flight, and then both agree on that.
      assert.ok(since >= reached - 10 && since > 0, `the second begins at ${since}, the first had reached ${reached}`);
      const fetched = couch.matching(/_bulk_get/).flatMap(({ bodyJSON }) => bodyJSON.docs);
      const all = options.doc_ids ? 80 : 100;
      assert.equal(fetched.length, all - held, 'nothing is fetched again');
      assert.equal(result.docs_written, all - held);
      if (!options.doc_ids) compare(serverSnapshot(database), await snapshot(db));
      couch.clearLog();
      for (const last of [first, second]) {
        const again = await db.replicate.from(url, { ...options, ...last });
        assert.equal(again.docs_read, 0);
      }
      assert.ok(couch.matching(/_changes/).every(({ query }) => counter(query.since) >= all), 'a third and a fourth read nothing');
    });
  }
}

test('checkpoint documents are the same on both sides and as stock\'s', async (t) => {
  const seen = [];
  for (const options of [STOCK, {}]) {
    const { database, url } = await scene(t, { docs: 35 });
    const db = local(t, fast);
    await db.replicate.from(url, { batch_size: 10, ...options });
    const [id] = database.locals.keys();
    const { _rev: _serverRev, ...onServer } = /** @type {any} */ (database.get(id));
    const { _rev: _localRev, ...onTarget } = await db.get(id);
    assert.deepEqual(onServer, onTarget);
    seen.push({
      ...onServer, _id: '', session_id: typeof onServer.session_id, last_seq: counter(onServer.last_seq),
      history: onServer.history.map((/** @type {any} */ entry) => [counter(entry.last_seq), entry.session_id === onServer.session_id]),
    });
  }
  assert.deepEqual(seen[1], seen[0]);
});

test('a sync interrupted by a failure, by turns with stock, until all is there', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 300 });
  const db = local(t, fast);
  let turns = 0;
  for (let written = 0; written < 300; turns += 1) {
    assert.ok(turns < 40, 'it gets on');
    const broken = couch.faults.add({ when: { path: /_changes|_bulk_get/ }, after: 6, times: Infinity, action: faults.status(400) });
    await observe(db.replicate.from(url, { batch_size: 20, ...(turns % 2 === 0 ? {} : STOCK) })).ended;
    broken.remove();
    const { doc_count } = await db.info();
    assert.ok(doc_count >= written);
    written = doc_count;
    if (turns === 2) database.bulkDocs(database.leaves('note-00001').map(({ doc }) => ({ ...doc, edited: true })));
  }
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
});

for (const version of /** @type {const} */ ([8, 7])) {
  test(`by turns on PouchDB ${version}`, async (t) => {
    const { fast: older } = pouchesOnce(version);
    const { couch, database, url } = await scene(t, { docs: 60 });
    const db = local(t, older);
    await half(db.replicate.from(url, { batch_size: 10 }), 2);
    await half(db.replicate.from(url, { batch_size: 10, ...STOCK }), 2);
    await db.replicate.from(url, { batch_size: 10 });
    const fetched = couch.matching(/_bulk_get|open_revs/).flatMap(({ bodyJSON }) => bodyJSON?.docs ?? []);
    compare(serverSnapshot(database), await snapshot(db));
    const twice = fetched.map(({ id }) => id).filter((id, at, all) => all.indexOf(id) !== at);
    assert.ok(twice.length <= 60, 'only what was read ahead when it was cancelled');
    couch.clearLog();
    await db.replicate.from(url, { batch_size: 10, ...STOCK });
    assert.equal(counter(couch.matching(/_changes/)[0].query.since), 60);
  });
}
