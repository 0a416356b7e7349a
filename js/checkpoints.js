// The `_local` documents of a remote database, written behind: stock's replicator
// gets its answer at once while more is to come, and waits for the last. What may
// be written when is the engine's decision (src/checkpoint.rs).
import { Checkpoint } from '../pkg/engine.js';
import { trapped } from './trap.js';

export class Checkpoints {
  /**
   * @param {import('./remote.js').Remote} remote
   * @param {(id: string) => import('./link.js').Link | null} owner which replication a checkpoint is of
   */
  constructor(remote, owner) {
    this.remote = remote;
    this.owner = owner;
    /** @type {Map<string, Behind>} */
    this.documents = new Map();
  }

  /** @param {string} id */
  of(id) {
    const behind = this.documents.get(id) ?? new Behind(this.remote, id, this.owner(id));
    this.documents.set(id, behind);
    return behind;
  }

  /**
   * Stock is about to ask for it: ask now.
   * @param {string} id
   */
  ahead(id) {
    this.of(id).read().catch(() => {});
  }

  /** @param {string} id */
  async get(id) {
    const behind = this.of(id);
    if (!behind.isFollowed() && !this.owner(id)?.mayLag()) await behind.settled();
    return behind.get();
  }

  /** @param {any} doc */
  async put(doc) {
    const behind = this.of(doc._id);
    const owner = this.owner(doc._id);
    const answer = behind.put(doc, owner?.nearEnd() ?? false);
    if (!owner?.mayLag()) await behind.settled();
    return answer;
  }

  /**
   * What a replication put is written, unless it is going to put another, and wait for that.
   * @param {import('./link.js').Link} owner
   */
  async written(owner) {
    const last = [...this.documents.values()].filter((behind) => behind.owner === owner && !behind.isFollowed());
    await Promise.all(last.map((behind) => behind.settled().catch((error) => {
      // Stock takes a source that refuses them for one that is read only (pouchdb-checkpointer).
      const refused = Math.floor(error.status / 100) === 4;
      if (!refused || this.remote !== owner.sourceRemote) throw error;
    })));
  }

  /** What was put is written, or could not be. */
  async settled() {
    await Promise.all([...this.documents.values()].map((behind) => behind.settled().catch(() => {})));
  }

  /** Nothing more is going to be put. */
  flush() {
    for (const behind of this.documents.values()) behind.flush();
  }

  /** A replication begins (again): what another client wrote meanwhile counts. */
  async forget() {
    await this.settled();
    this.documents.clear();
  }
}

/** One document. */
class Behind {
  /** @param {import('./remote.js').Remote} remote @param {string} id @param {import('./link.js').Link | null} owner */
  constructor(remote, id, owner) {
    this.remote = remote;
    this.id = id;
    this.owner = owner;
    this.checkpoint = new Checkpoint();
    /** What stock wrote last, if anything. @type {any} */
    this.newest = undefined;
    /** @type {string | undefined} */
    this.rev = undefined;
    /** @type {any} */
    this.error = undefined;
    /** @type {Promise<any> | undefined} */
    this.reading = undefined;
    /** @type {Promise<void> | undefined} */
    this.writing = undefined;
    this.wake = () => {};
    this.waiters = 0;
  }

  /** The replicator, which finds that seq there, writes another. */
  isFollowed() {
    return Boolean(this.newest && this.owner?.putFollows(this.newest.last_seq));
  }

  /** As the server has it, asked for once. */
  read() {
    const reading = this.reading ?? this.remote.getLocal(this.id);
    this.reading = reading;
    return reading;
  }

  async get() {
    this.raise();
    if (this.newest) return structuredClone(this.newest);
    try {
      const doc = structuredClone(await this.read());
      return this.owner?.knows?.trusted(doc) ?? doc;
    } catch (error) {
      // Not found is worth knowing; anything else may be better the next time.
      if (/** @type {any} */ (error)?.status !== 404) this.reading = undefined;
      // It was ended by a cancel. Stock that is at its last checkpoint would end with an error.
      if (this.owner?.cancelled) throw Object.assign(new Error('missing'), { status: 404, name: 'not_found' });
      throw error;
    }
  }

  /** @param {any} doc @param {boolean} nearEnd */
  put(doc, nearEnd) {
    this.raise();
    this.rev ??= doc._rev;
    this.newest = structuredClone(doc);
    this.decide('put', nearEnd);
    this.writing ??= this.write();
    return { ok: true, id: this.id, rev: this.rev ?? '0-1' };
  }

  async write() {
    for (let wait; (wait = this.decide('nextIn')) !== undefined;) {
      if (this.decide('mayWrite')) await this.writeNewest();
      else await this.pause(wait);
    }
    this.writing = undefined;
  }

  async writeNewest() {
    const { _rev, ...doc } = this.newest;
    try {
      await this.owner?.knows?.confirm(doc.session_id);
      const written = await this.remote.putLocal(this.rev ? { ...doc, _rev: this.rev } : doc);
      this.rev = written.rev;
      this.decide('written');
    } catch (error) {
      this.decide('failed');
      // Where nobody waits for it, stock may not ask for long.
      this.error = this.waiters === 0 && this.owner?.fail(error) ? undefined : error;
      // Another tab may have written: read it again before the next try.
      this.rev = this.newest = this.reading = undefined;
    }
  }

  /**
   * After a trap nothing more is written: the checkpoint lags, and stock writes the next.
   * @param {'put' | 'nextIn' | 'mayWrite' | 'written' | 'failed' | 'flush'} name
   * @param {any[]} args
   */
  decide(name, ...args) {
    try {
      return /** @type {any} */ (this.checkpoint)[name](...args);
    } catch (error) {
      trapped(error);
      return undefined;
    }
  }

  /** @param {number} ms */
  pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }

  /** Does not wait for the interval between two writes. */
  flush() {
    this.decide('flush');
    this.wake();
  }

  /** Everything is written, or the failure is told. */
  async settled() {
    this.flush();
    this.waiters += 1;
    await this.writing;
    this.waiters -= 1;
    this.raise();
  }

  /** Tells a failure, once. */
  raise() {
    const { error } = this;
    this.error = undefined;
    // After a cancel, what was under way may be ended too.
    if (error && !this.owner?.cancelled) throw error;
  }
}
