// Attachments on their way past stock's replicator, which would fetch each by
// its own request: they are taken off the documents on the source's side, and
// put back on when the target is written.
import { binary } from './platform.js';

/** Most attachments of one batch fetched at once. */
const AT_ONCE = 5;

/** @type {WeakMap<any, any>} */
const off = new WeakMap();

/**
 * Fetches what is missing of the attachments, and takes them off.
 * @param {any} answer of `_bulk_get`
 * @param {import('./link.js').Link} link
 */
export async function detach(answer, link) {
  /** @type {(() => Promise<void>)[]} */
  const fetches = [];
  for (const { docs } of answer.results) {
    for (const { ok: doc } of docs) {
      if (!doc?._attachments) continue;
      for (const [name, attachment] of Object.entries(doc._attachments)) {
        if (attachment.data === undefined) fetches.push(() => fill(doc, name, attachment, link));
      }
      off.set(doc, doc._attachments);
      delete doc._attachments;
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, fetches.length) }, async () => {
    for (let next = fetches.pop(); next; next = fetches.pop()) await next();
  }));
}

/**
 * Puts back what {@link detach} took off.
 * @param {any} doc
 */
export function attach(doc) {
  const attachments = off.get(doc);
  if (attachments) doc._attachments = attachments;
  off.delete(doc);
}

/**
 * With the revision: without it, stock gives a losing leaf the winner's bytes.
 * @param {any} doc
 * @param {string} name
 * @param {any} attachment
 * @param {import('./link.js').Link} link
 */
async function fill(doc, name, attachment, link) {
  const { sourceRemote, source } = link;
  const db = sourceRemote?.pristine('getAttachment') ? sourceRemote.twin : source;
  const found = await db.getAttachment(doc._id, name, { rev: doc._rev });
  const bytes = typeof found.arrayBuffer === 'function' ? new Uint8Array(await found.arrayBuffer()) : found;
  attachment.data = binary(bytes, attachment.content_type);
  delete attachment.stub;
  delete attachment.length;
}
