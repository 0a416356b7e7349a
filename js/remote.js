// A remote database as stock's own adapter sees it, over a transport of ours:
// URLs, credentials, set-up, ids and errors are stock's to the letter.
import { Transport } from './transport.js';
import { inNode } from './platform.js';

/**
 * What the servers of handles turned out to lack, and until when (ms, on the clock
 * of `performance`) that is believed: it is not asked for anew in every run.
 * @type {WeakMap<any, { singleUntil: number, piecewiseUntil: number }>}
 */
const lacking = new WeakMap();

export class Remote {
  /**
   * @param {any} handle
   * @param {any} PouchDB
   * @param {(what: string, bytes: number) => void} count
   */
  constructor(handle, PouchDB, count) {
    this.handle = handle;
    const node = inNode && typeof PouchDB.fetch === 'function' ? PouchDB.fetch : undefined;
    const opts = handle.__opts ?? {};
    this.transport = new Transport(opts.fetch, node, count);
    this.twin = twin(handle, PouchDB, { ...opts, fetch: this.transport.fetch });
    /** @type {Promise<any> | undefined} */
    this.information = undefined;
    this.base = '';
    /** @type {[string, string][]} */
    this.headers = [];
    /** Headers of a GET, of the class that PouchDB uses here. @type {() => any} */
    this.getting = () => undefined;
    /** @type {Promise<any>} */
    this.welcome = Promise.resolve(null);
  }

  /**
   * Asks at once what stock is going to ask one after the other: the database
   * (its set-up, which creates it where it is missing) and the server's name.
   * Answers false where the adapter is not stock's, and hides its requests.
   */
  async begin() {
    const information = this.info();
    information.catch(() => {});
    const hidden = information.then(() => null, () => null);
    const first = await Promise.race([this.transport.first, hidden]);
    if (!first) return false;
    this.base = first.url;
    this.headers = [...first.headers].filter(([name]) => !/^(accept|content-type)$/i.test(name));
    const Headers = first.headers.constructor;
    this.getting = () => new Headers([['accept', 'application/json'], ...this.headers]);
    const welcome = this.transport.ahead(this.root, this.getting(), true);
    this.welcome = welcome.then((answer) => answer.json()).catch(() => null);
    return true;
  }

  /**
   * The server said that it is CouchDB: by its name, or sooner by the shards that
   * it tells of a database.
   */
  async isCouch() {
    const named = this.welcome.then((welcome) => welcome?.couchdb === 'Welcome');
    const sharded = this.info().then((/** @type {any} */ info) => typeof info.cluster?.q === 'number', () => false);
    const first = await Promise.race([named, sharded]);
    return first || (await named) || sharded;
  }

  /** What stock's `id()` answers. */
  id() {
    return this.pristine('id') ? this.twin.id() : this.handle.id();
  }

  /** What stock's `info()` answers, asked for once. */
  info() {
    if (!this.pristine('info')) return this.handle.info();
    this.information ??= this.askInfo();
    this.information.catch(() => {
      this.information = undefined;
    });
    return this.information;
  }

  async askInfo() {
    // Set-up asks for the same URL as info, a moment before.
    this.transport.twice = !this.handle.__opts?.skip_setup;
    return this.readInfo();
  }

  /** What the server tells now, even where everything else has been stopped. */
  async infoNow() {
    const { transport, base } = this;
    transport.twice = false;
    transport.take(base);
    transport.confirming = base;
    try {
      return await this.readInfo();
    } finally {
      transport.confirming = undefined;
    }
  }

  async readInfo() {
    const { twin, handle } = this;
    const info = await new Promise((resolve, reject) => {
      twin._info((/** @type {any} */ error, /** @type {any} */ found) => (error ? reject(error) : resolve(found)));
    });
    return { ...info, db_name: info.db_name || handle.name, auto_compaction: false, adapter: handle.adapter };
  }

  /** @param {string} id of a `_local` document */
  getLocal(id) {
    return this.twin.get(id);
  }

  /** @param {any} doc a `_local` document */
  putLocal(doc) {
    return new Promise((resolve, reject) => {
      const done = (/** @type {any} */ error, /** @type {any} */ result) => (error ? reject(error) : resolve(result));
      this.twin._put({ ...doc }, {}, done);
    });
  }

  /**
   * A GET that the engine is going to make.
   * @param {string} path below the database
   */
  ahead(path) {
    this.transport.ahead(this.base + path, this.getting(), false);
  }

  /**
   * Opens a connection for documents while the feed is on its way: a new one costs a
   * round trip, two with TLS. In Node only, where connections are kept by our agent;
   * no more than one, so that a source with nothing in it costs what it costs stock.
   */
  open() {
    const { transport } = this;
    if (transport.own || !transport.agent) return;
    const answer = transport.send(this.root, { headers: this.getting() });
    answer.then((response) => response.text()).catch(() => {});
  }

  /**
   * The answer to a GET that was sent ahead, if it was.
   * @param {string} path
   */
  early(path) {
    return this.transport.take(this.base + path);
  }

  /** Where the server tells its name. */
  get root() {
    return this.base.replace(/[^/]+\/$/, '');
  }

  /** How the engine reaches it. */
  end() {
    return { base: this.base, headers: this.headers, through: this.transport.through };
  }

  /** What it is known to lack. */
  get lacks() {
    return lacking.get(this.handle) ?? { singleUntil: 0, piecewiseUntil: 0 };
  }

  /** @param {any} figures of a run that came to its end */
  learn({ singleUntil, piecewiseUntil }) {
    lacking.set(this.handle, { singleUntil, piecewiseUntil });
  }

  /**
   * The method is the one that PouchDB put on the handle: one that somebody
   * replaced is theirs, and is called.
   * @param {string} name
   */
  pristine(name) {
    const { handle, twin } = this;
    const own = handle[name];
    const reference = Object.hasOwn(twin, name) ? twin[name] : undefined;
    return reference ? alike(own, reference) : inherited(handle, name);
  }
}

/**
 * Stock's adapter once more over the same database, with a transport of ours.
 * @param {any} handle
 * @param {any} PouchDB
 * @param {any} opts
 */
function twin(handle, PouchDB, opts) {
  const made = Object.create(handle);
  PouchDB.adapters[handle.adapter].call(made, opts, () => {});
  return made;
}

/**
 * Two methods that one constructor made: the same text, bound or not.
 * @param {any} one @param {any} other
 */
function alike(one, other) {
  return typeof one === 'function' && String(one) === String(other) && one.name === other.name;
}

/**
 * A method that PouchDB's base class put there, on the prototype or bound.
 * @param {any} handle @param {string} name
 */
export function inherited(handle, name) {
  if (!Object.hasOwn(handle, name)) return true;
  const own = handle[name];
  return typeof own === 'function' && own.name.startsWith('bound ') && /\[native code\]/.test(String(own));
}

/**
 * Nothing was ever written there, as far as can be told.
 * @param {{ info: () => Promise<any> }} db
 */
export async function isEmpty(db) {
  try {
    const info = await db.info();
    return parseInt(info.update_seq, 10) === 0 && info.doc_count === 0 && !info.doc_del_count;
  } catch {
    return false;
  }
}
