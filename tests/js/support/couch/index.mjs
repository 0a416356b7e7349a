// A server for tests that answers as CouchDB 3.5.2 does, on loopback, with everything inside
// open to the test: databases, the log of requests, latency, and failures on demand. What it
// answers is held to recordings of the real one in couch-server.test.mjs.
// `startCouch()` is the only door; faults' actions are exported beside it.

import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Auth } from './auth.mjs';
import { corsHeaders, DEFAULT_CORS, preflight } from './cors.mjs';
import { Database } from './database.mjs';
import { CouchError, tooLarge } from './errors.mjs';
import { Faults } from './faults.mjs';
import { readBody, Request, send } from './http.mjs';
import { RequestLog } from './log.mjs';
import { route } from './router.mjs';

export * as faults from './faults.mjs';

/**
 * @typedef {object} CouchOptions
 * @property {number} [latency] ms of a full round trip, added to every request
 * @property {boolean} [connectionLatency] a new connection costs one round trip more
 * @property {number} [idleTimeout] ms after which an idle connection is closed, 0: never
 * @property {string} [version]
 * @property {string} [uuid]
 * @property {import('./cors.mjs').Cors | boolean} [cors] on by default, for every origin
 * @property {import('./auth.mjs').Users | null} [users] null: everybody is an admin
 * @property {number} [q] shards of a new database
 * @property {{ maxDocumentSize?: number, maxRequestSize?: number }} [limits] bytes
 */

export class Couch {
  /** @param {CouchOptions} options */
  constructor(options) {
    this.latency = options.latency ?? 0;
    this.connectionLatency = options.connectionLatency ?? false;
    this.idleTimeout = options.idleTimeout ?? 0;
    this.version = options.version ?? '3.5.2-ad30249';
    this.uuid = options.uuid ?? randomBytes(16).toString('hex');
    this.cors = options.cors === false ? null : { ...DEFAULT_CORS, ...(options.cors === true ? {} : options.cors) };
    this.auth = new Auth(options.users ?? null);
    this.q = options.q ?? 2;
    // [couchdb] max_document_size and [chttpd] max_http_request_size of CouchDB 3.5's default.ini
    this.limits = { maxDocumentSize: 8_000_000, maxRequestSize: 4_294_967_296, ...options.limits };
    /** @type {Map<string, Database>} */
    this.databases = new Map();
    this.requests = new RequestLog();
    this.faults = new Faults();
    this.port = 0;
    /** @type {Map<import('node:net').Socket, { id: number, opened: number, used: boolean, idle?: NodeJS.Timeout }>} */
    this.sockets = new Map();
    this.connections = 0;
    this.server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (req, res) => this.serve(req, res));
    this.server.on('connection', (socket) => {
      this.connections += 1;
      this.sockets.set(socket, { id: this.connections, opened: performance.now(), used: false });
      socket.setNoDelay(true);
      socket.on('close', () => {
        clearTimeout(this.sockets.get(socket)?.idle);
        this.sockets.delete(socket);
      });
      socket.on('error', () => {});
    });
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** One entry a request, in order of arrival. */
  get log() {
    return this.requests.entries;
  }

  /** @param {string} name @param {{ user?: string }} [options] the user whose name and password go into the URL */
  dbUrl(name, { user } = {}) {
    if (user === undefined) return `${this.url}/${encodeURIComponent(name)}`;
    const known = this.auth.users?.[user];
    const password = typeof known === 'string' ? known : known?.password ?? '';
    return `http://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${this.port}/${encodeURIComponent(name)}`;
  }

  /** The database of that name, made when there is none. @param {string} name */
  db(name) {
    let db = this.databases.get(name);
    if (!db) {
      db = new Database(name, { q: this.q, limits: this.limits });
      this.databases.set(name, db);
    }
    return db;
  }

  /** How many requests "METHOD /path?query" match, preflights not counted. @param {RegExp} [pattern] */
  count(pattern) {
    return this.requests.matching(pattern).length;
  }

  /** The requests that match. @param {RegExp} [pattern] */
  matching(pattern) {
    return this.requests.matching(pattern);
  }

  /** The most matching requests at one time. @param {RegExp} [pattern] */
  peak(pattern) {
    return this.requests.peak(pattern);
  }

  get preflights() {
    return this.log.filter((entry) => entry.preflight).length;
  }

  clearLog() {
    this.log.length = 0;
  }

  /** Closes every connection that no request is using, as a server does with idle ones. */
  closeIdleConnections() {
    this.server.closeIdleConnections();
  }

