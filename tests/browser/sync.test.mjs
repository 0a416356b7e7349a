// Stock and the plugin side by side in real browsers, on both IndexedDB adapters, from a server of
// another origin: both leave the same database, and say the same about it. FC_BROWSER_RUNS widens
// a run, FC_SEED repeats one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Histories, steps } from '../js/support/histories.mjs';
import { notes, scene } from '../js/support/scene.mjs';
import { compare, serverSnapshot, withAttachmentsOf } from '../js/support/snapshot.mjs';
import { inEachBrowser } from './support/browsers.mjs';
import { openTab } from './support/stage.mjs';

const ADAPTERS = ['indexeddb', 'idb'];
const SAMPLES = Number(process.env.FC_BROWSER_RUNS ?? 4);
const SEED = Number(process.env.FC_SEED ?? Math.floor(Math.random() * 2 ** 31));

/**
 * The indexeddb adapter cannot read the attachments of a leaf that is not the winner, whoever wrote
 * it: what is drawn for it has none where there may be several leaves.
 * @param {import('../js/support/histories.mjs').Step[]} drawn @param {Iterable<string>} forked ids
 */
function withoutForkedAttachments(drawn, forked) {
  const ids = new Set([...forked, ...drawn.filter(({ kind }) => kind === 'branch' || kind === 'root').map(({ id }) => id)]);
  return drawn.map((step) => (ids.has(step.id) ? { ...step, atts: null, keep: false } : step));
}

/** Both start from the same documents. @param {import('./support/stage.mjs').Tab} tab @param {string} adapter @param {any[]} own @param {[string, string, any?, any?]} replication */
async function both(tab, adapter, own, ...replication) {
  const seen = {};
  for (const who of ['stock', 'fast']) {
    const { stock, events: _, ...told } = await tab.sync(`${who}-${adapter}`, adapter, own, ...replication);
    seen[who] = { ...told, docs: told.docs.sort(), contents: await tab.contents(`${who}-${adapter}`) };
    if (who === 'fast') assert.equal(stock, null, 'the plugin did the work');
  }
  const { stock: { contents: a, ...stock }, fast: { contents: b, ...fast } } = /** @type {any} */ (seen);
  assert.deepEqual(fast, stock);
  return { stock: a, fast: b, told: fast };
}

