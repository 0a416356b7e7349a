// The contract is what stock does: a play is run with stock and with the plugin, each with a server
// of its own that holds the same, and what it saw has to be equal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { local, pouches } from './pouches.mjs';
import { scene } from './scene.mjs';

/**
 * @typedef {{ t: import('node:test').TestContext, PouchDB: any, couch: import('./couch/index.mjs').Couch,
 *   database: import('./couch/database.mjs').Database, url: string, db: any, isFast: boolean }} Stage
 */

/** @type {Map<number, { stock: any, fast: any }>} */
const made = new Map();

/** @param {7 | 8 | 9} version */
export function pouchesOnce(version) {
  if (!made.has(version)) made.set(version, pouches(version));
  return /** @type {{ stock: any, fast: any }} */ (made.get(version));
}

/**
 * A test of both.
 * @param {string} name
 * @param {(stage: Stage) => Promise<any>} play what it answers must be the same
 * @param {{ pouch?: 7 | 8 | 9, check?: (seen: any) => void, timeout?: number } & Parameters<typeof scene>[1]} [options]
 *   `check` looks at what was seen, so that two failures alike do not pass
 */
export function alike(name, play, { pouch = 9, check = () => {}, timeout = 30_000, ...options } = {}) {
  test(name, { timeout }, async (t) => {
    const { stock, fast } = pouchesOnce(pouch);
    const seen = [];
    for (const PouchDB of [stock, fast]) {
      const { couch, database, url } = await scene(t, options);
      const stage = { t, PouchDB, couch, database, url, db: local(t, PouchDB), isFast: PouchDB === fast };
      seen.push(await play(stage));
    }
    assert.deepEqual(seen[1], seen[0], 'the plugin as stock');
    check(seen[1]);
  });
}

/** The counter that an opaque seq begins with, so that two servers can be compared. @param {any} seq */
export const counter = (seq) => (typeof seq === 'string' ? parseInt(seq, 10) : seq);

/**
 * What an error tells its receiver.
 * @param {any} error
 */
export function told(error) {
  if (!error) return error;
  const { name, status, message, reason, result } = error;
  return {
    name, status, message, reason,
    result: result && { ok: result.ok, status: result.status, docs_read: result.docs_read, docs_written: result.docs_written, last_seq: counter(result.last_seq) },
  };
}
