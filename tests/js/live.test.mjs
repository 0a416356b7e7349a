// Live replication and retries: what arrives later, both directions, a server that goes away and
// comes back, and the back-off function.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { alike, pouchesOnce, told } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { observe, until } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

/** @param {() => Promise<boolean> | boolean} holds */
async function eventually(holds) {
  while (!await holds()) await sleep(5);
}

/** @param {any} db @param {number} count */
const has = (db, count) => eventually(async () => (await db.info()).doc_count >= count);

alike('a live sync carries changes both ways', async ({ db, url, database }) => {
  await db.bulkDocs(notes(5, 300));
  const sync = db.sync(url, { live: true, retry: true });
  const [pull, push] = [observe(sync.pull), observe(sync.push)];
  await eventually(async () => database.docs.size >= 25 && (await db.info()).doc_count >= 25);
  database.bulkDocs(notes(3, 400));
  await db.bulkDocs(notes(3, 500));
  await eventually(async () => database.docs.size >= 31 && (await db.info()).doc_count >= 31);
  const doc = await db.get('note-00000');
  await db.put({ ...doc, edited: true });
  await eventually(() => database.leaves('note-00000')[0].doc.edited === true);
  database.put({ ...database.get('note-00001'), edited: true });
  await eventually(async () => (await db.get('note-00001')).edited === true);
  sync.cancel();
  await Promise.all([pull.ended, push.ended]);
  compare(serverSnapshot(database), await snapshot(db));
  const own = (/** @type {string[]} */ docs) => [...new Set(docs.map((each) => each.split(' ')[0]))].sort();
  return { status: [pull.result.status, push.result.status], pulled: own(pull.docs).filter((id) => id !== 'note-00000') };
}, { docs: 20, check({ status }) { assert.deepEqual(status, ['cancelled', 'cancelled']); } });

alike('a live pull in which documents arrive in bursts', async ({ db, url, database }) => {
  const replication = db.replicate.from(url, { live: true, batch_size: 5 });
  const seen = observe(replication);
  await has(db, 10);
  for (let burst = 1; burst <= 4; burst += 1) {
    database.bulkDocs(notes(13, burst * 100));
    if (burst % 2 === 0) await has(db, 10 + burst * 13);
  }
  await has(db, 62);
  replication.cancel();
  await seen.ended;
  compare(serverSnapshot(database), await snapshot(db));
  return seen.docs.sort();
}, { docs: 10, check(docs) { assert.equal(docs.length, 62); } });

alike('the server goes away and comes back', async ({ db, url, couch, database }) => {
  /** @type {number[]} */
  const delays = [];
  const replication = db.replicate.from(url, {
    live: true, retry: true,
    back_off_function(/** @type {number} */ delay) {
      delays.push(delay);
      return 20;
    },
  });
  const seen = observe(replication);
  await has(db, 10);
  // Stock asks for the database's information and lets nobody know how that ended.
  const away = couch.faults.add({ when: ({ url: path }) => !/^.db.$/.test(path), times: Infinity, action: faults.resetBefore() });
  const active = until(replication, 'active');
  // The longpoll that waits is answered by this, what follows is not.
  database.bulkDocs(notes(5, 100));
  await eventually(() => seen.events.includes('paused with error') && delays.length >= 2);
  away.remove();
  await active;
  await has(db, 15);
  replication.cancel();
  await seen.ended;
  compare(serverSnapshot(database), await snapshot(db));
  // How often it was tried depends on the clock; that events came, and what of, does not.
  return { delays: delays.slice(0, 2), paused: seen.events.includes('paused with error'), docs: seen.docs.sort(), status: seen.result.status };
}, { docs: 10, check({ docs, paused }) { assert.deepEqual([docs.length, paused], [15, true]); } });

alike('the server is away from the start', async ({ db, url, couch, database }) => {
  const away = couch.faults.add({ when: { path: /./ }, times: Infinity, action: faults.status(503) });
  const replication = db.replicate.from(url, { live: true, retry: true, back_off_function: () => 20 });
  const seen = observe(replication);
  await until(replication, 'paused');
  away.remove();
  await has(db, 10);
  replication.cancel();
  await seen.ended;
  compare(serverSnapshot(database), await snapshot(db));
  return { first: seen.events.slice(0, 2), docs: seen.docs.sort() };
}, { docs: 10 });

alike('without retry the first failure ends it', async ({ db, url, couch }) => {
  couch.faults.add({ when: { path: /_changes/ }, times: Infinity, action: faults.status(500, { error: 'e', reason: 'r' }) });
  const seen = await observe(db.replicate.from(url, { live: true })).ended;
  return { events: seen.events, error: told(seen.error) };
}, { docs: 10, check({ error }) { assert.equal(error.status, 500); } });

test('a batch fails in the middle: what was written stays, the rest comes with the retry', async (t) => {
  const { fast } = pouchesOnce(9);
  const { couch, database, url } = await scene(t, { docs: 700 });
  const db = local(t, fast);
  // One request brings at most 500 documents. It fails more often than the engine tries by itself.
  const broken = couch.faults.add({
    when: { path: /_bulk_get/ }, after: 1, times: Infinity, action: faults.status(500),
  });
  const replication = db.replicate.from(url, { live: true, retry: true, batch_size: 100, back_off_function: () => 30 });
  const seen = observe(replication);
  await until(replication, 'paused', (error) => Boolean(error));
  broken.remove();
  await has(db, 700);
  replication.cancel();
  await seen.ended;
  compare(serverSnapshot(database), await snapshot(db));
  assert.equal(new Set(seen.docs).size, 700);
});

test('a live pull asks for its feed as often as stock', async (t) => {
  const seen = [];
  for (const PouchDB of Object.values(pouchesOnce(9))) {
    const { couch, database, url } = await scene(t, { docs: 10 });
    const db = local(t, PouchDB);
    const replication = db.replicate.from(url, { live: true, batch_size: 100 });
    await until(replication, 'paused');
    couch.clearLog();
    for (let count = 0; count < 5; count += 1) {
      const paused = until(replication, 'paused');
      database.bulkDocs(notes(1, 50 + count));
      await paused;
    }
    replication.cancel();
    await replication;
    seen.push(couch.count());
  }
  assert.ok(seen[1] <= seen[0], `${seen[1]} requests, stock ${seen[0]}`);
});