inEachBrowser((kind) => {
  for (const adapter of ADAPTERS) {
    const name = (/** @type {string} */ what) => `${kind.name}, ${adapter}: ${what}`;

    test(name(`whatever happened on the server (FC_SEED=${SEED})`), async (t) => {
      const drawn = fc.record({ before: steps({ minLength: 10, maxLength: 40 }), own: steps({ minLength: 0, maxLength: 3 }), batch: fc.constantFrom({}, { batch_size: 3 }), held: fc.nat(20) });
      for (const [at, { before, own, batch, held }] of fc.sample(drawn, { numRuns: SAMPLES, seed: SEED }).entries()) {
        await t.test(`sample ${at}`, async (t) => {
          const { database, url } = await scene(t);
          const histories = new Histories();
          const docs = histories.write(adapter === 'idb' ? before : withoutForkedAttachments(before, own.map(({ id }) => id)));
          for (const doc of docs) database.bulkDocs([structuredClone(doc)], { new_edits: false });
          const target = at % 2 === 0 ? [] : [...docs.slice(0, held), ...new Histories(histories).write(own.map((step) => ({ ...step, atts: null })))];
          const tab = await openTab(t, kind);
          const { stock, fast } = await both(tab, adapter, target, 'pull', url, batch);
          const server = serverSnapshot(database);
          // Of a document that the target holds, stock fetches attachments without naming the revision.
          compare(target.length > 0 ? withAttachmentsOf(stock, server) : stock, fast, 'stock and the plugin');
          if (target.length === 0) compare(server, fast, 'the server and the plugin');
          assert.deepEqual(tab.messages, []);
        });
      }
    });

    test(name('attachments are Blobs with their types and bytes'), async (t) => {
      const { database, url } = await scene(t);
      const data = (/** @type {string | Buffer} */ content) => Buffer.from(content).toString('base64');
      const files = {
        // CouchDB stores text compressed.
        'text ü.txt': { content_type: 'text/plain', data: data('Zürich 🙂 '.repeat(4000)) },
        'page.html': { content_type: 'text/html; charset=utf-8', data: data('<p>') },
        'empty.bin': { content_type: 'application/octet-stream', data: '' },
        'noise.png': { content_type: 'image/png', data: data(Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n * n + (n >> 8)) % 256))) },
        'lines.csv': { content_type: 'text/csv', data: data('--boundary\r\n\r\n--\r\n') },
      };
      database.bulkDocs([{ _id: 'all', _attachments: files }, ...notes(30)]);
      for (const [file, attachment] of Object.entries(files)) database.bulkDocs([{ _id: `only ${file}`, _attachments: { a: attachment } }]);
      const tab = await openTab(t, kind);
      const { stock, fast } = await both(tab, adapter, [], 'pull', url);
      compare(stock, fast, 'stock and the plugin');
      compare(serverSnapshot(database), fast, 'the server and the plugin');
      const [a, b] = [await tab.call('blobs', `stock-${adapter}`), await tab.call('blobs', `fast-${adapter}`)];
      assert.deepEqual(b, a);
      assert.equal(b.length, 10);
      for (const { id, isBlob, type, content_type } of b) assert.deepEqual([isBlob, type], [true, content_type.replace('; ', ';')], id);
    });

    test(name('a first sync in several batches and parts: equal, and cheaper than stock\'s'), async (t) => {
      const { couch, database, url } = await scene(t, { docs: 620 });
      const tab = await openTab(t, kind);
      const costs = [];
      for (const who of ['stock', 'fast']) {
        couch.clearLog();
        const { result, stock } = await tab.sync(`${who}-large`, adapter, [], 'pull', url);
        assert.deepEqual([result.status, result.docs_written], ['complete', 620]);
        if (who === 'fast') assert.equal(stock, null);
        costs.push({ requests: couch.count(), preflights: couch.preflights });
      }
      assert.ok(costs[1].requests < costs[0].requests / 2 && costs[1].preflights < costs[0].preflights, JSON.stringify(costs));
      compare(serverSnapshot(database), await tab.contents('fast-large'), 'the server and the plugin');
      // Nothing is left to be done, for stock either.
      couch.clearLog();
      const again = await tab.call('run', 'fast-large', 'pull', url, { fastSync: false });
      assert.equal(again.result.docs_read, 0);
      assert.equal(couch.count(/_bulk_get/), 0);
    });

    test(name('a part of a batch that cannot be written'), async (t) => {
      const { database, url } = await scene(t, { docs: 500 });
      const tab = await openTab(t, kind);
      const errors = [];
      for (const [who, after] of [['stock', 0], ['fast', 2]]) {
        await tab.call('open', `${who}-full`, adapter);
        await tab.call('failWrite', `${who}-full`, after);
        const { error } = await tab.call('run', `${who}-full`, 'pull', url, { batch_size: 500 });
        errors.push(error);
      }
      assert.deepEqual(errors[1], errors[0]);
      const written = await tab.call('count', 'fast-full');
      assert.ok(written > 0 && written < 500, `the first parts stay: ${written}`);
      await tab.call('run', 'fast-full', 'pull', url);
      compare(serverSnapshot(database), await tab.contents('fast-full'), 'the server and the plugin');
    });

    test(name('a push, and both directions with conflicts'), async (t) => {
      const tab = await openTab(t, kind);
      const pushed = [];
      const drawn = fc.sample(steps({ minLength: 30, maxLength: 30 }), { numRuns: 1, seed: SEED })[0];
      const own = new Histories().write(adapter === 'idb' ? drawn : withoutForkedAttachments(drawn, []));
      for (const who of ['stock', 'fast']) {
        const { database, url } = await scene(t);
        const { result, stock } = await tab.sync(`${who}-push`, adapter, own, 'push', url);
        assert.equal(result?.status, 'complete');
        if (who === 'fast') assert.equal(stock, null);
        compare(await tab.contents(`${who}-push`), serverSnapshot(database), 'the browser and the server');
        pushed.push(result.docs_written);
      }
      assert.equal(pushed[1], pushed[0]);

      const { database, url } = await scene(t, { docs: 60 });
      await tab.call('open', 'fast-two', adapter);
      await tab.call('write', 'fast-two', notes(20, 50).map((note) => ({ ...note, text: 'of the browser' })));
      const { error } = await tab.call('run', 'fast-two', 'sync', url);
      assert.equal(error, undefined);
      compare(serverSnapshot(database), await tab.contents('fast-two'), 'the server and the browser');
      assert.equal(database.docs.size, 70);
    });
  }
});
