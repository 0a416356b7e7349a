// Methods that somebody put on their handle are theirs: they are called, as methods of that
// handle, and what they answer counts. Also a source that refuses checkpoints.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alike, pouchesOnce, told } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { scene } from './support/scene.mjs';

/** @param {any} seen */
const outcome = ({ events, result, error, docs }) => ({
  last: events.at(-1), written: result?.docs_written, read: result?.docs_read, docs: docs.sort(), error: told(error),
});

/**
 * @param {any} handle
 * @param {string} name
 * @param {(original: Function, args: any[]) => any} [instead]
 */
function replace(handle, name, instead = (original, args) => original(...args)) {
  const original = handle[name];
  const calls = { count: 0, own: true };
  handle[name] = function (/** @type {any[]} */ ...args) {
    calls.count += 1;
    calls.own &&= this === handle;
    return instead((/** @type {any[]} */ ...given) => original.apply(handle, given), args);
  };
  return calls;
}

for (const name of ['bulkGet', 'put', 'get', 'changes', 'info', 'id']) {
  alike(`a source whose ${name} was replaced`, async ({ PouchDB, db, url }) => {
    const remote = new PouchDB(url);
    const calls = replace(remote, name);
    const seen = outcome(await observe(db.replicate.from(remote, { batch_size: 10 })).ended);
    assert.ok(calls.count > 0, `${name} was called`);
    return { ...seen, own: calls.own };
  }, { docs: 25, check: ({ own, written }) => assert.deepEqual([own, written], [true, 25]) });
}

for (const name of ['bulkDocs', 'revsDiff', 'put', 'get', 'id']) {
  alike(`a target whose ${name} was replaced`, async ({ db, url }) => {
    const calls = replace(db, name);
    const seen = outcome(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
    assert.ok(calls.count > 0, `${name} was called`);
    return { ...seen, own: calls.own };
  }, { docs: 25, check: ({ own, written }) => assert.deepEqual([own, written], [true, 25]) });
}

for (const name of ['bulkDocs', 'revsDiff']) {
  alike(`a target that holds something, and whose ${name} was replaced`, async ({ db, url, database }) => {
    await db.replicate.from(url, { doc_ids: ['note-00001', 'note-00002'] });
    database.put({ ...database.get('note-00002'), edited: true });
    const calls = replace(db, name);
    const seen = outcome(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
    return { ...seen, called: calls.count > 0, own: calls.own };
  }, { docs: 25, check: ({ written }) => assert.equal(written, 24) });
}

alike('a bulkGet that changes documents is believed', async ({ PouchDB, db, url }) => {
  const remote = new PouchDB(url);
  replace(remote, 'bulkGet', async (original, args) => {
    const answer = await original(...args);
    for (const { docs } of answer.results) for (const { ok } of docs) ok.changed = true;
    return answer;
  });
  await db.replicate.from(remote);
  const { rows } = await db.allDocs({ include_docs: true });
  return rows.map((/** @type {any} */ row) => row.doc.changed);
}, { docs: 5, check: (seen) => assert.deepEqual(seen, [true, true, true, true, true]) });

alike('a revsDiff that hides documents is believed', async ({ db, url }) => {
  replace(db, 'revsDiff', async (original, args) => {
    const answer = await original(...args);
    delete answer['note-00002'];
    return answer;
  });
  return outcome(await observe(db.replicate.from(url)).ended);
}, { docs: 5, check: ({ written }) => assert.equal(written, 4) });

for (const [what, side, name] of /** @type {const} */ ([
  ['documents cannot be fetched', 'source', 'bulkGet'], ['the checkpoint cannot be written', 'source', 'put'],
  ['the batch cannot be written', 'target', 'bulkDocs'], ['the diff fails', 'target', 'revsDiff'], ['the checkpoint cannot be written', 'target', 'put'],
])) {
  alike(`a ${side}'s ${name} that fails once: ${what}`, async ({ PouchDB, db, url }) => {
    const remote = new PouchDB(url);
    let failed = false;
    replace(side === 'source' ? remote : db, name, (original, args) => {
      if (failed) return original(...args);
      failed = true;
      return Promise.reject(new Error('flunking you'));
    });
    const first = outcome(await observe(db.replicate.from(remote, { batch_size: 10 })).ended);
    const second = outcome(await observe(db.replicate.from(remote, { batch_size: 10 })).ended);
    return { first: { ...first, docs: 0 }, second, holds: (await db.info()).doc_count };
  }, { docs: 25, check: ({ first, holds }) => assert.deepEqual([first.last, first.error.message, holds], ['error', 'flunking you', 25]) });
}

alike('a method replaced while the replication runs', async ({ PouchDB, db, url }) => {
  const remote = new PouchDB(url);
  const replication = db.replicate.from(remote, { batch_size: 5, batches_limit: 1 });
  let calls = { count: 0, own: false };
  replication.once('change', () => { calls = replace(remote, 'bulkGet'); });
  const seen = outcome(await observe(replication).ended);
  return { ...seen, called: calls.count > 0, own: calls.own };
}, { docs: 25, check: ({ called, own, written }) => assert.deepEqual([called, own, written], [true, true, 25]) });

for (const code of [401, 403]) {
  alike(`a source that refuses checkpoints with ${code}`, async ({ db, url, couch }) => {
    const name = code === 401 ? 'unauthorized' : 'forbidden';
    couch.faults.add({ when: { method: 'PUT', path: /_local/ }, times: Infinity, action: faults.status(code, { error: name, reason: 'read-only' }) });
    const first = outcome(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
    const again = outcome(await observe(db.replicate.from(url, { batch_size: 10 })).ended);
    return { first, again };
  }, { docs: 25, check: ({ first, again }) => assert.deepEqual([first.written, again.written], [25, 0]) });
}

test('a source that refuses checkpoints is asked no more often than by stock, and once with its cookies', async (t) => {
  const costs = [];
  for (const PouchDB of Object.values(pouchesOnce(9))) {
    const { couch, database, url } = await scene(t, { docs: 35 });
    database.readOnly = true;
    await local(t, PouchDB).replicate.from(url, { batch_size: 10 });
    costs.push(couch.count(/^PUT .*_local/));
  }
  assert.ok(costs[1] <= costs[0] + 1, `${costs[1]} writes, stock ${costs[0]}`);
});

test('the user\'s handles are never changed', async (t) => {
  const { fast } = pouchesOnce(9);
  const { url } = await scene(t, { docs: 25 });
  const [db, remote] = [local(t, fast), new fast(url)];
  await Promise.all([db.info(), remote.info()]);
  const own = (/** @type {any} */ handle) => Object.fromEntries(Object.getOwnPropertyNames(handle).map((name) => [name, handle[name]]));
  const before = [own(db), own(remote)];
  await db.replicate.from(remote);
  await db.sync(remote);
  const after = [own(db), own(remote)];
  for (const [at, handle] of before.entries()) {
    for (const [name, value] of Object.entries(handle)) {
      if (typeof value === 'function') assert.equal(after[at][name], value, name);
    }
    assert.deepEqual(Object.keys(after[at]).filter((name) => !(name in handle) && !/^_events/.test(name)), []);
  }
});
