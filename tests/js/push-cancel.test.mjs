// A push that ends in the middle: nothing more is asked, nothing is written twice, what was not
// written goes with the next, and the process ends.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { alike, pouchesOnce } from './support/alike.mjs';
import { faults, startCouch } from './support/couch/index.mjs';
import { observe } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);

/** Until a request has arrived. @param {import('./support/couch/index.mjs').Couch} couch @param {RegExp} pattern */
async function arrived(couch, pattern) {
  while (couch.count(pattern) === 0) await sleep(2);
}

/** Nothing is under way, and nothing comes. @param {import('./support/couch/index.mjs').Couch} couch */
async function quiet(couch) {
  while (couch.log.some(({ end }) => end === null)) await sleep(2);
  const count = couch.count();
  await sleep(150);
  assert.equal(couch.count(), count, couch.log.slice(count).map(({ url }) => url).join(' '));
}

for (const [name, pattern] of /** @type {const} */ ([
  ['the diff', /_revs_diff/], ['a write', /_bulk_docs/], ['the checkpoint', /PUT .*_local/], ['the database\'s information', /GET .db.$/],
])) {
  test(`cancel while it waits for ${name}`, { timeout: 30_000 }, async (t) => {
    const { couch, database, url } = await scene(t);
    // So that the server is asked which documents it lacks.
    database.bulkDocs(notes(5, 900));
    const db = local(t, fast);
    await db.bulkDocs(notes(300));
    const hanging = couch.faults.add({ when: (entry) => pattern.test(`${entry.method} ${entry.url}`), times: Infinity, action: faults.hang() });
    const replication = db.replicate.to(url, { batch_size: 100 });
    await arrived(couch, pattern);
    await sleep(20);
    const writes = couch.count(/_bulk_docs/);
    replication.cancel();
    hanging.remove();
    const result = await replication;
    assert.equal(result.status, 'cancelled');
    assert.equal(result.doc_write_failures, 0);
    if (name !== 'the checkpoint') await quiet(couch);
    else await sleep(50);
    assert.equal(couch.count(/_bulk_docs/), writes, 'nothing more was written');
    await db.replicate.to(url);
    await db.replicate.from(url, { fastSync: false });
    compare(await snapshot(db), serverSnapshot(database));
  });
}

alike('cancel at the first change', async ({ db, url, database }) => {
  await db.bulkDocs(notes(40));
  const replication = db.replicate.to(url, { batch_size: 10 });
  replication.once('change', () => replication.cancel());
  const { events, result } = await observe(replication).ended;
  await sleep(50);
  return { events, status: result.status, written: result.docs_written, held: database.docs.size };
}, { check({ status, held }) { assert.deepEqual([status, held], ['cancelled', 10]); } });

for (const which of /** @type {const} */ (['source', 'target'])) {
  test(`destroying the ${which} in mid-push`, { timeout: 30_000 }, async (t) => {
    const { couch, url } = await scene(t);
    const db = local(t, fast);
    await db.bulkDocs(notes(300));
    const remote = new fast(url);
    couch.faults.add({ when: { path: /_bulk_docs/ }, times: 1, after: 1, action: faults.hang() });
    const seen = observe(db.replicate.to(remote, { batch_size: 20 }));
    while (couch.count(/_bulk_docs/) < 2) await sleep(2);
    await (which === 'target' ? remote : db).destroy();
    await seen.ended;
    assert.ok(seen.result?.status === 'cancelled' || seen.error, 'it ended');
    await quiet(couch);
  });
}

for (const how of /** @type {const} */ (['complete', 'write', 'sync'])) {
  test(`a Node process ends by itself: ${how}`, { timeout: 60_000 }, async (t) => {
    const couch = await startCouch();
    t.after(() => couch.stop());
    if (how !== 'sync') couch.db('db');
    else couch.db('db').bulkDocs(notes(300, 1000));
    if (how === 'write') couch.faults.add({ when: { path: /_bulk_docs/ }, times: Infinity, action: faults.hang() });
    const child = fileURLToPath(new URL('./support/push-cancel-child.mjs', import.meta.url));
    const started = performance.now();
    const printed = await new Promise((resolve, reject) => {
      execFile(process.execPath, [child, couch.dbUrl('db'), how], { timeout: 40_000 }, (error, stdout, stderr) =>
        (error ? reject(new Error(`${error.message} ${stderr} ${stdout}`)) : resolve(stdout)));
    });
    const { result, settledAfter } = JSON.parse(printed);
    assert.equal(result, how === 'complete' ? 'complete' : 'cancelled');
    const idle = performance.now() - started - settledAfter;
    assert.ok(idle < 20_000, `${Math.round(idle)} ms from settling to the end of the process`);
  });
}
