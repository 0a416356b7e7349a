// One contestant of the demo, in a process of its own: syncs a database into a fresh one in memory, times and counts it,
// and tells its parent how it goes and what it was left with.
//
// Decides what the clock includes: from the first use of the URL to the end of the replication. Loading PouchDB and opening
// the empty local database come before, describing the result comes after. What the plugin does to get started (its
// engine is compiled on first use) is inside.
import { once } from 'node:events';
import { CONTESTANTS, loadPouchDB } from './pouch.mjs';
import { describe } from './compare.mjs';
import { countWire } from './wire.mjs';

/** How often the parent hears of progress, in ms. */
const TELL_EVERY = 50;

/** @typedef {{contestant: import('./pouch.mjs').Contestant, url: string, skipSetup: boolean}} Job */
/** @typedef {{ms: number, docs: number, failures: number, requests: number, bytes: number, description: import('./compare.mjs').Description}} Outcome */

/** @param {Job} job @param {(docs: number, ms: number) => void} tell @returns {Promise<Outcome>} */
async function run({ contestant, url, skipSetup }, tell) {
  const PouchDB = await loadPouchDB(contestant);
  const local = new PouchDB('local', { adapter: 'memory' });
  await local.info();
  const counted = countWire();
  let told = 0;
  const start = performance.now();
  const progress = (/** @type {number} */ docs) => {
    const now = performance.now();
    if (now - told < TELL_EVERY) return;
    told = now;
    tell(docs, now - start);
  };
  // A handle that is not set up never creates the database, should it vanish after the parent has looked.
  const source = skipSetup ? new PouchDB(url, { skip_setup: true }) : url;
  const replication = local.replicate.from(source, CONTESTANTS[contestant].options);
  replication.on('change', (/** @type {any} */ info) => progress(info.docs_written));
  replication.on('progress', (/** @type {any} */ info) => progress(info.docs_written));
  const result = await replication;
  const ms = performance.now() - start;
  const { requests, bytes } = counted();
  tell(result.docs_written, ms);
  process.send?.({ synced: true });
  return { ms, docs: result.docs_written, failures: result.doc_write_failures, requests, bytes, description: await describe(local) };
}

process.once('disconnect', () => process.exit(0));
const [job] = await once(process, 'message');
try {
  const outcome = await run(job, (docs, ms) => void process.send?.({ docs, ms }));
  process.send?.({ outcome }, () => process.exit(0));
} catch (error) {
  const { name, message, reason, status } = /** @type {any} */ (error);
  process.send?.({ failed: [name, status, message || reason].filter(Boolean).join(': ') }, () => process.exit(1));
}
