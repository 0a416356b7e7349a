// The links of one `replicate` or `sync`, and which of them a call belongs to.
import { Checkpoints } from './checkpoints.js';
import { allDocs, bulkGet, revsDiff } from './documents.js';
import { Echo } from './echo.js';
import { Link } from './link.js';
import { Remote, inherited } from './remote.js';
import { changes } from './rows.js';
import { Stats } from './stats.js';
import { Progress } from './progress.js';
import { hasTrapped, isTrap, trapped, whenTrapped } from './trap.js';
import { ready } from './wasm.js';

/**
 * @param {object} shared
 * @param {any} shared.PouchDB
 * @param {import('./options.js').Options} shared.chosen
 * @param {any[]} shared.opts the options of one direction, or of both
 * @param {any[]} shared.ends the two handles
 * @param {number} shared.batchSize
 */
export async function open({ PouchDB, chosen, opts, ends, batchSize }) {
  const stats = opts.map(() => new Stats());
  const count = (/** @type {string} */ what, /** @type {number} */ bytes) => stats[0].count(what, bytes);
  const remotes = ends.map((db) => (db._remote ? new Remote(db, PouchDB, count) : null));
  const links = opts.map((own, at) => {
    const [from, to] = at === 0 ? [0, 1] : [1, 0];
    const direction = /** @type {const} */ (['push', 'pull'])[at];
    return new Link({
      direction: opts.length > 1 ? direction : undefined,
      source: ends[from], target: ends[to], sourceRemote: remotes[from], targetRemote: remotes[to],
      opts: own, chosen, batchSize, stats: stats[at],
    });
  });
  for (const link of links) listen(link, links);
  // The first requests leave while the engine compiles.
  const reached = Promise.all(remotes.map((remote) => remote?.begin() ?? true));
  for (const link of links) link.preparing = link.prepare(reached).catch(() => {});
  try {
    const [begun] = await Promise.all([reached, ready()]);
    if (begun.includes(false)) throw new Error('the adapter of the remote database is not stock\'s');
  } catch (error) {
    // Answers that nobody is going to read would keep their connections.
    for (const remote of remotes) remote?.transport.stop();
    throw error;
  }
  for (const link of links) link.begin();
  return new Links(links, ends, remotes);
}

/**
 * What one half of a sync brings from a server, the half that writes to that server
 * need not ask about; what it takes for true is confirmed with its checkpoints there.
 * @param {Link} link @param {Link[]} links
 */
function listen(link, links) {
  const other = links.find(({ target }) => target === link.source);
  const { checkpoint } = other?.opts ?? {};
  if (!other || !link.sourceRemote || checkpoint === false || checkpoint === 'source') return;
  link.brings = other.knows = new Echo(link.sourceRemote, () => link.more);
}

/**
 * What a local database is asked while it is destroyed, it may never answer, and
 * stock waits for its checkpoints even when that cancels the replication.
 * @param {any} db @param {Link | null | undefined} owner @param {Promise<any>} answer
 */
function whileItLives(db, owner, answer) {
  if (!owner) return answer;
  return new Promise((resolve, reject) => {
    const gone = () => {
      if (db._destroyed) reject(new Error('database is destroyed'));
    };
    owner.whenStopped.add(gone);
    answer.then(resolve, reject).finally(() => owner.whenStopped.delete(gone));
  });
}

class Links {
  /** @param {Link[]} links @param {any[]} ends @param {(Remote | null)[]} remotes */
  constructor(links, ends, remotes) {
    this.links = links;
    this.ends = ends;
    this.remotes = remotes;
    /** Which link a checkpoint belongs to, by its id. @type {Map<string, Link | null>} */
    this.owners = new Map();
    const owner = (/** @type {string} */ id) => this.owners.get(id) ?? null;
    this.checkpoints = remotes.map((remote) => remote && new Checkpoints(remote, owner));
    for (const link of links) {
      link.settled = () => this.settled();
      link.written = async () => {
        await Promise.all(this.checkpoints.map((checkpoints) => checkpoints?.written(link)));
      };
    }
    this.stats = () => (links.length === 1 ? links[0].stats.all() : { push: links[0].stats.all(), pull: links[1].stats.all() });
  }

  /**
   * What stock's replicator asks of a view. Before it is told of a failure, with
   * which it ends, what it wrote as a checkpoint is there.
   * @param {any} db
   * @param {string} name
   * @param {any[]} args
   */
  async call(db, name, args) {
    try {
      const answer = await this.answer(db, name, args);
      if (name === 'bulkDocs' && answer?.some?.((/** @type {any} */ row) => row?.error)) await this.settled();
      return answer;
    } catch (/** @type {any} */ error) {
      if (isTrap(error)) {
        trapped(error);
        return db[name](...args);
      }
      // A checkpoint that is not there yet is no failure.
      if (error?.status !== 404) await this.settled();
      throw error;
    }
  }

