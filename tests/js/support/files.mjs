// Documents with attachments, written as an application writes them, over HTTP: so that the scripted
// server and a real CouchDB can be given the same. And what of attachments has to be alike.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { startCouch } from './couch/index.mjs';

export const REAL = process.env.COUCH_URL;

/**
 * A database of a server, gone when `use` is over.
 * @template T
 * @param {'scripted' | 'real'} which
 * @param {(server: FileServer) => Promise<T>} use
 */
export async function withFiles(which, use) {
  const couch = which === 'scripted' ? await startCouch() : undefined;
  couch?.db('db');
  const url = couch ? couch.dbUrl('db') : new URL(`/fast-sync-test-${randomBytes(6).toString('hex')}`, REAL).href;
  const server = new FileServer(couch ? url : withLogin(url), couch);
  if (!couch) await server.ask('PUT', '');
  try {
    return await use(server);
  } finally {
    if (couch) await couch.stop();
    else await server.ask('DELETE', '');
  }
}

/** @param {string} url */
function withLogin(url) {
  const { username, password } = new URL(/** @type {string} */ (REAL));
  return Object.assign(new URL(url), { username, password }).href;
}

export class FileServer {
  /** @param {string} url @param {import('./couch/index.mjs').Couch} [couch] */
  constructor(url, couch) {
    this.url = url;
    this.couch = couch;
    const { username, password } = new URL(url);
    this.headers = username ? { authorization: `Basic ${btoa(decodeURIComponent(`${username}:${password}`))}` } : {};
    this.base = Object.assign(new URL(url), { username: '', password: '' }).href;
  }

  /**
   * @param {string} method @param {string} path @param {any} [body] @param {Record<string, string>} [headers]
   * @returns {Promise<any>}
   */
  async ask(method, path, body, headers = {}) {
    const isBytes = body instanceof Uint8Array;
    const answer = await fetch(this.base + path, {
      method, body: body === undefined || isBytes ? body : JSON.stringify(body),
      headers: { ...this.headers, ...(isBytes ? {} : { 'content-type': 'application/json' }), ...headers },
    });
    const json = await answer.json();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${JSON.stringify(json)}`);
    return json;
  }

  /** @param {string} id @param {string} [query] */
  get(id, query = '') {
    return this.ask('GET', `/${encodeURIComponent(id)}${query}`);
  }

  /** @param {any} doc */
  async put(doc) {
    const { rev } = await this.ask('PUT', `/${encodeURIComponent(doc._id)}`, doc);
    return rev;
  }

  /** Compressed by its client. @param {string} id @param {string} rev @param {string} name @param {{ type: string, bytes: any }} file */
  async putCompressed(id, rev, name, { type, bytes }) {
    const path = `/${encodeURIComponent(id)}/${name.split('/').map(encodeURIComponent).join('/')}?rev=${rev}`;
    const answer = await this.ask('PUT', path, gzipSync(bytes), { 'content-type': type, 'content-encoding': 'gzip' });
    return answer.rev;
  }

  /** @param {any[]} docs with their revisions */
  replicate(docs) {
    return this.ask('POST', '/_bulk_docs', { docs, new_edits: false });
  }
}

/**
 * Every leaf's attachments: bytes, and all that is said of them.
 * @param {any} db a local PouchDB
 * @returns {Promise<Record<string, Record<string, Record<string, any>>>>} by id, revision and name
 */
export async function filesOf(db) {
  const { results } = await db.changes({ since: 0, style: 'all_docs' });
  const found = Object.create(null);
  for (const { id, changes } of results) {
    const docs = await db.get(id, { open_revs: changes.map((/** @type {any} */ { rev }) => rev), attachments: true, binary: true });
    const stubs = await db.get(id, { open_revs: changes.map((/** @type {any} */ { rev }) => rev) });
    found[id] = Object.create(null);
    for (const [at, { ok }] of docs.entries()) {
      const said = stubs[at].ok._attachments ?? {};
      found[id][ok._rev] = Object.fromEntries(Object.entries(ok._attachments ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { data }]) => [name, { ...said[name], bytes: data.toString('base64') }]));
    }
  }
  return found;
}

/** Content that has been trouble somewhere, and some that has not. */
export const contents = [
  { type: 'image/png', bytes: Buffer.alloc(0) },
  { type: 'text/plain', bytes: Buffer.alloc(0) },
  { type: 'text/plain; charset=utf-8', bytes: Buffer.from('text, which CouchDB compresses. '.repeat(60)) },
  { type: 'application/json', bytes: Buffer.from('{"a":1}') },
  { type: 'application/octet-stream', bytes: Buffer.from('\r\n--boundary--\r\n\r\nContent-Type: application/json\r\n\r\n{}\r\n--') },
  { type: 'image/jpeg', bytes: randomBytes(3000) },
  { type: 'application/octet-stream', bytes: randomBytes(150_000) },
  { type: 'video/mp4', bytes: Buffer.from([0, 255, 13, 10, 45, 45]) },
];

/** Names that need care in a URL, in a header, or as a key. */
export const names = [
  'plain.txt', 'a+b.bin', 'dir/x', '100%.txt', 'ü ñ.png', '"quoted".txt', '0', '12', 'a b', '🍏', 'constructor', '%2F', 'q?r=1#h', 'back\\slash',
];
