// Puts the plugin in stock's place: the statics, and what the prototype's
// `replicate` and `sync` reach. Which replications are fast is decided here;
// how, elsewhere. No core module is touched, and stock's replicator runs each
// replication, over views instead of the databases.
import { load } from './load.js';
import { settings } from './options.js';
import { connect } from './views.js';

/**
 * @param {any} PouchDB
 * @param {import('./options.js').Options} installed
 */
export function install(PouchDB, installed) {
  const stock = PouchDB.replicate?.stock ?? { replicate: PouchDB.replicate, sync: PouchDB.sync };
  if (typeof stock.replicate !== 'function') {
    throw new TypeError('fastSync: this PouchDB has no replication; install pouchdb-replication before it');
  }
  const fast = {
    replicate: Object.assign(replication(PouchDB, stock, installed), { stock }),
    sync: Object.assign(twoWay(PouchDB, stock, installed), { stock }),
  };
  // Its code, not yet the engine: the first replication need not wait for that.
  setTimeout(() => load.code().catch(() => {}));
  PouchDB.replicate = fast.replicate;
  PouchDB.sync = fast.sync;

  // A child that `PouchDB.defaults()` made before keeps stock's statics. Whoever
  // put another function there means it.
  /** @param {any} db @param {'replicate' | 'sync'} name */
  const of = (db, name) => {
    const own = db.constructor[name];
    const call = !own || own === stock[name] || own.stock ? fast[name] : own;
    return (/** @type {any[]} */ ...args) => call.apply(db.constructor, args);
  };
  const methods = new WeakMap();
  // Stock's `replicate` getter cannot be redefined, but returns this.
  Object.defineProperty(PouchDB.prototype, 'replicateMethods', {
    configurable: true,
    get() {
      if (!methods.has(this)) {
        methods.set(this, {
          from: (/** @type {any} */ other, /** @type {any[]} */ ...rest) => of(this, 'replicate')(other, this, ...rest),
          to: (/** @type {any} */ other, /** @type {any[]} */ ...rest) => of(this, 'replicate')(this, other, ...rest),
        });
      }
      return methods.get(this);
    },
  });
  /** @this {any} @param {any} other @param {any[]} rest */
  PouchDB.prototype.sync = function (other, ...rest) {
    return of(this, 'sync')(this, other, ...rest);
  };
}

/**
 * `PouchDB.replicate(source, target, options, callback)`.
 * @param {any} PouchDB
 * @param {any} stock
 * @param {import('./options.js').Options} installed
 */
function replication(PouchDB, stock, installed) {
  /** @this {any} @param {any} source @param {any} target @param {any} [opts] @param {any} [callback] */
  return function (source, target, opts, callback) {
    const given = arrange(opts, callback);
    const chosen = settings(given.opts?.fastSync, installed);
    if (!chosen || !understood(given.opts)) {
      return stock.replicate.call(this, source, target, given.opts, given.callback);
    }
    const own = withoutOurs(given.opts, this);
    const ends = connect(PouchDB, open(source, own), open(target, own), [own], chosen);
    const replication = stock.replicate.call(this, ends.a, ends.b, ends.options(own), given.callback);
    ends.attach([replication], replication);
    return replication;
  };
}

/**
 * `PouchDB.sync(a, b, options, callback)`: stock's calls its own replicator
 * twice, over the same two views.
 * @param {any} PouchDB
 * @param {any} stock
 * @param {import('./options.js').Options} installed
 */
function twoWay(PouchDB, stock, installed) {
  /** @this {any} @param {any} a @param {any} b @param {any} [opts] @param {any} [callback] */
  return function (a, b, opts, callback) {
    const given = arrange(opts, callback);
    if (given.opts?.push?.fastSync !== undefined || given.opts?.pull?.fastSync !== undefined) {
      throw new TypeError('fastSync: give it beside "push" and "pull", not inside: both directions share one engine');
    }
    const chosen = settings(given.opts?.fastSync, installed);
    const push = { ...given.opts, ...given.opts?.push };
    const pull = { ...given.opts, ...given.opts?.pull };
    if (!chosen || !understood(push) || !understood(pull)) {
      return stock.sync.call(this, a, b, given.opts, given.callback);
    }
    const own = withoutOurs(given.opts, this);
    const ends = connect(PouchDB, open(a, own), open(b, own), [push, pull], chosen);
    const sync = stock.sync.call(this, ends.a, ends.b, ends.options(own), given.callback);
    ends.attach([sync.push, sync.pull], sync);
    return sync;
  };
}

/** @param {any} opts @param {any} callback */
function arrange(opts, callback) {
  return typeof opts === 'function' ? { opts: {}, callback: opts } : { opts: opts ?? {}, callback };
}

/**
 * Stock throws at once for ids that are no list, before a database is opened,
 * and runs a filter function over every document's body.
 * @param {any} opts
 */
function understood(opts) {
  return !(opts.doc_ids && !Array.isArray(opts.doc_ids)) && typeof opts.filter !== 'function';
}

/** @param {any} opts @param {any} constructor */
function withoutOurs(opts, constructor) {
  const { fastSync: _, ...own } = opts;
  return { ...own, PouchConstructor: own.PouchConstructor || constructor };
}

/** @param {any} db @param {any} opts */
function open(db, opts) {
  return typeof db === 'string' ? new opts.PouchConstructor(db, opts) : db;
}
