// Attachments on their way past stock's replicator, which would fetch each by
// its own request: they are taken off the documents on the source's side, and
// put back on when the target is written. Most come with their documents in a
// stream (src/wasm/attachments.rs); what is still a stub here is looked for on
// the target, or fetched.
import { binary } from './platform.js';

/** Most attachments fetched at once, one by one. */
const AT_ONCE = 5;

/** @type {WeakMap<any, any>} */
const off = new WeakMap();

/**
 * Makes the attachments whole, and takes them off.
 * @param {any} answer of `_bulk_get`
 * @param {import('./link.js').Link} link
 */
export async function detach(answer, link) {
  /** @type {(() => Promise<void>)[]} */
  const work = [];
  for (const { docs } of answer.results) {
    for (const { ok: doc } of docs) {
      if (!doc?._attachments) continue;
      const stubs = Object.entries(doc._attachments).filter(([, { data }]) => data === undefined);
      if (stubs.length > 0) work.push(() => complete(doc, stubs, link));
      off.set(doc, doc._attachments);
      delete doc._attachments;
    }
  }
  const lanes = Array.from({ length: Math.min(AT_ONCE, work.length) }, async () => {
    for (let next = work.pop(); next; next = work.pop()) await next();
  });
  await Promise.all(lanes);
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
 * An attachment that the server left out, because an ancestor that the target
 * has holds it, stays a stub, with the target's digest: CouchDB's is of the bytes
 * as stored, which may be compressed. Of one with `revpos` 0 CouchDB does not know
 * where it came in, and leaves it out in any case; and a leaf of another branch is
 * no ancestor. There only an equal digest tells; all else is fetched.
 * @param {any} doc
 * @param {[string, any][]} stubs
 * @param {import('./link.js').Link} link
 */
async function complete(doc, stubs, link) {
  if (link.targetRemote) {
    // A stub has to name the very attachment that the server has: stock sends none.
    for (const [name, attachment] of stubs) await fetchOne(doc, name, attachment, link);
    return;
  }
  const leaf = link.leaves.get(doc._id);
  const { start, ids } = doc._revisions;
  const inherits = ids.some((/** @type {string} */ id, /** @type {number} */ at) => `${start - at}-${id}` === leaf);
  const held = await link.target.get(doc._id, leaf ? { rev: leaf } : {}).then(
    (/** @type {any} */ found) => found._attachments ?? {}, () => ({}));
  for (const [name, attachment] of stubs) {
    const own = Object.hasOwn(held, name) ? held[name] : undefined;
    const known = attachment.stub && attachment.revpos > 0 && inherits;
    if (own && (known || own.digest === attachment.digest)) {
      // Stock hands over the bytes, to which PouchDB gives the document's generation.
      const revpos = parseInt(doc._rev, 10);
      Object.assign(attachment, { stub: true, digest: own.digest, length: own.length, revpos });
    } else {
      await fetchOne(doc, name, attachment, link);
    }
  }
}

/**
 * With the revision: without it, stock gives a losing leaf the winner's bytes.
 * @param {any} doc
 * @param {string} name
 * @param {any} attachment
 * @param {import('./link.js').Link} link
 */
async function fetchOne(doc, name, attachment, { sourceRemote, source }) {
  const db = sourceRemote?.pristine('getAttachment') ? sourceRemote.twin : source;
  const found = await db.getAttachment(doc._id, name, { rev: doc._rev });
  const bytes = typeof found.arrayBuffer === 'function' ? new Uint8Array(await found.arrayBuffer()) : found;
  attachment.data = binary([bytes], attachment.content_type);
  delete attachment.stub;
  delete attachment.length;
}

/**
 * Of each document, a leaf that the target holds, for `atts_since`.
 * @param {import('./link.js').Link} link
 * @param {{ id: string }[]} docs
 */
export async function ancestors({ target, targetRemote, leaves, wasEmpty }, docs) {
  if (targetRemote || wasEmpty) return [];
  const { rows } = await target.allDocs({ keys: docs.map(({ id }) => id) });
  return rows.map((/** @type {any} */ row, /** @type {number} */ at) => {
    const rev = row.value?.deleted ? undefined : row.value?.rev;
    if (rev) leaves.set(docs[at].id, rev);
    else leaves.delete(docs[at].id);
    return rev ?? null;
  });
}

/**
 * Gives an entry that `follows` its bytes, as the adapters of the platform want
 * them.
 * @param {any} entry of `_attachments`
 * @param {Uint8Array<ArrayBuffer>[]} pieces
 * @param {string} encoding
 */
export async function fill(entry, pieces, encoding) {
  const plain = encoding === 'gzip' ? [await inflate(pieces)] : pieces;
  const length = plain.reduce((sum, piece) => sum + piece.byteLength, 0);
  if (length !== entry.length) {
    throw new Error(`an attachment of ${entry.length} bytes came with ${length}`);
  }
  entry.data = binary(plain, entry.content_type);
  for (const name of ['follows', 'length', 'encoding', 'encoded_length']) delete entry[name];
}

/** @param {Uint8Array<ArrayBuffer>[]} pieces */
async function inflate(pieces) {
  const plain = new Blob(pieces).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}
