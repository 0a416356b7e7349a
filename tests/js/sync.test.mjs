// Two devices, of which one has stock or the plugin, and a server between them: whatever is edited
// where, all three come to hold the same, and it is what they hold without the plugin.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { alike, pouchesOnce } from './support/alike.mjs';
import { faults, startCouch } from './support/couch/index.mjs';
import { deeds, edit, onServer, withDevices } from './support/devices.mjs';
import { counts, observe, until } from './support/observe.mjs';
import { batchSizes, settings, withServers } from './support/pairs.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const story = fc.record({ deeds: deeds({ minLength: 1, maxLength: 30 }), options: batchSizes });

/** @param {any} sync */
async function ended(sync) {
  const [push, pull] = [observe(sync.push), observe(sync.pull)];
  await sync;
  return { push: counts((await push.ended).result), pull: counts((await pull.ended).result) };
}

for (const [version, runs] of /** @type {const} */ ([[9, 12], [8, 2], [7, 2]])) {
  test(`random edits on both sides, PouchDB ${version}`, async () => {
    const { stock, fast } = pouchesOnce(version);
    await fc.assert(fc.asyncProperty(story, async (given) => {
      const once = (/** @type {any[]} */ PouchDBs) => withServers([[]], ([couch]) => withDevices(PouchDBs, async ([a, b]) => {
        const places = { a, b, server: onServer(couch.db('db')) };
        const sync = (/** @type {any} */ db) => ended(db.sync(couch.dbUrl('db'), { ...given.options }));
        for (const deed of given.deeds) {
          if (deed.kind !== 'sync') await edit(places[deed.where], deed);
          else await sync(deed.where === 'b' ? b : a);
        }
        for (const db of [a, b, a, b]) await sync(db);
        const quiet = [await sync(a), await sync(b)];
        for (const each of quiet) assert.deepEqual([each.push.docs_written, each.pull.docs_written], [0, 0], 'nothing is left to be done');
        const [server, ...devices] = [serverSnapshot(couch.db('db')), await snapshot(a), await snapshot(b)];
        for (const device of devices) compare(server, device, 'the server and a device');
        return server;
      }));
      const without = await once([stock, stock]);
      compare(without, await once([stock, fast]), 'all with stock, and one device with the plugin');
      compare(without, await once([fast, fast]), 'all with stock, and both devices with the plugin');
    }), settings(runs));
  });
}

alike('conflicts on both sides, and what each half says', async ({ db, url, database }) => {
  const both = (/** @type {string} */ on) => [...notes(20).map((doc) => ({ ...doc, on })), { _id: `only-${on}` }];
  database.bulkDocs(both('server'));
  await db.bulkDocs(both('device'));
  const first = await ended(db.sync(url, { batch_size: 7 }));
  const second = await ended(db.sync(url));
  compare(serverSnapshot(database), await snapshot(db));
  const leaves = [...database.docs.keys()].sort().map((id) => database.leaves(id).length);
  // How much of what the pull brought the push of the same sync comes by is chance.
  return { first: { push: first.push.docs_written, pull: first.pull.docs_written }, second, leaves };
}, { check({ leaves }) { assert.equal(leaves.filter((/** @type {number} */ count) => count === 2).length, 20); } });

const life = fc.record({
  deeds: deeds({ minLength: 5, maxLength: 25 }),
  pauses: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 25, maxLength: 25 }),
  failures: fc.array(fc.record({
    at: fc.nat(24), kind: fc.constantFrom('resetBefore', 'resetAfter', 'status', 'html'), path: fc.constantFrom('_bulk_docs', '_bulk_get', '_changes', '_local', '_revs_diff'),
  }), { maxLength: 5 }),
});

test('live on two devices, one with stock, with failures between', { timeout: 110_000 }, async () => {
  const { stock, fast } = pouchesOnce(9);
  await fc.assert(fc.asyncProperty(life, async ({ deeds: list, pauses, failures }) => {
    const couch = await startCouch();
    const database = couch.db('db');
    try {
      await withDevices([stock, fast], async ([a, b]) => {
        const options = { live: true, retry: true, back_off_function: () => 10 };
        const syncs = [a, b].map((db) => db.sync(couch.dbUrl('db'), options));
        for (const [at, deed] of list.entries()) {
          for (const { kind, path } of failures.filter((failure) => failure.at === at)) {
            const action = kind === 'status' ? faults.status(503) : kind === 'html' ? faults.html() : faults[/** @type {'resetBefore'} */ (kind)]();
            couch.faults.add({ when: { path: new RegExp(path) }, times: 2, action });
          }
          const places = { a, b, server: onServer(database) };
          if (deed.kind !== 'sync') await edit(places[deed.where], deed).catch((error) => assert.equal(error.status ?? error.error, error.status ? 409 : 'conflict'));
          await sleep(pauses[at]);
        }
        couch.faults.clear();
        await settled(database, a, b);
        for (const sync of syncs) sync.cancel();
        await Promise.all(syncs);
      });
    } finally {
      await couch.stop();
    }
  }), settings(6));
});

/**
 * Until all hold the same.
 * @param {import('./support/couch/database.mjs').Database} database
 * @param {any[]} devices
 */
async function settled(database, ...devices) {
  for (let left = 400; ; left -= 1) {
    try {
      const server = serverSnapshot(database);
      for (const db of devices) compare(server, await snapshot(db), 'the server and a device');
      return;
    } catch (error) {
      if (left === 0) throw error;
      await sleep(25);
    }
  }
}

test('live, with changes on both sides at once, in bursts', { timeout: 60_000 }, async (t) => {
  const { fast } = pouchesOnce(9);
  const { database, url } = await scene(t, { docs: 100 });
  const db = local(t, fast);
  await db.bulkDocs(notes(100, 1000));
  const sync = db.sync(url, { live: true, batch_size: 20 });
  for (let burst = 2; burst < 8; burst += 1) {
    await Promise.all([db.bulkDocs(notes(30, burst * 1000)), sleep(7).then(() => database.bulkDocs(notes(30, burst * 1000 + 500)))]);
    await sleep(15);
  }
  await settled(database, db);
  sync.cancel();
  await sync;
  assert.equal(database.docs.size, 560);
  assert.equal(parseInt(database.updateSeq, 10), 560, 'nothing came back');
});

test('one side goes away and comes back', { timeout: 60_000 }, async (t) => {
  const { fast } = pouchesOnce(9);
  const { couch, database, url } = await scene(t, { docs: 50 });
  const db = local(t, fast);
  const sync = db.sync(url, { live: true, retry: true, back_off_function: () => 20 });
  await settled(database, db);
  const away = couch.faults.add({ when: { path: /./ }, times: Infinity, action: faults.resetBefore() });
  const paused = until(sync.push, 'paused', Boolean);
  await db.bulkDocs(notes(40, 500));
  database.bulkDocs(notes(40, 700));
  await paused;
  away.remove();
  await settled(database, db);
  sync.cancel();
  await sync;
  assert.deepEqual([database.docs.size, parseInt(database.updateSeq, 10)], [130, 130]);
});