  async settled() {
    await Promise.all(this.checkpoints.map((checkpoints) => checkpoints?.settled()));
  }

  /** @param {any} db @param {string} name @param {any[]} args */
  answer(db, name, args) {
    const source = this.links.find((link) => link.source === db);
    const target = this.links.find((link) => link.target === db);
    const remote = this.remotes[this.ends.indexOf(db)];
    switch (name) {
      case 'id':
        this.restart();
        return remote ? remote.id() : db.id();
      case 'info':
        return remote && !source?.live ? remote.info() : db.info();
      case 'get':
      case 'put':
        return this.local(db, name, args);
      case 'bulkGet':
        return source ? bulkGet(source, args[0], ...args.slice(1)) : db.bulkGet(...args);
      case 'allDocs':
        return source ? allDocs(source, args) : db.allDocs(...args);
      case 'revsDiff':
        return target && args.length === 1 ? revsDiff(target, args[0]) : db.revsDiff(...args);
      case 'bulkDocs':
        return target ? target.bulkDocs(args[0], ...args.slice(1)) : db.bulkDocs(...args);
      default:
        return db[name](...args);
    }
  }

  /**
   * `get` and `put` of checkpoints.
   * @param {any} db
   * @param {string} name
   * @param {any[]} args
   */
  local(db, name, args) {
    const at = this.ends.indexOf(db);
    const id = name === 'get' ? args[0] : args[0]?._id;
    if (hasTrapped() || typeof id !== 'string' || !id.startsWith('_local/') || typeof args[args.length - 1] === 'function') {
      return db[name](...args);
    }
    if (!this.owners.has(id)) this.own(id, db);
    const other = this.checkpoints[1 - at];
    if (name === 'get' && other && this.writesTo(1 - at, id) && this.untouched(1 - at, 'get')) other.ahead(id);
    const checkpoints = this.checkpoints[at];
    if (!checkpoints) return whileItLives(db, this.owners.get(id), db[name](...args));
    if (!this.untouched(at, 'get') || !this.untouched(at, 'put')) return db[name](...args);
    return name === 'get' ? checkpoints.get(id) : checkpoints.put(args[0]);
  }

  /**
   * The database where stock looks for a checkpoint first tells whose it is:
   * the target's, unless only the source has one. Where that does not tell two
   * directions apart, nothing lags.
   * @param {string} id
   * @param {any} db
   */
  own(id, db) {
    const begins = this.links.filter((link) => db === (link.opts.checkpoint === 'source' ? link.source : link.target));
    this.owners.set(id, begins.length === 1 ? begins[0] : null);
  }

  /** @param {number} at @param {string} id */
  writesTo(at, id) {
    const link = this.owners.get(id);
    const { checkpoint } = link?.opts ?? {};
    if (!link || checkpoint === false) return false;
    return checkpoint !== (this.ends[at] === link.source ? 'target' : 'source');
  }

  /** @param {number} at @param {string} name */
  untouched(at, name) {
    return this.remotes[at]?.pristine(name) ?? inherited(this.ends[at], name);
  }

  /**
   * @param {any} db
   * @param {any} opts
   */
  changes(db, opts) {
    const link = this.links.find(({ source }) => source === db);
    return link ? changes(link, opts) : db._changes(opts);
  }

  /** Somebody replaced `changes`, and stock gets its rows from there. @param {any} db */
  readElsewhere(db) {
    this.links.find(({ source }) => source === db)?.readElsewhere();
  }

  /** Stock's replicator begins (again), and is going to ask for the checkpoints. */
  restart() {
    for (const link of this.links) {
      link.waiting = 0;
      link.knows?.clear();
    }
    for (const checkpoints of this.checkpoints) checkpoints?.forget().catch(() => {});
  }

  /**
   * @param {any[]} replications stock's, one a link
   * @param {any} returned what the caller got
   */
  attach(replications, returned) {
    const running = new Set(this.links);
    const ended = whenTrapped((cause) => {
      for (const link of running) link.breaks(cause);
    });
    this.links.forEach((link, at) => {
      const replication = replications[at];
      new Progress(link, replication, returned);
      replication.on('checkpoint', (/** @type {any} */ event) => {
        if ('checkpoint' in event) link.batchDone();
        else if ('pending_batch' in event) link.waiting += 1;
        else if ('revs_diff' in event) link.waiting -= 1;
      });
      const stop = () => {
        link.cancelled = replication.cancelled;
        link.knows?.stop();
        link.stop();
        running.delete(link);
        if (running.size > 0) return;
        ended();
        for (const checkpoints of this.checkpoints) checkpoints?.flush();
        for (const remote of this.remotes) remote?.transport.stop();
      };
      replication.once('cancel', stop);
      replication.then(stop, stop);
      if (replication.cancelled) stop();
    });
  }
}
