// On a page or in a worker: databases and replications under names, so that a test can speak about
// them from outside. Decides nothing; whatever it answers is JSON.

import fastSync from '../../../../dist/index.js';
import { counts, observe } from '../../../js/support/observe.mjs';
import { snapshot } from '../../../js/support/snapshot.mjs';

const { StockPouchDB, PouchDB } = /** @type {any} */ (globalThis);
PouchDB.plugin(fastSync);

/** @type {Map<string, any>} */
const dbs = new Map();
/** @type {Map<string, ReturnType<typeof observe>>} */
const runs = new Map();
/** @type {string[]} */
const lines = [];
for (const constructor of [StockPouchDB, PouchDB]) {
  constructor.on('debug', ([from, ...line]) => { if (from === 'fast-sync') lines.push(line.join(' ')); });
}

const stage = {
  /**
   * @param {string} name `stock…` or `fast…`: who it belongs to
   * @param {string} adapter
   * @param {any[]} [docs] that it holds, with their histories
   */
  async open(name, adapter, docs = []) {
    const db = new (name.startsWith('stock') ? StockPouchDB : PouchDB)(name, { adapter });
    dbs.set(name, db);
    for (let at = 0; at < docs.length; at += 10) await db.bulkDocs(docs.slice(at, at + 10), { new_edits: false });
    return (await db.info()).doc_count;
  },

  /** Edits, as a user makes them. @param {string} name @param {any[]} docs */
  write: (name, docs) => dbs.get(name).bulkDocs(docs),

  /** @param {string} name @param {string} id */
  read: (name, id) => dbs.get(name).get(id),

  /** @param {string} name */
  count: async (name) => (await dbs.get(name).info()).doc_count,

  /**
   * @param {string} name of the database
   * @param {'pull' | 'push' | 'sync'} direction
   * @param {string} url
   * @param {any} [options] of the replication
   * @param {any} [remoteOptions] of the remote database
   */
  begin(name, direction, url, options = {}, remoteOptions = {}) {
    const db = dbs.get(name);
    const remote = new db.constructor(url, remoteOptions);
    const own = { ...options, ...(options.retry && { back_off_function: () => 20 }) };
    if (direction === 'pull') runs.set(name, observe(db.replicate.from(remote, own)));
    if (direction === 'push') runs.set(name, observe(db.replicate.to(remote, own)));
    if (direction === 'sync') {
      const sync = db.sync(remote, own);
      runs.set(name, Object.assign(observe(sync.pull), { cancel: () => sync.cancel() }));
      const { ended } = runs.get(name);
      runs.get(name).ended = Promise.all([ended, sync.catch(() => {})]).then(([seen]) => seen);
    }
  },

  /** @param {string} name */
  seen(name) {
    const { events, docs, result, error, replication } = runs.get(name);
    return {
      events, docs, error: error && told(error), result: result && { ...counts(result), last_seq: result.last_seq },
      stock: replication.fastSync?.stats.stock,
    };
  },

  /** @param {string} name */
  async end(name) {
    await runs.get(name).ended;
    return stage.seen(name);
  },

  /** @param {string} name */
  cancel(name) {
    const run = /** @type {any} */ (runs.get(name));
    (run.cancel ?? (() => run.replication.cancel()))();
  },

  /** From the beginning to the end. @param {Parameters<typeof stage.begin>} given */
  run: (...given) => (stage.begin(...given), stage.end(given[0])),

  /** Everything in a database. @param {string} name */
  async contents(name) {
    const db = dbs.get(name);
    // The idb adapter counts no documents with attachments.
    const info = async () => ({ doc_count: (await db.allDocs()).rows.length });
    const { docs, ...rest } = await snapshot(db.adapter === 'idb' ? Object.create(db, { info: { value: info } }) : db);
    return { ...rest, docs: [...docs] };
  },

  /** Attachments as an application gets them. @param {string} name */
  async blobs(name) {
    const found = [];
    const { rows } = await dbs.get(name).allDocs({ include_docs: true, attachments: true, binary: true });
    for (const { id, doc } of rows) {
      for (const [file, { data, content_type, digest }] of Object.entries(doc._attachments ?? {})) {
        const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', await data.arrayBuffer()));
        // Firefox takes the blank out of the type of what stock fetched.
        const type = data.type.replace('; ', ';');
        found.push({ id, file, isBlob: data instanceof Blob, type, content_type, digest, size: data.size, sha256: btoa(String.fromCharCode(...bytes)) });
      }
    }
    return found;
  },

  /** A write of the adapter fails, so many writes from now. @param {string} name @param {number} after */
  failWrite(name, after) {
    const db = dbs.get(name);
    const { _bulkDocs } = db;
    db._bulkDocs = (/** @type {any} */ request, /** @type {any} */ options, /** @type {(error: any) => void} */ done) => {
      if (after-- > 0) return _bulkDocs.call(db, request, options, done);
      db._bulkDocs = _bulkDocs;
      return done(Object.assign(new Error('the disk is full'), { status: 507, name: 'full' }));
    };
  },

  /** @param {string} url @param {string} name @param {string} password */
  async logIn(url, name, password) {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/_session`, { method: 'POST', credentials: 'include', headers, body: JSON.stringify({ name, password }) });
    return answer.status;
  },

  /** What the plugin said to the developer. */
  lines: () => lines,

  /** @param {string} method @param {any[]} args */
  inWorker(method, args) {
    const { port1, port2 } = new MessageChannel();
    worker ??= new Worker('/worker.js');
    worker.postMessage([method, args], [port2]);
    return new Promise((resolve, reject) => {
      port1.onmessage = ({ data: [answer, error] }) => (error ? reject(new Error(error)) : resolve(answer));
      worker?.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
  },
};

/** @type {Worker | undefined} */
let worker;

/** @param {any} error */
function told({ name, status, message, reason }) {
  return { name, status, message, reason };
}

/** Called from outside: everything passes as JSON, odd strings and all. @param {keyof typeof stage} method @param {string} args */
/** @type {any} */ (globalThis).call = async (method, args) => {
  const answer = await /** @type {any} */ (stage)[method](...JSON.parse(args));
  return JSON.stringify(answer ?? null);
};

if (typeof document === 'undefined') {
  globalThis.onmessage = async ({ data: [method, args], ports: [port] }) => {
    try {
      port.postMessage([await /** @type {any} */ (stage)[method](...args)]);
    } catch (error) {
      port.postMessage([undefined, String(error)]);
    }
  };
}
