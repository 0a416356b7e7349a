// Checkpoints on the source are written behind: they hold no batch up that waits, and the last is
// there when the replication is complete.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from './support/couch/index.mjs';
import { pouchesOnce } from './support/alike.mjs';
import { local } from './support/pouches.mjs';
import { scene } from './support/scene.mjs';

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
