// The server that is measured against, the distance to it, and the databases on it.
//
// Decides which server it is: the CouchDB that COUCH_URL names, or the demo's embedded one. Databases are named
// fast-sync-bench-…, made when needed and deleted at the end. Filling and checking go to the server directly; what is
// measured goes through the delay proxy, or directly too where there is no distance and nothing to count.
import { startDelay } from '../demo/delay.mjs';
import { startServer } from '../demo/server.mjs';

/** Bytes of one `_bulk_docs` request; CouchDB's limits on a request are far above. */
const FILL_BYTES = 8e6;

export class PlaceError extends Error {}

export class Place {
  /** @type {Set<string>} */
  #made = new Set();
  /** @type {Map<string, Promise<string>>} */
  #filled = new Map();
  #count = 0;

  /** @param {{server?: import('../demo/server.mjs').RunningServer, delay: import('../demo/delay.mjs').Distance, url: URL, name: string}} parts */
  constructor({ server, delay, url, name }) {
    this.server = server;
    this.delay = delay;
    this.url = url;
    /** What it calls itself. */
    this.name = name;
    const { username, password } = url;
    this.headers = { 'content-type': 'application/json', ...(username ? { authorization: `Basic ${btoa(decodeURIComponent(`${username}:${password}`))}` } : {}) };
  }

  static async open(couchUrl = process.env.COUCH_URL) {
    const server = couchUrl ? undefined : await startServer({ user: 'bench', password: 'bench' });
    const url = new URL(couchUrl ?? /** @type {any} */ (server).url);
    if (url.protocol !== 'http:') throw new PlaceError('COUCH_URL has to be plain http: the delay proxy cannot stand in a TLS connection');
    const delay = await startDelay({ host: url.hostname, port: Number(url.port || 80) });
    const place = new Place({ server, delay, url, name: '' });
    const welcome = await place.ask('GET', '/').catch(async (error) => { await place.close(); throw error; });
    place.name = server ? 'embedded server' : `CouchDB ${welcome.version}`;
    return place;
  }

  /** @param {string} method @param {string} path @param {string} [body] @param {Record<string, string>} [headers] @returns {Promise<any>} */
  async ask(method, path, body, headers = {}) {
    const response = await fetch(this.url.origin + path, { method, body, headers: { ...this.headers, ...headers } })
      .catch((error) => { throw new PlaceError(`no answer from ${this.url.host}: ${error.cause?.code ?? error.message}`); });
    const text = await response.text();
    if (!response.ok) throw new PlaceError(`${method} ${path} was answered ${response.status}: ${text.trim()}`);
    return text ? JSON.parse(text) : {};
  }

  /** An empty database. */
  async create() {
    const name = `fast-sync-bench-${process.pid}-${++this.#count}`;
    await this.ask('PUT', `/${name}`);
    this.#made.add(name);
    return name;
  }

  /** A database with a set's documents, which is kept for further rows. @param {string} key @param {() => Promise<any[]>} documents */
  filled(key, documents) {
    let name = this.#filled.get(key);
    if (!name) this.#filled.set(key, name = this.create().then(async (db) => { await this.#fill(db, await documents()); return db; }));
    return name;
  }

  /** @param {string} db @param {any[]} docs */
  async #fill(db, docs) {
    /** @type {string[]} */
    let batch = [];
    let bytes = 0;
    const flush = async () => {
      const rows = await this.ask('POST', `/${db}/_bulk_docs`, `{"new_edits":false,"docs":[${batch.join()}]}`);
      if (rows.some((/** @type {any} */ row) => row.error)) throw new PlaceError(`the server refused documents: ${JSON.stringify(rows[0])}`);
      batch = [];
      bytes = 0;
    };
    for (const doc of docs) {
      const text = JSON.stringify(doc);
      batch.push(text);
      bytes += text.length;
      if (bytes > FILL_BYTES || batch.length === 1000) await flush();
    }
    if (batch.length) await flush();
  }

  /** @param {string} name */
  async drop(name) {
    this.#made.delete(name);
    await this.ask('DELETE', `/${name}`);
  }

  /** The leaves of a database on the server, as `leaves()` tells those of a local one. @param {string} name */
  async leaves(name) {
    const { results } = await this.ask('GET', `/${name}/_changes?style=all_docs`);
    const byId = Object.create(null);
    for (const row of results) byId[row.id] = row.changes.map((/** @type {any} */ c) => c.rev).sort().join(' ');
    return byId;
  }

  /** The URL of a database for whoever is measured. @param {string} name @param {boolean} near without the proxy */
  urlOf(name, near) {
    const url = new URL(this.url);
    if (!near) url.host = `127.0.0.1:${this.delay.port}`;
    url.pathname = `/${name}`;
    return url.href;
  }

  /** Refuses to measure a browser against a server that does not let pages of other origins in. */
  async checkCors() {
    const response = await fetch(this.url.origin, { method: 'OPTIONS', headers: { origin: 'http://127.0.0.1:1', 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' } });
    // PouchDB sends credentials, so a page gets no answer from a server that does not allow them.
    if (!response.headers.get('access-control-allow-origin') || response.headers.get('access-control-allow-credentials') !== 'true') {
      throw new PlaceError('the server does not let pages of other origins in, which Chromium needs: [chttpd] enable_cors = true, [cors] origins = *, credentials = true, headers = accept, authorization, content-type, origin, referer');
    }
  }

  async close() {
    for (const name of this.#made) await this.drop(name).catch(() => {});
    await this.delay.stop();
    await this.server?.stop();
  }
}
