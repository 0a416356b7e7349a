// The `progress` event, the plugin's own, and the statistics.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { until } from './support/observe.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';

const { fast } = pouchesOnce(9);
const FIELDS = ['phase', 'docs_written', 'bytes', 'total', 'pending', 'rate', 'remaining'];

/** @param {any} emitter */
function collect(emitter) {
  /** @type {any[]} */
  const events = [];
  emitter.on('progress', (/** @type {any} */ event) => events.push(event));
  return events;
}

test('a pull: from the first batch to the last', async (t) => {
  const { couch, url } = await scene(t, { docs: 250 });
  couch.latency = 5;
  const replication = local(t, fast).replicate.from(url, { batch_size: 50 });
  const events = collect(replication);
  await replication;
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(events.length >= 6);
  for (const event of events) {
    assert.deepEqual(Object.keys(event), FIELDS);
    assert.ok(['reading', 'writing', 'complete'].includes(event.phase), event.phase);
    assert.equal(event.total, 250, 'known from the first batch on');
    assert.ok(event.pending >= 0 && event.pending <= 200);
    assert.ok(event.rate >= 0 && Number.isFinite(event.rate));
    assert.ok(event.remaining === null || (event.remaining >= 0 && Number.isFinite(event.remaining)));
  }
  const rising = (/** @type {string} */ field) => events.every((event, at) => at === 0 || event[field] >= events[at - 1][field]);
  assert.ok(rising('docs_written') && rising('bytes'));
  assert.equal(events.filter(({ phase }) => phase === 'complete').length, 1);
  const last = events.at(-1);
  assert.deepEqual([last.phase, last.docs_written, last.pending, last.remaining], ['complete', 250, 0, 0]);
  assert.ok(last.bytes > 250 * 20);
});

test('a pull that goes on: only what is new counts as written, and the total is what is left', async (t) => {
  const { database, url } = await scene(t, { docs: 100 });
  const db = local(t, fast);
  await db.replicate.from(url);
  database.bulkDocs(notes(30, 500));
  const replication = db.replicate.from(url, { batch_size: 10 });
  const events = collect(replication);
  await replication;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([events.at(-1).docs_written, events.at(-1).total], [30, 30]);
});

test('nothing to do', async (t) => {
  const { url } = await scene(t);
  const replication = local(t, fast).replicate.from(url);
  const events = collect(replication);
  await replication;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(events.at(-1).phase, 'complete');
  assert.equal(events.at(-1).docs_written, 0);
});

test('sync: with the direction', async (t) => {
  const { url } = await scene(t, { docs: 40 });
  const db = local(t, fast);
  await db.bulkDocs(notes(7, 900));
  const sync = db.sync(url);
  const [events, pulled] = [collect(sync), collect(sync.pull)];
  await sync;
  await new Promise((resolve) => setImmediate(resolve));
  const last = (/** @type {string} */ direction) => events.filter((event) => event.direction === direction).at(-1);
  assert.deepEqual([last('pull').docs_written, last('pull').phase], [40, 'complete']);
  assert.deepEqual([last('push').docs_written, last('push').phase], [7, 'complete']);
  assert.ok(pulled.every(({ direction }) => direction === undefined));
});

test('a replication that fails says nothing of an end', async (t) => {
  const { couch, url } = await scene(t, { docs: 40 });
  couch.faults.add({ when: { path: /_changes/ }, times: Infinity, action: faults.html(200) });
  const replication = local(t, fast).replicate.from(url);
  const events = collect(replication);
  await assert.rejects(replication);
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(events.every(({ phase }) => phase !== 'complete'));
});

test('statistics tell what went over the wire', async (t) => {
  const { couch, url } = await scene(t, { docs: 300 });
  const replication = local(t, fast).replicate.from(url);
  await replication;
  const { stats } = replication.fastSync;
  assert.equal(stats.stock, null);
  assert.equal(stats.requestsTotal, couch.count());
  assert.equal(stats.requests.feed, couch.count(/_changes/));
  assert.equal(stats.requests.docs, couch.count(/_bulk_get/));
  assert.equal(stats.docsWritten, 300);
  assert.deepEqual([stats.retries, stats.failures, stats.gone, stats.goneRevisions, stats.singleGets], [0, 0, 0, [], false]);
  const answered = couch.log.reduce((sum, { bytesOut }) => sum + bytesOut, 0);
  assert.ok(stats.bytes > answered / 2 && stats.bytes < answered * 1.2, `${stats.bytes} of ${answered}`);
  for (const name of ['total', 'feed', 'documents', 'diff', 'write']) assert.ok(stats.ms[name] >= 0, name);
  assert.ok(stats.ms.total > 0 && stats.ms.write > 0 && stats.ms.feed > 0 && stats.ms.documents > 0);
  assert.doesNotThrow(() => JSON.stringify(stats));
});

test('statistics while it runs, and after it was cancelled', async (t) => {
  const { url } = await scene(t, { docs: 200 });
  const replication = local(t, fast).replicate.from(url, { live: true, batch_size: 20 });
  assert.ok(replication.fastSync.stats, 'from the first moment');
  await until(replication, 'change');
  assert.ok(replication.fastSync.stats.docsWritten >= 20);
  assert.ok(replication.fastSync.stats.requestsTotal > 0);
  replication.cancel();
  await replication;
  assert.ok(replication.fastSync.stats.docsWritten >= 20);
});

test('statistics of a sync: of each direction', async (t) => {
  const { url } = await scene(t, { docs: 40 });
  const db = local(t, fast);
  await db.bulkDocs(notes(7, 900));
  const sync = db.sync(url);
  await sync;
  const { push, pull } = sync.fastSync.stats;
  assert.deepEqual([push.docsWritten, pull.docsWritten], [7, 40]);
});

test('statistics name what is gone and how it was asked for', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 10 });
  database.bulkDocs([replicated('lost', [rev(2, 'l'), rev(1, 'l')])], { new_edits: false });
  couch.faults.add({ when: { path: /_bulk_get/ }, times: Infinity, action: faults.missingInResults(['lost']) });
  const replication = local(t, fast).replicate.from(url);
  await replication;
  assert.equal(replication.fastSync.stats.gone, 1);
  assert.deepEqual(replication.fastSync.stats.goneRevisions, [`lost@${rev(2, 'l')}`]);
});

test('where stock does the work, the statistics say why', async (t) => {
  const { url } = await scene(t, { docs: 10 });
  const remote = new fast(url);
  remote._remote = true;
  const { _changes } = remote;
  remote._changes = (/** @type {any[]} */ ...args) => _changes.apply(remote, args);
  const replication = local(t, fast).replicate.from(remote);
  assert.equal((await replication).docs_written, 10);
  assert.ok('stock' in replication.fastSync.stats);
});
