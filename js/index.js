// The public face: the plugin, and the two functions that work without it.
import { load } from './load.js';
import { check } from './options.js';
import { install } from './plugin.js';

/**
 * Install with `PouchDB.plugin(fastSync)`, or with settings for every
 * replication: `PouchDB.plugin(fastSync.with({ concurrency: 2 }))`.
 * @param {any} PouchDB the constructor that `PouchDB.plugin` hands over
 */
export default function fastSync(PouchDB) {
  install(PouchDB, {});
}

/**
 * @param {import('./options.js').Options} options
 * @returns {(PouchDB: any) => void}
 * @throws {TypeError} an option is unknown, or not of its type
 */
fastSync.with = (options) => {
  const { wasm, ...settings } = check(options, 'fastSync.with');
  load.bytes ??= wasm;
  return (/** @type {any} */ PouchDB) => install(PouchDB, settings);
};

/**
 * The documents that `diffs` names, with the contract of PouchDB's internal
 * function of that name.
 * @param {any} src
 * @param {any} target
 * @param {Record<string, { missing: string[] }>} diffs as `revsDiff` answers them
 * @param {{ cancelled?: boolean }} state
 * @returns {Promise<{ ok: boolean, docs: any[] }>}
 */
export async function getDocs(src, target, diffs, state) {
  return (await load()).getDocs(src, target, diffs, state);
}

/**
 * `db.bulkGet(options)`, fast on a remote database.
 * @param {any} db
 * @param {{ docs: { id: string, rev?: string }[], revs?: boolean, latest?: boolean, attachments?: boolean, binary?: boolean }} options
 * @returns {Promise<{ results: { id: string, docs: any[] }[] }>}
 */
export async function bulkGet(db, options) {
  return (await load()).bulkGet(db, options);
}
