// What nearly every test needs: a scripted CouchDB with a filled database, ended with the test.

import { createHash } from 'node:crypto';
import { startCouch } from './couch/index.mjs';

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./couch/index.mjs').CouchOptions & { docs?: number | any[] }} [options] how many
 *   small documents the database `db` gets, or which
 */
export async function scene(t, { docs = 0, ...options } = {}) {
  const couch = await startCouch(options);
  t.after(() => couch.stop());
  const database = couch.db('db');
  const list = typeof docs === 'number' ? notes(docs) : docs;
  if (list.length > 0) database.bulkDocs(list);
  return { couch, database, url: couch.dbUrl('db') };
}

/**
 * @param {number} count
 * @param {number} [from]
 */
export function notes(count, from = 0) {
  return Array.from({ length: count }, (_, at) => ({ _id: `note-${String(from + at).padStart(5, '0')}`, text: `number ${from + at}` }));
}

/** A revision with its history, as a replicator writes it. @param {string} id @param {string[]} revs newest first @param {any} [body] */
export function replicated(id, revs, body = {}) {
  const ids = revs.map((rev) => rev.replace(/^\d+-/, ''));
  return { _id: id, _rev: revs[0], _revisions: { start: parseInt(revs[0], 10), ids }, ...body };
}

/** A revision id of that generation, never the same hash in two. @param {number} generation @param {string} seed */
export const rev = (generation, seed) => `${generation}-${createHash('md5').update(`${generation} ${seed}`).digest('hex')}`;