  async stop() {
    for (const db of this.databases.values()) db.destroy();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  async pause() {
    if (this.latency > 0) await sleep(this.latency / 2);
  }

  /**
   * @param {import('node:http').IncomingMessage} req
   * @param {import('node:http').ServerResponse} res
   */
  async serve(req, res) {
    const { socket } = req;
    const connection = this.sockets.get(socket) ?? { id: 0, opened: 0, used: true };
    clearTimeout(connection.idle);
    const abort = new AbortController();
    res.on('close', () => abort.abort());
    const [path, search = ''] = (req.url ?? '/').split(/\?(.*)/s);
    const entry = this.requests.open({
      method: /** @type {string} */ (req.method), path, url: /** @type {string} */ (req.url),
      query: Object.fromEntries(new URLSearchParams(search)),
      headers: req.headers, connection: connection.id, start: performance.now(),
      preflight: req.method === 'OPTIONS' && 'access-control-request-method' in req.headers,
    });
    try {
      if (this.connectionLatency && !connection.used) {
        connection.used = true;
        await sleep(Math.max(0, connection.opened + this.latency - performance.now()));
      }
      const body = await readBody(req, this.limits.maxRequestSize);
      entry.bytesIn = body?.length ?? 0;
      await this.pause();
      const answer = await this.answer(req, body, entry, abort.signal);
      await send(res, this.decorate(req, answer), { entry, signal: abort.signal, pause: () => this.pause() });
    } catch (error) {
      // A client that went away is no failure of this server; anything else must not go unseen.
      if (!abort.signal.aborted && !(/** @type {any} */ (error)?.code === 'ECONNRESET')) {
        console.error('scripted CouchDB failed on', entry.method, entry.url, error);
      }
      res.destroy();
    } finally {
      entry.end = performance.now();
      if (this.idleTimeout > 0 && !socket.destroyed) {
        // A test that has set it back to 0 meanwhile wants no more of it.
        connection.idle = setTimeout(() => { if (this.idleTimeout > 0) socket.destroy(); }, this.idleTimeout).unref();
      }
    }
  }

  /**
   * @param {import('node:http').IncomingMessage} req
   * @param {Buffer | null} body
   * @param {import('./log.mjs').LogEntry} entry
   * @param {AbortSignal} signal
   * @returns {Promise<import('./http.mjs').Answer>}
   */
  async answer(req, body, entry, signal) {
    if (req.method === 'OPTIONS') {
      const granted = preflight(this.cors, req.headers);
      if (granted) return granted;
    }
    const fault = this.faults.take(entry);
    if (fault) entry.fault = fault.name;
    const instead = await fault?.before?.(entry, signal);
    if (instead) return instead;
    const answer = await this.handle(new Request(req, body ?? Buffer.alloc(0), this.url), body === null, entry);
    return fault?.after?.(answer, entry) ?? answer;
  }

  /**
   * @param {Request} request
   * @param {boolean} isTooLarge
   * @param {import('./log.mjs').LogEntry} entry
   */
  async handle(request, isTooLarge, entry) {
    try {
      if (isTooLarge) throw tooLarge();
      if (/json/.test(request.headers['content-type'] ?? '') && request.rawBody.length > 0) {
        try {
          entry.bodyJSON = JSON.parse(request.rawBody.toString());
        } catch {
          entry.bodyJSON = undefined;
        }
      }
      const db = this.databases.get(request.segments[0]);
      await db?.onRequest?.(entry, db);
      request.user = this.auth.identify(request.headers);
      return route(this, request);
    } catch (error) {
      if (!(error instanceof CouchError)) {
        // As CouchDB answers when something crashed; here it is most likely a mistake of this server.
        console.error('scripted CouchDB failed on', entry.method, entry.url, error);
        return { status: 500, headers: {}, body: { error: 'unknown_error', reason: String(error), ref: 0 } };
      }
      const close = error.status === 413 || (!request.bodyTaken && request.rawBody.length > 0);
      return { status: error.status, headers: error.headers, body: error.toJSON(), close };
    }
  }

  /**
   * @param {import('node:http').IncomingMessage} req
   * @param {import('./http.mjs').Answer} answer
   * @returns {import('./http.mjs').Answer}
   */
  decorate(req, answer) {
    const type = answer.headers['Content-Type'] ?? 'application/json';
    const hasBody = answer.status !== 204;
    const headers = {
      ...(hasBody ? { 'Content-Type': type, ...corsHeaders(this.cors, req.headers) } : {}),
      ...(hasBody && type === 'application/json'
        ? { 'Cache-Control': 'must-revalidate', 'X-CouchDB-Body-Time': '0' } : {}),
    };
    return {
      ...answer,
      headers: {
        Server: `CouchDB/${this.version} (Erlang OTP/27)`,
        'X-Couch-Request-ID': randomBytes(5).toString('hex'),
        ...headers,
        ...answer.headers,
      },
    };
  }
}

/** @param {CouchOptions} [options] */
export async function startCouch(options = {}) {
  const couch = new Couch(options);
  await new Promise((resolve, reject) => {
    couch.server.once('error', reject);
    couch.server.listen(0, '127.0.0.1', () => resolve(undefined));
  });
  couch.port = /** @type {import('node:net').AddressInfo} */ (couch.server.address()).port;
  return couch;
}
