// What the pull of a sync has brought, its push does not ask about again; and what it takes for
// true holds for the database that was read, not for one that came in its place.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { stock, fast } = pouchesOnce(9);

/** @param {() => Promise<boolean> | boolean} holds */
async function eventually(holds) {
  while (!await holds()) await sleep(5);
}

/** @param {any} db @param {number} count */
const has = (db, count) => eventually(async () => (await db.info()).doc_count >= count);

/** The documents that the server was asked about. @param {import('./support/couch/index.mjs').Couch} couch */
const askedAbout = (couch) => couch.matching(/_revs_diff/).flatMap(({ bodyJSON }) => Object.keys(bodyJSON));

/** The requests of the push half. @param {import('./support/couch/index.mjs').Couch} couch */
const push = (couch) => couch.matching(/_revs_diff|_bulk_docs/).length;

test('live: the first pull of 5,000 documents costs the push a handful of requests', { timeout: 60_000 }, async (t) => {
  const { couch, database, url } = await scene(t, { docs: 5_000 });
  const db = local(t, fast);
  const sync = db.sync(url, { live: true });
  await has(db, 5_000);
  // The push has come through its feed.
  const end = (await db.info()).update_seq;
  await eventually(() => [...database.locals.values()].some(({ body }) => /** @type {any} */ (body).last_seq === end));
  assert.ok(push(couch) <= 2, `${push(couch)} requests`);
  // A checkpoint a second, each after a look at the database: how many depends on the clock.
  assert.ok(couch.count() <= 120, `${couch.count()} requests in all, where stock makes 560`);
  sync.cancel();
  await sync;
  assert.equal(database.docs.size, 5_000);
  assert.equal(parseInt(database.updateSeq, 10), 5_000, 'nothing was written back');
});

test('one-shot, both sides full: neither is asked about the other\'s documents', { timeout: 60_000 }, async (t) => {
  const { couch, database, url } = await scene(t, { docs: 1_200, latency: 5 });
  const db = local(t, fast);
  await db.bulkDocs(notes(1_200, 50_000));
  await db.sync(url);
  await db.sync(url);
  compare(serverSnapshot(database), await snapshot(db));
  const asked = askedAbout(couch);
  const back = couch.matching(/_bulk_docs/).flatMap(({ bodyJSON }) => bodyJSON.docs.map((/** @type {any} */ doc) => doc._id));
  const theirs = (/** @type {string} */ id) => id < 'note-50000';
  assert.ok(asked.filter(theirs).length <= 1_200, 'at most once, where the first sync was over before');
  assert.deepEqual(back.filter(theirs), []);
  assert.equal(back.length, 1_200);
});

test('an edit of what was just pulled is pushed', { timeout: 30_000 }, async (t) => {
  const { couch, database, url } = await scene(t, { docs: 50 });
  const db = local(t, fast);
  const sync = db.sync(url, { live: true });
  await has(db, 50);
  for (const { id } of (await db.allDocs()).rows) await db.put({ ...await db.get(id), edited: true });
  await eventually(() => [...database.docs.keys()].every((id) => /** @type {any} */ (database.get(id)).edited));
  sync.cancel();
  await sync;
  compare(serverSnapshot(database), await snapshot(db));
  assert.ok(couch.count(/_bulk_docs/) > 0);
});

test('a conflict that the pull made is pushed: the other leaf is not on the server', { timeout: 30_000 }, async (t) => {
  const { database, url } = await scene(t, { docs: [{ _id: 'both', on: 'server' }] });
  const db = local(t, fast);
  await db.put({ _id: 'both', on: 'device' });
  await db.sync(url);
  await db.sync(url);
  assert.equal(database.leaves('both').length, 2);
  compare(serverSnapshot(database), await snapshot(db));
});

/** The database goes, and comes again with nothing in it. @param {import('./support/couch/index.mjs').Couch} couch */
function recreate(couch) {
  couch.db('db').destroy();
  couch.databases.delete('db');
  couch.db('db').created += 100;
}

for (const retry of [true, false]) {
  test(`a database deleted and created anew gets everything, ${retry ? 'live' : 'with the next sync'}`, { timeout: 30_000 }, async (t) => {
    const { couch, url } = await scene(t, { docs: 300 });
    const db = local(t, fast);
    // The push knows what came from the first database when the second takes its place.
    couch.faults.add({ when: { method: 'PUT', path: /_local/ }, times: Infinity, action: faults.delay(20) });
    let gone = false;
    const bulkDocs = db.bulkDocs;
    db.bulkDocs = async (/** @type {any[]} */ ...args) => {
      if (!gone && args[0].new_edits === false) {
        recreate(couch);
        gone = true;
      }
      return bulkDocs.apply(db, args);
    };
    await db.put({ _id: 'own' });
    const sync = db.sync(url, { live: true, retry, back_off_function: () => 20 });
    if (retry) {
      await eventually(() => gone && couch.db('db').docs.size === 301);
      sync.cancel();
      await sync;
    } else {
      await Promise.race([sync.catch(() => {}), sleep(1500)]);
      sync.cancel();
      await db.sync(url).catch(() => {});
      await db.sync(url);
    }
    compare(await snapshot(db), serverSnapshot(couch.db('db')));
  });
}

test('a checkpoint tells of nothing that the new database lacks', { timeout: 30_000 }, async (t) => {
  const { couch, url } = await scene(t, { docs: 300 });
  const db = local(t, fast);
  const sync = db.sync(url, { live: true });
  const failed = sync.push.then(() => null, (/** @type {any} */ error) => error);
  sync.catch(() => {});
  let asked = 0;
  // After the push said that it knows these, before it may say so in a checkpoint.
  couch.db('db').onRequest = (entry) => {
    if (entry.method !== 'GET' || entry.path !== '/db/') return;
    asked += 1;
    if (asked === 2) recreate(couch);
  };
  const error = await failed;
  assert.equal(error.code, 'fast_sync_recreated');
  assert.match(error.message, /created anew/);
  await db.sync(url);
  compare(await snapshot(db), serverSnapshot(couch.db('db')));
});

test('a server that does not tell when a database was created is asked', { timeout: 30_000 }, async (t) => {
  const { couch, url } = await scene(t, { docs: 200 });
  couch.faults.add({
    when: { method: 'GET', path: /^.db.$/ }, times: Infinity,
    action: faults.mapJson((json) => ({ ...json, instance_start_time: '0' })),
  });
  const db = local(t, fast);
  const sync = db.sync(url, { live: true });
  await has(db, 200);
  await eventually(() => askedAbout(couch).length === 200);
  sync.cancel();
  await sync;
});

for (const checkpoint of [false, 'source']) {
  test(`without a checkpoint on the server nothing is taken for true: ${checkpoint}`, { timeout: 30_000 }, async (t) => {
    const { couch, url } = await scene(t, { docs: 200 });
    const db = local(t, fast);
    const sync = db.sync(url, { live: true, push: { checkpoint } });
    await has(db, 200);
    await eventually(() => askedAbout(couch).length === 200);
    sync.cancel();
    await sync;
  });
}

test('stock, for comparison, asks about each', { timeout: 30_000 }, async (t) => {
  const { couch, url } = await scene(t, { docs: 500 });
  const db = local(t, stock);
  const sync = db.sync(url, { live: true });
  await has(db, 500);
  await eventually(() => askedAbout(couch).length === 500);
  sync.cancel();
  await sync;
});
