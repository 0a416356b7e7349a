// The views that stock's replicator is given in place of the databases: objects
// derived from the user's handles, which are never changed. A view only decides
// whether a call goes to a link (see link.js) or to the handle.
import { load } from './load.js';

const emitter = ['on', 'once', 'off', 'addListener', 'prependListener', 'removeListener', 'removeAllListeners',
  'emit', 'listeners', 'listenerCount', 'setMaxListeners', 'eventNames'];
const api = ['id', 'info', 'get', 'put', 'allDocs', 'bulkGet', 'getAttachment', 'revsDiff', 'bulkDocs'];
/** What a link may do for the database that is its source, and its target. */
const ofSource = new Set(['info', 'bulkGet', 'getAttachment']);

/**
 * Rows that stock takes at once, when the caller does not say. What keeps a
 * browser's main thread free is decided when they are written (see writer.js).
 */
const BATCH_SIZE = 1000;

/**
 * @param {any} PouchDB
 * @param {any} a the source of the first direction
 * @param {any} b its target
 * @param {any[]} opts the options of `a` to `b`, and of `b` to `a` where both run
 * @param {import('./options.js').Options} chosen
 */
export function connect(PouchDB, a, b, opts, chosen) {
  const plain = { a, b, options: (/** @type {any} */ own) => own, attach() {} };
  if (!isPouch(a) || !isPouch(b) || !(isRemote(a) || isRemote(b))) return plain;

  const shared = { PouchDB, chosen, opts, ends: [a, b], batchSize: BATCH_SIZE };
  /** @type {Promise<any>} */
  const links = load().then(({ open }) => open(shared)).catch((error) => {
    debug(PouchDB, `stock replication is used: ${error?.message ?? error}`);
    return null;
  });
  return {
    a: view(a, links),
    b: view(b, links),
    /** @param {any} own */
    options: (own) => ({ ...own, batch_size: own.batch_size || shared.batchSize }),
    /** @param {any[]} replications @param {any} returned */
    attach(replications, returned) {
      let stats = () => figures(opts, 'the engine is loading');
      Object.defineProperty(returned, 'fastSync', { value: { get stats() { return stats(); } } });
      links.then((open) => {
        stats = open ? open.stats : () => figures(opts, 'the engine could not be loaded');
        open?.attach(replications, returned);
      });
    },
  };
}

/**
 * Those of nothing done.
 * @param {any[]} opts one a direction
 * @param {string} stock why it does the work
 * @returns {any}
 */
function figures(opts, stock) {
  const none = () => ({
    stock, requests: {}, requestsTotal: 0, bytes: 0, docsWritten: 0, retries: 0, failures: 0, peakBufferBytes: 0,
    gone: 0, goneRevisions: [], singleGets: false, attachmentsOneByOne: false,
    ms: { total: 0, feed: 0, documents: 0, diff: 0, write: 0 },
  });
  return opts.length === 1 ? none() : { push: none(), pull: none() };
}

/** @param {any} db @param {Promise<any>} links */
function view(db, links) {
  const made = Object.create(db);
  for (const name of emitter) {
    // On the view they would keep a list of listeners of their own.
    if (typeof db[name] === 'function') made[name] = (/** @type {any[]} */ ...args) => db[name](...args);
  }
  for (const name of api) {
    made[name] = async (/** @type {any[]} */ ...args) => {
      const open = await links;
      return open ? open.call(db, name, args) : db[name](...args);
    };
  }
  made.changes = (/** @type {any[]} */ ...args) => {
    // A prototype's `changes` reads `_changes` of the view; one that somebody put
    // on the handle is theirs. PouchDB 7 puts its own there, bound.
    const own = Object.hasOwn(db, 'changes') && !db.changes.name.startsWith('bound ');
    if (!own) return Object.getPrototypeOf(db).changes.apply(made, args);
    links.then((open) => open?.readElsewhere(db));
    return db.changes(...args);
  };
  made._changes = (/** @type {any} */ opts) => {
    /** @type {any} */
    let running;
    let cancelled = false;
    links.then((open) => {
      if (!cancelled) running = open ? open.changes(db, opts) : db._changes(opts);
    });
    return {
      cancel() {
        cancelled = true;
        running?.cancel?.();
      },
    };
  };
  return made;
}

/** @param {any} db */
function isPouch(db) {
  return db && typeof db === 'object' && typeof db._changes === 'function' && api.every((name) => typeof db[name] === 'function');
}

/** @param {any} db */
export function isRemote(db) {
  return db._remote === true && typeof db.fetch === 'function';
}

/** @param {any} PouchDB @param {string} message */
function debug(PouchDB, message) {
  PouchDB.emit('debug', ['fast-sync', message]);
}

export { ofSource };
