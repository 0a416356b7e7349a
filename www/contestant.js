// One contestant, in a worker of its own: syncs a database into a fresh one in the browser, and tells the page how it goes.
//
// Decides what the clock includes: from the first use of the URL to the end of the replication. Loading PouchDB and opening
// the empty local database come before, describing the result after; what the plugin does to get started (its engine is
// compiled on first use) is inside. The worker that runs stock never loads the plugin, since PouchDB.plugin() is for good.
import { describe } from '../demo/compare.mjs';
import { Meter } from './meter.js';

/** How often the page hears of progress, in ms. */
const TELL_EVERY = 50;
/** The browser lists a request a moment after its end, in ms. */
const LISTED_WITHIN = 150;

/**
 * @typedef {{name: string, plugin: boolean}} Place
 * @typedef {{url: string, auth?: {username: string, password: string}, batchSize?: number, concurrency?: number}} Sync
 * @typedef {{ms: number, docs: number, failures: number, requests: number, received: number, stoodAside: string | null}} Outcome
 * @typedef {{name?: string, status?: number, message: string}} Failure
 */

/** @type {any} */
const scope = globalThis;
const meter = new Meter((requests) => scope.postMessage({ requests }));
/** @type {any} */
let PouchDB;
/** @type {any} */
let local;

/** @type {Record<string, (arg: any) => Promise<any>>} */
const duties = {
  /** @param {Place} place */
  async open({ name, plugin }) {
    scope.importScripts('pouchdb.min.js', 'pouchdb.indexeddb.min.js', ...(plugin ? ['pouchdb-fast-sync.min.js'] : []));
    PouchDB = scope.PouchDB;
    await new PouchDB(name, { adapter: 'indexeddb' }).destroy(); // what a closed tab left
    local = new PouchDB(name, { adapter: 'indexeddb' });
    await local.info();
  },

  /** @param {Sync} sync @returns {Promise<Outcome>} */
  async sync({ url, auth, batchSize, concurrency }) {
    let debug = '', told = 0;
    PouchDB.on('debug', (/** @type {any[]} */ [[from, ...line]]) => { if (from === 'fast-sync') debug = line.join(' '); });
    const options = { ...(batchSize && { batch_size: batchSize }), ...(concurrency && { fastSync: { concurrency } }) };
    const progress = (/** @type {{docs_written: number}} */ { docs_written: docs }) => {
      const ms = meter.ms();
      if (ms - told < TELL_EVERY) return;
      told = ms;
      scope.postMessage({ progress: { docs, ms, received: meter.received } });
    };
    meter.start(url);
    // A handle that is not set up never creates the database, should it vanish after the page has looked.
    const replication = local.replicate.from(new PouchDB(url, { skip_setup: true, auth }), options);
    replication.on('change', progress);
    replication.on('progress', progress);
    const result = await replication;
    const ms = meter.ms();
    await new Promise((resolve) => setTimeout(resolve, LISTED_WITHIN));
    meter.stop();
    scope.postMessage({ progress: { docs: result.docs_written, ms, received: meter.received } });
    const stats = replication.fastSync?.stats;
    return {
      ms, docs: result.docs_written, failures: result.doc_write_failures, requests: meter.requests, received: meter.received,
      stoodAside: stats?.stock ? why(debug || stats.stock) : null,
    };
  },

  /** @returns {Promise<import('../demo/compare.mjs').Description>} */
  async describe() {
    let read = 0, told = performance.now();
    return describe({
      changes: (/** @type {any} */ options) => local.changes(options),
      get: (/** @type {string} */ id, /** @type {any} */ options) => {
        read++;
        if (performance.now() - told > TELL_EVERY) {
          told = performance.now();
          scope.postMessage({ described: read });
        }
        return local.get(id, options);
      },
    });
  },

  close: () => local.destroy(),
};

/** A refusal of WebAssembly comes from a policy, which is worth its own words. @param {string} said */
function why(said) {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
    return said;
  } catch {
    return 'wasm';
  }
}

scope.onmessage = async (/** @type {MessageEvent<{duty: string, arg: any}>} */ { data: { duty, arg } }) => {
  try {
    scope.postMessage({ done: duty, result: await duties[duty](arg) });
  } catch (error) {
    const { name, status, message, reason } = /** @type {any} */ (error);
    scope.postMessage({ failed: { name, status, message: reason || message || String(error) } });
  }
};
