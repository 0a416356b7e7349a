// The bytes of one attachment, from the first to the last: collected as they
// arrive, checked against what the document says of them, and made what PouchDB's
// adapters take on the platform. Base64 is read where a server sends it, and never
// made. Knows nothing of documents and requests.
import { allocate, binary, builtin, inNode } from './platform.js';

/** From so many bytes on, those that are there become a Blob, which a browser need not keep in memory. */
const BLOB_FROM = 4 << 20;
/** Fewer bytes are inflated faster than handed to another thread. */
const AT_ONCE = 256 << 10;
/** A length that is believed before the bytes are there; more is taken as it comes. */
const BELIEVED = 1 << 30;

/** @type {any} */
const { Buffer } = globalThis;
const crypto = builtin('crypto');
const zlib = builtin('zlib');

/** Without it, a compressed attachment has to be asked for alone: the browser's `fetch` inflates it. */
export const canInflate = Boolean(zlib) || typeof DecompressionStream === 'function';

export class Bytes {
  /** @param {number} length as announced; anything else where it is not known */
  constructor(length) {
    this.length = 0;
    /** @type {(Uint8Array<ArrayBuffer> | Blob)[]} */
    this.pieces = [];
    /** Bytes of the pieces that are no Blob yet. */
    this.loose = 0;
    // One buffer instead of pieces and their copy: in Node, adapters want one.
    this.buffer = length >= 0 && length <= BELIEVED ? allocate(length) : undefined;
    this.hash = md5();
    /** @type {string | undefined} */
    this.md5 = undefined;
  }

  /** @param {Uint8Array<ArrayBuffer>} piece */
  push(piece) {
    this.hash?.update(piece);
    const { buffer, length } = this;
    this.length += piece.byteLength;
    if (buffer && this.length <= buffer.length) {
      buffer.set(piece, length);
      return;
    }
    if (buffer) {
      this.pieces.push(buffer.subarray(0, length));
      this.buffer = undefined;
    }
    this.pieces.push(piece);
    this.loose += piece.byteLength;
    if (!inNode && this.loose >= BLOB_FROM) {
      this.pieces = [new Blob(this.pieces)];
      this.loose = 0;
    }
  }

  /** The MD5 of what came, as CouchDB writes it; undefined where it would cost too much. */
  digest() {
    this.md5 ??= this.hash && `md5-${this.hash.digest('base64')}`;
    return this.md5;
  }

  /**
   * What is wrong, where these are not the bytes of that digest.
   * @param {string} expected as CouchDB writes it
   */
  otherThan(expected) {
    const digest = this.digest();
    const differs = digest && /^md5-/.test(expected) && digest !== expected;
    return differs ? `bytes with the digest ${digest}, and not ${expected}` : undefined;
  }

  all() {
    const { buffer, length, pieces } = this;
    if (!buffer) return pieces;
    return length === buffer.length ? [buffer] : [buffer.subarray(0, length)];
  }

  /**
   * As a part of a stream carries them: as the server stores them.
   * @param {any} entry of `_attachments`
   * @param {string} encoding
   * @throws where they are not what the entry says
   */
  async stored(entry, encoding) {
    const stored = encoding === 'gzip' ? entry.encoded_length : entry.length;
    if (encoding && !/^(gzip|identity)$/.test(encoding)) throw new Error(`the encoding ${encoding}`);
    same(this.length, stored);
    const other = this.otherThan(entry.digest);
    if (other) throw new Error(other);
    if (encoding !== 'gzip') return binary(this.all(), entry.content_type);
    const plain = await inflate(this.all(), this.length);
    // CouchDB does not know the length of what its client had compressed, and
    // gives that of the compressed bytes. Gzip itself checks what it holds.
    if (entry.length !== stored) same(sizeOf(plain), entry.length);
    return binary([plain], entry.content_type);
  }

  /**
   * As a request of their own brought them: inflated. Answers nothing where the
   * entry says something else, or too little to tell.
   * @param {any} entry of `_attachments`
   */
  plain(entry) {
    const unknown = typeof entry.length !== 'number' || (entry.encoding === 'gzip' && entry.length === entry.encoded_length);
    const fits = unknown || this.length === entry.length || (this.hash && this.digest() === entry.digest);
    return fits ? binary(this.all(), entry.content_type) : undefined;
  }
}

/** @param {number} found @param {any} expected */
function same(found, expected) {
  if (typeof expected === 'number' && found !== expected) {
    throw new Error(`${found} bytes instead of ${expected}`);
  }
}

/** Cheap in Node only: browsers have none of their own. @returns {any} */
function md5() {
  try {
    return crypto?.createHash('md5');
  } catch {
    // Some systems forbid it.
    return undefined;
  }
}

/**
 * In Node not through a stream, which costs ten times as much as the inflating of
 * what is mostly small.
 * @param {(Uint8Array<ArrayBuffer> | Blob)[]} pieces
 * @param {number} length their bytes
 * @returns {Promise<Uint8Array<ArrayBuffer> | Blob>}
 */
async function inflate(pieces, length) {
  if (zlib && length < AT_ONCE) return zlib.gunzipSync(binary(pieces, ''));
  if (zlib) {
    return new Promise((resolve, reject) => {
      zlib.gunzip(binary(pieces, ''), (/** @type {any} */ error, /** @type {any} */ plain) =>
        (error ? reject(error) : resolve(plain)));
    });
  }
  return new Response(new Blob(pieces).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
}

/** @param {any} bytes */
const sizeOf = (bytes) => bytes.byteLength ?? bytes.size;

/**
 * @param {string} base64
 * @param {string} type
 */
export function fromBase64(base64, type) {
  if (inNode) return binary([Buffer.from(base64, 'base64')], type);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return binary([bytes], type);
}
