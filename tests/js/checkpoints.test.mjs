// Checkpoints on the source are written behind: they hold no batch up that waits, and the last is
// there when the replication is complete.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from './support/couch/index.mjs';
import { pouchesOnce } from './support/alike.mjs';
import { local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';

const { fast } = pouchesOnce(9);

test('batches that stock took ahead do not wait for checkpoints', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 80 });
  couch.faults.add({ when: { method: 'PUT', path: /_local/ }, times: Infinity, action: faults.delay(150) });
  const started = performance.now();
  const result = await local(t, fast).replicate.from(url, { batch_size: 10 });
  const seconds = (performance.now() - started) / 1000;
  assert.equal(result.docs_written, 80);
  // The first, the last, one that was under way, and one for each second.
  const writes = couch.matching(/^PUT .*_local/).length;
  assert.ok(writes <= 3 + seconds, `${writes} writes in ${seconds} s for 8 batches`);
  assert.deepEqual([...database.locals.values()].map(({ body }) => /** @type {any} */ (body).last_seq), [result.last_seq]);
});

// Where stock meets the feed's end while it is at a batch, no other checkpoint follows that batch's.
for (const docs of [1, 25]) {
  for (const direction of ['pull', 'push', 'pull, changes replaced', 'push, changes replaced']) {
    test(`the last one is there when the replication is complete: ${direction}, ${docs} documents`, async (t) => {
      const pulls = direction.startsWith('pull');
      const { couch, database, url } = await scene(t, { docs: pulls ? docs : 0 });
      couch.faults.add({ when: { path: /_local|_bulk_get|_bulk_docs/ }, times: Infinity, action: faults.delay(60) });
      const db = local(t, fast);
      if (!pulls) await db.bulkDocs(notes(docs));
      const remote = new fast(url);
      const source = pulls ? remote : db;
      if (direction.endsWith('replaced')) {
        const { changes } = source;
        source.changes = (/** @type {any[]} */ ...args) => changes.apply(source, args);
      }
      const result = await fast.replicate(source, pulls ? db : remote, { batch_size: 10 });
      assert.equal(result.docs_written, docs);
      const [[id, written]] = database.locals;
      const { last_seq: seq, session_id: session } = await db.get(id);
      const { body } = /** @type {any} */ (written);
      assert.deepEqual([body.last_seq, body.session_id], [seq, session]);
    });
  }
}
