// Documents as they go to a server. Small attachments go as stock sends them, in
// base64 inside the document's JSON. Large ones go behind it, as they are: base64
// in JSON takes a multiple of their size in memory, and a third more on the wire.
import { base64, binary, inNode, stream } from './platform.js';

/** Attachments of so many bytes together are worth a request of their own. */
const LARGE = 256 * 1024;
/** So long (ms) a server that takes no multipart is not asked again. */
const ASK_AGAIN_MS = 600_000;

/** When a database's server refused it. @type {Map<string, number>} */
const refused = new Map();

/** @param {string} base of the database */
export function refusesMultipart(base) {
  refused.set(base, performance.now());
}

/**
 * @param {any[]} docs
 * @param {import('./remote.js').Remote} remote
 * @returns {Promise<(string | Upload)[]>}
 * @throws where an attachment is nothing that is known here
 */
export async function outgoing(docs, remote) {
  docs.forEach(clean);
  // Others than CouchDB may take it for something else.
  const multipart = docs.some(isLarge) && mayAsk(remote.base) && (await remote.isCouch());
  const out = [];
  for (const doc of docs) {
    if (!doc._attachments) out.push(textOf(doc));
    else if (multipart && isLarge(doc)) out.push(new Upload(doc));
    else out.push(await inline(doc));
  }
  return out;
}

/** Of an attachment, what PouchDB hands on. */
const KEPT = ['data', 'digest', 'content_type', 'length', 'revpos', 'stub'];

/**
 * As PouchDB's `bulkDocs` does with each document (pouchdb-core, `cleanDocs`).
 * @param {any} doc
 */
function clean(doc) {
  if (!doc._attachments) return;
  texts.delete(doc);
  if (doc._deleted) {
    delete doc._attachments;
    return;
  }
  for (const [name, attachment] of Object.entries(doc._attachments)) {
    doc._attachments[name] = Object.fromEntries(KEPT.filter((key) => key in attachment).map((key) => [key, attachment[key]]));
  }
}

/** @param {string} base */
function mayAsk(base) {
  const at = refused.get(base);
  return at === undefined || performance.now() - at > ASK_AGAIN_MS;
}

/** @param {any} doc */
function isLarge(doc) {
  const all = Object.values(doc._attachments ?? {});
  const bytes = all.reduce((sum, { data }) => sum + sizeOf(data), 0);
  // Of the paths `.` and `..`, a URL keeps nothing; a lone surrogate has no UTF-8.
  return bytes > LARGE && !/^\.\.?$/.test(doc._id) && wellFormed(doc._id);
}

/** @param {any} data binary, or already base64 @returns {number} NaN for text */
function sizeOf(data) {
  if (data instanceof Uint8Array) return data.byteLength;
  return !inNode && data instanceof Blob ? data.size : NaN;
}

/** @param {string} id */
function wellFormed(id) {
  try {
    return Boolean(encodeURIComponent(id));
  } catch {
    return false;
  }
}

/**
 * As stock does, which leaves the base64 in the document.
 * @param {any} doc
 */
async function inline(doc) {
  for (const attachment of Object.values(doc._attachments)) {
    if (attachment.data !== undefined && typeof attachment.data !== 'string') {
      attachment.data = await base64(attachment.data);
    }
  }
  return JSON.stringify(doc);
}

/** One document in `multipart/related`: its JSON, and its attachments in that order. */
export class Upload {
  /** @param {any} doc */
  constructor(doc) {
    this.doc = doc;
    // 128 random bits are in no attachment.
    const random = crypto.getRandomValues(new Uint8Array(16));
    this.boundary = Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('');
    const attachments = Object.entries(doc._attachments);
    const follows = attachments.map(([name, { data, digest, stub, ...rest }]) =>
      // The digest may be that of another encoding; the server makes its own.
      [name, { ...rest, follows: true, length: sizeOf(data) }]);
    const json = JSON.stringify({ ...doc, _attachments: Object.fromEntries(follows) });
    const text = (/** @type {string} */ own) => new TextEncoder().encode(own);
    const open = `\r\n--${this.boundary}`;
    this.pieces = [
      text(`${open.slice(2)}\r\nContent-Type: application/json\r\n\r\n${json}`),
      ...attachments.flatMap(([, { data }]) => [text(`${open}\r\n\r\n`), data]),
      text(`${open}--`),
    ];
    /** Bytes of the whole body. */
    this.length = this.pieces.reduce((sum, piece) => sum + sizeOf(piece), 0);
  }

  /**
   * @param {import('./remote.js').Remote} remote
   * @param {AbortSignal} signal
   */
  send({ twin, transport }, signal) {
    const { _id: id } = this.doc;
    const path = id.startsWith('_design/') ? `_design/${encodeURIComponent(id.slice(8))}` : encodeURIComponent(id);
    const raw = {
      accept: 'application/json',
      'content-type': `multipart/related; boundary=${this.boundary}`,
      ...(transport.streams && { 'content-length': String(this.length) }),
    };
    return twin.fetch(`${path}?new_edits=false`, { method: 'PUT', body: this.body(transport.streams), signal, raw });
  }

  /** Anew for each try. @param {boolean} streams */
  body(streams) {
    return streams ? stream(this.pieces) : binary(this.pieces, '');
  }

  /** The document as any other, for a server that did not take it so. */
  inline() {
    return inline(this.doc);
  }
}

/** @type {WeakMap<any, string>} */
const texts = new WeakMap();

/**
 * The JSON text of a document, kept as long as the document is: reading ahead
 * needs its size, and writing the text.
 * @param {any} doc
 */
export function textOf(doc) {
  let text = texts.get(doc);
  if (text === undefined) texts.set(doc, (text = JSON.stringify(doc)));
  return text;
}
