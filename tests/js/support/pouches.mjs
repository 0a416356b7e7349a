// PouchDBs for tests: of each supported version a stock constructor that never met the plugin
// and one with it, each from a module instance of its own; and fresh databases of this process,
// in memory or on disk, that are gone when the test is over.

import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import memory from 'pouchdb-adapter-memory';
import fastSync from '../../../dist/index.js';

const require = createRequire(import.meta.url);

/** Supported versions, newest first. */
export const versions = /** @type {const} */ ({ 9: 'pouchdb', 8: 'pouchdb8', 7: 'pouchdb7' });

/**
 * A PouchDB of its own: statics, prototype, cookies and what it found out about hosts are not
 * shared with any other.
 * @param {7 | 8 | 9} [version]
 * @returns {any}
 */
export function freshPouch(version = 9) {
  const name = versions[version];
  const inside = (/** @type {string} */ path) => path.includes(`${sep}node_modules${sep}${name}${sep}lib${sep}`);
  for (const path of Object.keys(require.cache)) if (inside(path)) delete require.cache[path];
  const PouchDB = require(name);
  for (const path of Object.keys(require.cache)) if (inside(path)) delete require.cache[path];
  // The memory adapter is written for PouchDB 9's; older ones keep to leveldb.
  return version === 9 ? PouchDB.plugin(memory) : PouchDB;
}

/**
 * @param {7 | 8 | 9} [version]
 * @returns {{ stock: any, fast: any }}
 */
export function pouches(version = 9) {
  return { stock: freshPouch(version), fast: freshPouch(version).plugin(fastSync) };
}

/**
 * A source that stock of PouchDB 7 reads completely. Of a document that lacks one revision, of
 * generation 1, it takes what `_all_docs` has: the winner, though a tombstone was missing and the
 * target holds the winner. Without an answer it asks for the revision, as later versions do.
 * @param {any} db
 */
export function wholly(db) {
  return Object.assign(db, { allDocs: async () => ({ rows: [] }) });
}

let opened = 0;

/**
 * A fresh local database, destroyed when the test ends.
 * @param {import('node:test').TestContext | { after: (fn: () => unknown) => void }} t
 * @param {any} PouchDB
 * @param {any} [options]
 * @returns {any}
 */
export function local(t, PouchDB, options = {}) {
  opened += 1;
  const inMemory = PouchDB.version.startsWith('9');
  const folder = inMemory ? '' : mkdtempSync(join(tmpdir(), 'fast-sync-'));
  const db = new PouchDB(inMemory ? `local-${process.pid}-${opened}` : join(folder, 'db'), {
    ...(inMemory ? { adapter: 'memory' } : {}), ...options,
  });
  t.after(async () => {
    if (!db._destroyed && !db._closed) await db.destroy();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
  return db;
}
