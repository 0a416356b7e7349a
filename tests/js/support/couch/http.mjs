// The HTTP side of one request: what handlers are given, what they answer, and how an answer is
// put on the wire (length or chunks, latency, scripted cuts). Knows nothing of databases.

import { concat, gunzip } from './bytes.mjs';
import { badRequest, CouchError } from './errors.mjs';

/**
 * @typedef {(write: (text: string) => void, signal: AbortSignal) => Promise<void>} Stream
 * @typedef {{ status: number, headers: Record<string, string>, body?: object | string | Buffer,
 *   chunked?: boolean, stream?: Stream, close?: boolean, reset?: boolean, cut?: number,
 *   cutResets?: boolean, map?: (text: string) => string }} Answer
 * An object body is sent as JSON; `close` ends the connection after the answer; the rest is for faults.
 */

export class Request {
  /**
   * @param {import('node:http').IncomingMessage} req
   * @param {Buffer} body
   * @param {string} origin of this server, for `Location`
   */
  constructor(req, body, origin) {
    const [path, search = ''] = (req.url ?? '/').split(/\?(.*)/s);
    this.url = req.url ?? '/';
    this.method = req.method === 'HEAD' ? 'GET' : /** @type {string} */ (req.method);
    this.path = path;
    this.segments = path.split('/').slice(1).filter((part, i, all) => part !== '' || i < all.length - 1).map(unquote);
    this.query = /** @type {Record<string, string>} */ (Object.fromEntries(new URLSearchParams(search)));
    this.headers = req.headers;
    this.origin = origin;
    /** @type {import('./database.mjs').UserContext} */
    this.user = { name: null, roles: [] };
    this.rawBody = body;
    /** Whether a handler looked at the body: CouchDB closes the connection when it did not. */
    this.bodyTaken = false;
  }

  get body() {
    this.bodyTaken = true;
    return this.rawBody;
  }

  /** The body as JSON, whatever its type says. */
  json() {
    const zipped = this.headers['content-encoding'] === 'gzip';
    const text = (zipped ? gunzip(this.body) : this.body).toString();
    try {
      return JSON.parse(text);
    } catch {
      throw badRequest('invalid UTF-8 JSON');
    }
  }

  /** @returns {any} */
  jsonObject() {
    if (!/^application\/json(;|$)/.test(this.headers['content-type'] ?? '')) {
      throw new CouchError(415, 'bad_content_type', 'Content-Type must be application/json');
    }
    const json = this.json();
    if (json === null || typeof json !== 'object' || Array.isArray(json)) {
      throw badRequest('Request body must be a JSON object');
    }
    return json;
  }

  /** @param {string} type */
  accepts(type) {
    const accept = this.headers.accept;
    if (!accept) return true;
    const [family] = type.split('/');
    return accept.split(',').some((range) => {
      const [name, ...parameters] = range.trim().split(/\s*;\s*/);
      if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) return false;
      return name === type || name === '*/*' || name === `${family}/*`;
    });
  }
}

/** CouchDB takes a plus in a path for a space. @param {string} part */
function unquote(part) {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '));
  } catch {
    return part;
  }
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {number} limit
 * @returns {Promise<Buffer | null>} null: longer than the limit
 */
export async function readBody(req, limit) {
  if (Number(req.headers['content-length'] ?? 0) > limit) return null;
  const chunks = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > limit) return null;
    chunks.push(chunk);
  }
  return concat(chunks);
}

/** @param {Answer['body']} body */
export function bytesOf(body) {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : `${JSON.stringify(body)}\n`);
}

/**
 * @param {import('node:http').ServerResponse} res
 * @param {Answer} answer
 * @param {{ entry: import('./log.mjs').LogEntry, signal: AbortSignal, pause: () => Promise<void> }} context
 *   `pause` takes as long as bytes travel to the client
 */
export async function send(res, answer, { entry, signal, pause }) {
  // CouchDB says when it will close a connection, and nothing about keeping one open.
  if (answer.close || !res.shouldKeepAlive) res.setHeader('Connection', 'close');
  else res.removeHeader('Connection');
  if (answer.stream && !answer.map) {
    await pause();
    res.writeHead(answer.status, answer.headers);
    entry.status = answer.status;
    let queue = Promise.resolve();
    await answer.stream((text) => {
      entry.bytesOut += Buffer.byteLength(text);
      // The first bytes have waited already; later ones each travel for themselves.
      const arrival = entry.end === null && entry.bytesOut === Buffer.byteLength(text) ? Promise.resolve() : pause();
      queue = queue.then(() => arrival).then(() => { if (!signal.aborted) res.write(text); });
    }, signal);
    await queue;
    res.end();
    return;
  }
  let bytes = answer.stream ? await collect(answer.stream, signal) : bytesOf(answer.body ?? '');
  if (answer.map) bytes = Buffer.from(answer.map(bytes.toString()));
  await pause();
  if (signal.aborted) return;
  if (answer.reset) {
    res.destroy();
    return;
  }
  entry.status = answer.status;
  const cut = answer.cut === undefined ? bytes : bytes.subarray(0, answer.cut);
  const length = answer.cutResets ? bytes.length : cut.length;
  if (!answer.chunked && answer.status !== 304) res.setHeader('Content-Length', length);
  res.writeHead(answer.status, answer.headers);
  entry.bytesOut = cut.length;
  if (answer.cutResets) res.write(cut, () => res.destroy());
  else res.end(cut);
}

/** @param {Stream} stream @param {AbortSignal} signal */
async function collect(stream, signal) {
  let text = '';
  await stream((part) => { text += part; }, signal);
  return Buffer.from(text);
}
