// Two devices and a server, and people who edit on all three: what happens is drawn, and done
// alike whichever of the devices has the plugin.

import fc from 'fast-check';
import { local } from './pouches.mjs';

/** @typedef {{ where: 'a' | 'b' | 'server', kind: 'put' | 'delete' | 'attach' | 'sync', id: string, value: number }} Deed */

/** @type {fc.Arbitrary<Deed>} */
const deed = /** @type {any} */ (fc.record({
  where: fc.constantFrom('a', 'b', 'server'),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('put') }, { weight: 3, arbitrary: fc.constant('sync') },
    { weight: 2, arbitrary: fc.constant('delete') }, { weight: 1, arbitrary: fc.constant('attach') },
  ),
  id: fc.constantFrom('one', 'two', 'three/3', 'constructor', '_design/four', 'ü 5'),
  value: fc.nat(5),
}));

/** @param {{ minLength: number, maxLength: number }} size */
export const deeds = (size) => fc.array(deed, size);

/**
 * An edit as somebody makes it who sees the winner.
 * @param {any} db a PouchDB, or the server's database as {@link onServer} shows it
 * @param {Deed} deed
 */
export async function edit(db, { kind, id, value }) {
  const known = await db.get(id).catch(() => null);
  if (kind === 'delete') return known && db.put({ _id: id, _rev: known._rev, _deleted: true });
  // The same bytes in every revision: for a leaf that loses, stock asks for the winner's.
  const attachment = { note: { content_type: 'text/plain', data: Buffer.from(`of ${id}`.repeat(50)).toString('base64') } };
  const attachments = kind === 'attach' ? { _attachments: attachment } : known?._attachments && { _attachments: known._attachments };
  return db.put({ _id: id, ...(known && { _rev: known._rev }), value, ...attachments });
}

/** @param {import('./couch/database.mjs').Database} database */
export const onServer = (database) => ({
  async get(/** @type {string} */ id) {
    const doc = database.get(id);
    if (!doc || doc._deleted) throw new Error('missing');
    return doc;
  },
  put: async (/** @type {any} */ doc) => database.put(doc),
});

/**
 * @param {any[]} PouchDBs of the two devices
 * @param {(devices: any[]) => Promise<any>} use
 */
export async function withDevices(PouchDBs, use) {
  /** @type {(() => unknown)[]} */
  const after = [];
  try {
    return await use(PouchDBs.map((PouchDB) => local({ after: (fn) => after.push(fn) }, PouchDB)));
  } finally {
    for (const fn of after) await fn();
  }
}
