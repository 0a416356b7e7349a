// The one small sync that every environment does, the server for it, and how to
// see from the server's side whether the plugin did the work. `syncOnce` is
// handed over as source text: it must not use anything outside itself.
import assert from 'node:assert/strict';
import { startCouch } from '../../js/support/couch/index.mjs';

const notes = 40;

/**
 * A server with a small database, edits, a tombstone and an attachment in it.
 * @param {import('node:test').TestContext} t
 */
export async function startNotes(t) {
  const couch = await startCouch();
  t.after(() => couch.stop());
  const db = couch.db('notes');
  for (let n = 0; n < notes; n++) {
    const { rev } = db.put({ _id: `note-${n}`, text: `Zürich ${n} 🙂` });
    if (n % 4 === 0) db.put({ _id: `note-${n}`, _rev: rev, text: `edited ${n}` });
  }
  const gone = db.put({ _id: 'gone' });
  db.put({ _id: 'gone', _rev: gone.rev, _deleted: true });
  const data = Buffer.from('attached').toString('base64');
  db.put({ _id: 'attached', _attachments: { 'a.txt': { content_type: 'text/plain', data } } });
  return couch;
}

/**
 * @param {any} PouchDB with the plugin
 * @param {string} url
 * @param {object} [options] of the local database
 */
export async function syncOnce(PouchDB, url, options) {
  const db = new PouchDB(`local-${Math.random().toString(36).slice(2)}`, options);
  const result = await db.replicate.from(url);
  const { rows } = await db.allDocs({ include_docs: true });
  const attachment = await db.getAttachment('attached', 'a.txt');
  const attached = typeof attachment.text === 'function' ? await attachment.text() : attachment.toString();
  await db.destroy();
  return { ok: result.ok, written: result.docs_written, docs: rows.length, text: rows[1].doc.text, attached };
}

/**
 * @param {Awaited<ReturnType<typeof syncOnce>>} outcome
 */
export function assertSynced(outcome) {
  const expected = { ok: true, written: notes + 2, docs: notes + 1, text: 'edited 0', attached: 'attached' };
  assert.deepEqual(outcome, expected);
}

/**
 * Stock asks for the latest of every revision; the plugin only when asked again.
 * @param {Awaited<ReturnType<typeof startNotes>>} couch
 */
export function usedThePlugin(couch) {
  return couch.count(/_bulk_get\?/) > 0 && couch.count(/latest=true/) === 0;
}

/**
 * @param {Awaited<ReturnType<typeof syncOnce>>} outcome
 * @param {Awaited<ReturnType<typeof startNotes>>} couch
 */
export function assertSyncedByThePlugin(outcome, couch) {
  assertSynced(outcome);
  assert.ok(usedThePlugin(couch), `stock did the work: ${couch.log.map(({ method, url }) => `${method} ${url}`).join(', ')}`);
}
