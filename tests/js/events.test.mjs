// Events: which, in which order, with what in them; as stock emits them.

import assert from 'node:assert/strict';
import { alike, counter, told } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { observe, until } from './support/observe.mjs';
import { notes } from './support/scene.mjs';

/** @param {import('./support/observe.mjs').Seen} seen */
function shown({ events, changes, docs, result, error }) {
  return {
    events,
    changes: changes.map(({ start_time: _time, last_seq, ...change }) => ({ ...change, last_seq: counter(last_seq) })),
    docs: docs.sort(),
    result: result && { ...result, start_time: 0, end_time: 0, last_seq: counter(result.last_seq) },
    error: told(error),
  };
}

for (const version of /** @type {const} */ ([9, 8, 7])) {
  alike(`a pull in three batches, PouchDB ${version}`, async ({ db, url }) => {
    return shown(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
  }, {
    pouch: version, docs: 25,
    check({ events, changes, result }) {
      assert.deepEqual(events.filter((/** @type {string} */ name) => name !== 'paused'), ['active', 'change', 'change', 'change', 'complete']);
      assert.deepEqual(changes.map((/** @type {any} */ change) => change.docs), [10, 10, 5]);
      assert.deepEqual(changes.map((/** @type {any} */ change) => change.pending), [15, 5, 0]);
      assert.deepEqual(result.docs_written, 25);
    },
  });
}

alike('a pull of nothing', async ({ db, url }) => shown(await observe(db.replicate.from(url)).ended), {
  check({ events }) { assert.equal(events.at(-1), 'complete'); },
});

alike('a pull with everything there already', async ({ db, url }) => {
  await db.replicate.from(url, { batch_size: 10 });
  return shown(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
}, { docs: 25, check({ result }) { assert.equal(result.docs_read, 0); } });

alike('PouchDB.replicate and a callback instead of a promise', async ({ PouchDB, db, url }) => {
  const [error, result] = await new Promise((resolve) => {
    PouchDB.replicate(url, db, (/** @type {any} */ ...args) => resolve(args));
  });
  const [second, nothing] = await new Promise((resolve) => {
    db.replicate.from(url, { batch_size: 10 }, (/** @type {any} */ ...args) => resolve(args));
  });
  return [error, result.docs_written, second, nothing.docs_written];
}, { docs: 12, check(seen) { assert.deepEqual(seen, [null, 12, null, 0]); } });

alike('a live pull: what comes later, one change a time', async ({ db, url, database }) => {
  const replication = db.replicate.from(url, { live: true, batch_size: 10 });
  const seen = observe(replication);
  await until(replication, 'paused');
  for (let count = 0; count < 3; count += 1) {
    const paused = until(replication, 'paused');
    database.bulkDocs(notes(1, 100 + count));
    await paused;
  }
  replication.cancel();
  return shown(await seen.ended);
}, {
  docs: 15,
  check({ events, docs, result }) {
    assert.equal(docs.length, 18);
    assert.equal(result.status, 'cancelled');
    assert.equal(events.at(-1), 'complete');
  },
});

alike('a write that the target denies', async ({ db, url }) => {
  const { bulkDocs } = db;
  /** @type {any[]} */
  const denied = [];
  db.bulkDocs = async function (/** @type {any} */ req, /** @type {any[]} */ ...rest) {
    const allowed = req.docs.filter((/** @type {any} */ doc) => doc._id !== 'note-00003');
    const results = await bulkDocs.call(db, { ...req, docs: allowed }, ...rest);
    if (allowed.length === req.docs.length) return results;
    return [...results, { id: 'note-00003', error: true, name: 'forbidden', status: 403, message: 'no' }];
  };
  const replication = db.replicate.from(url);
  replication.on('denied', (/** @type {any} */ error) => denied.push(error));
  const seen = await observe(replication).ended;
  return { ...shown(seen), denied };
}, {
  docs: 6,
  check({ denied, result }) {
    assert.equal(denied.length, 1);
    assert.deepEqual([result.docs_written, result.doc_write_failures], [5, 1]);
  },
});

for (const [what, action, path] of /** @type {[string, any, RegExp][]} */ ([
  ['the database refuses (401)', faults.status(401, { error: 'unauthorized', reason: 'You are not authorized to access this db.' }), /\/db/],
  ['the database refuses (403)', faults.status(403, { error: 'forbidden', reason: 'You are not allowed to access this db.' }), /\/db/],
  ['the feed answers 500', faults.status(500, { error: 'internal', reason: 'broken' }), /_changes/],
  ['the feed answers 404', faults.status(404, { error: 'not_found', reason: 'Database does not exist.' }), /_changes/],
])) {
  alike(`an error event: ${what}`, async ({ db, url, couch }) => {
    couch.faults.add({ when: { path }, times: Infinity, action });
    return shown(await observe(db.replicate.from(url)).ended);
  }, { docs: 5, check({ error, events }) { assert.ok(error); assert.equal(events.at(-1), 'error'); } });
}

alike('sync: events of both directions', async ({ db, url }) => {
  await db.bulkDocs(notes(5, 500));
  const sync = db.sync(url, { batch_size: 10 });
  const pull = observe(sync.pull);
  const push = observe(sync.push);
  const names = /** @type {string[]} */ ([]);
  for (const name of ['change', 'complete', 'denied', 'error']) {
    sync.on(name, (/** @type {any} */ info) => names.push(`${name} ${info.direction ?? ''}`));
  }
  const result = await sync;
  await Promise.all([pull.ended, push.ended]);
  return {
    names: names.sort(), pull: { docs: pull.docs.sort(), last: pull.events.at(-1) }, push: { docs: push.docs.sort(), last: push.events.at(-1) },
    result: [result.pull.docs_written, result.push.docs_written, result.pull.ok, result.push.ok],
  };
}, { docs: 12, check({ result }) { assert.deepEqual(result, [12, 5, true, true]); } });

alike('no listener stays on the two databases', async ({ PouchDB, db, url }) => {
  const remote = new PouchDB(url);
  const count = () => [db, remote].map((each) => each.eventNames().map((/** @type {any} */ name) => `${String(name)} ${each.listenerCount(name)}`).sort());
  await db.sync(remote);
  const before = count();
  for (let i = 0; i < 12; i += 1) await db.replicate.from(remote, { batch_size: 3 });
  for (let i = 0; i < 4; i += 1) await db.sync(remote);
  const live = db.sync(remote, { live: true });
  await until(live, 'paused');
  live.cancel();
  await live;
  // PouchDB waits until its own lists are settled.
  await new Promise((resolve) => setTimeout(resolve, 50));
  return { before, after: count() };
}, { docs: 10, check({ before, after }) { assert.deepEqual(after, before); } });
