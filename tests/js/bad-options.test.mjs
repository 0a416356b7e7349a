// Options of the plugin that are unknown or not of their type are refused at once, by a TypeError
// that names the option and says what is allowed; good ones are taken.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastSync from '../../dist/index.js';
import { pouchesOnce } from './support/alike.mjs';
import { local } from './support/pouches.mjs';
import { scene } from './support/scene.mjs';

const { fast } = pouchesOnce(9);

/** @type {[any, RegExp][]} */
const bad = [
  [{ concurency: 2 }, /"concurency".*concurrency, maxBufferBytes, stallTimeout/],
  [{ concurrency: 0 }, /"concurrency".*1 to 6.*got 0/],
  [{ concurrency: 7 }, /"concurrency".*1 to 6/],
  [{ concurrency: 1.5 }, /"concurrency".*1 to 6/],
  [{ concurrency: '2' }, /"concurrency".*1 to 6.*"2"/],
  [{ concurrency: NaN }, /"concurrency"/],
  [{ concurrency: null }, /"concurrency"/],
  [{ maxBufferBytes: 1 }, /"maxBufferBytes".*65536/],
  [{ maxBufferBytes: Infinity }, /"maxBufferBytes"/],
  [{ maxBufferBytes: '8e6' }, /"maxBufferBytes"/],
  [{ stallTimeout: 10 }, /"stallTimeout".*1000/],
  [{ stallTimeout: [2000] }, /"stallTimeout".*an array/],
  [{ stallTimeout: 2 ** 31 }, /"stallTimeout".*2147483647/],
  [{ constructor: 1 }, /"constructor"/],
  [JSON.parse('{"__proto__": 1}'), /"__proto__"/],
  ['fast', /"fast"/],
  [1, /got 1/],
  [null, /null/],
  [[], /an array/],
];

for (const [given, message] of bad) {
  test(`refused: ${JSON.stringify(given)}`, async (t) => {
    const { url, couch } = await scene(t);
    const db = local(t, fast);
    const refused = (/** @type {any} */ error) => error instanceof TypeError && /fastSync/.test(error.message) && message.test(error.message);
    assert.throws(() => fastSync.with(given), refused);
    for (const start of [
      () => db.replicate.from(url, { fastSync: given }), () => db.replicate.to(url, { fastSync: given }),
      () => fast.replicate(url, db, { fastSync: given }), () => db.sync(url, { fastSync: given }), () => fast.sync(db, url, { fastSync: given }),
    ]) assert.throws(start, refused);
    assert.equal(couch.count(), 0, 'nothing was asked');
  });
}

for (const given of [undefined, true, {}, { concurrency: 1 }, { concurrency: 6, maxBufferBytes: 65536, stallTimeout: 1000 }, { maxBufferBytes: 8e6 }, { concurrency: undefined }]) {
  test(`taken: ${JSON.stringify(given)}`, async (t) => {
    const { url } = await scene(t, { docs: 20 });
    const replication = local(t, fast).replicate.from(url, { fastSync: given });
    assert.equal((await replication).docs_written, 20);
    assert.ok(replication.fastSync);
  });
}

test('not inside push or pull of a sync', async (t) => {
  const { url, couch } = await scene(t);
  const db = local(t, fast);
  for (const direction of ['push', 'pull']) {
    assert.throws(() => db.sync(url, { [direction]: { fastSync: { concurrency: 2 } } }), /beside "push" and "pull"/);
  }
  assert.equal(couch.count(), 0, 'nothing was asked');
});

test('wasm is bytes, a URL or a module', () => {
  assert.throws(() => fastSync.with({ wasm: /** @type {any} */ (5) }), /"wasm" must be bytes/);
});

test('wasm belongs to fastSync.with', async (t) => {
  const { url } = await scene(t);
  const db = local(t, fast);
  assert.throws(() => db.replicate.from(url, { fastSync: { wasm: new Uint8Array(8) } }), /unknown option "wasm"/);
  assert.throws(() => fastSync.with({ wasm: /** @type {any} */ (null) }), /"wasm" must be/);
});

test('concurrency is kept to', async (t) => {
  const { couch, url } = await scene(t, { docs: 1500 });
  couch.latency = 10;
  await local(t, fast).replicate.from(url, { fastSync: { concurrency: 1 } });
  assert.equal(couch.peak(/_bulk_get/), 1);
});

test('what is read ahead is bounded', async (t) => {
  const docs = Array.from({ length: 1500 }, (_, at) => ({ _id: `big-${at}`, text: 'x'.repeat(5000) }));
  const { database, url } = await scene(t, { docs });
  // As the real one, it tells how large its documents are.
  const info = database.info();
  database.info = () => ({ ...info, sizes: { file: 0, active: 0, external: 1500 * 5000 } });
  const replication = local(t, fast).replicate.from(url, { batch_size: 20, fastSync: { maxBufferBytes: 1e6 } });
  assert.equal((await replication).docs_written, 1500);
  const { peakBufferBytes } = replication.fastSync.stats;
  assert.ok(peakBufferBytes > 100_000 && peakBufferBytes < 1.5e6, String(peakBufferBytes));
});

test('PouchDB without replication is told so', () => {
  assert.throws(() => fastSync({ prototype: {} }), /pouchdb-replication/);
});
