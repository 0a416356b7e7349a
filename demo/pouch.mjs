// Loads PouchDB as a contestant has it: stock, or with the plugin.
//
// Decides what the contestants are called and what they are. A process loads one of them: PouchDB.plugin() changes the
// constructor for good, so that a stock figure is only believable from a process that never saw the plugin.
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);

/** The plugin as a user's `import` finds it. */
export const PLUGIN = fileURLToPath(new URL('../dist/index.js', import.meta.url));

/** What an informed user of stock PouchDB sets. */
const TUNED = { batch_size: 1000 };

/** @typedef {'stock' | 'tuned' | 'fast'} Contestant */
/** @type {Record<Contestant, {title: string, options: Record<string, any>, plugin: boolean}>} */
export const CONTESTANTS = {
  stock: { title: 'stock', options: {}, plugin: false },
  tuned: { title: 'stock, batch_size: 1000', options: TUNED, plugin: false },
  fast: { title: 'pouchdb-fast-sync', options: {}, plugin: true },
};

/**
 * @param {Contestant} contestant
 * @param {string} [plugin] the file to import, when it is not the one that was built
 * @returns {Promise<any>} the PouchDB constructor, with the memory adapter
 */
export async function loadPouchDB(contestant, plugin = PLUGIN) {
  const PouchDB = require('pouchdb').plugin(require('pouchdb-adapter-memory'));
  if (CONTESTANTS[contestant].plugin) {
    if (!existsSync(plugin)) throw new Error('the plugin is not built: run `npm run build`');
    PouchDB.plugin((await import(pathToFileURL(plugin).href)).default);
  }
  return PouchDB;
}
