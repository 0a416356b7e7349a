// What one half of a sync has just brought from a server, the other half need not
// ask that server about: it named these revisions itself. That holds for one
// database only, so it is forgotten with each failure and each new beginning, and
// before a checkpoint says that the server has everything, the server is asked
// whether the database still is the one that was read.
import { toError } from './errors.js';

/** Most revisions kept, about 5 MB of them: the other half follows closely. */
const MOST = 50_000;

export class Echo {
  /**
   * @param {import('./remote.js').Remote} remote
   * @param {() => boolean} reading more is to come from it
   */
  constructor(remote, reading) {
    this.remote = remote;
    this.reading = reading;
    /** `id`, NUL, `rev`, in the order in which they came. @type {Set<string>} */
    this.revs = new Set();
    /** What tells the database that is read from its successor. @type {string | undefined} */
    this.instance = undefined;
    this.claims = 0;
    this.confirmed = 0;
    /** The session whose claims turned out to be wrong. @type {string | undefined} */
    this.refused = undefined;
    /** The other half runs. */
    this.wanted = true;
    this.runs = 0;
  }

  /** The database is read from now on; what was read before may have been another. */
  begin() {
    this.clear();
    this.instance = undefined;
    this.runs += 1;
    const { runs } = this;
    const information = runs === 1 ? this.remote.info() : this.remote.infoNow();
    information.then((/** @type {any} */ info) => {
      if (this.runs === runs) this.instance = instanceOf(info);
    }, () => {});
  }

  /** Forgets what was brought. */
  clear() {
    this.revs.clear();
  }

  /** Nobody is going to ask any more. */
  stop() {
    this.wanted = false;
    this.clear();
  }

  /** @param {{ _id: string, _rev: string }} doc that the server sent */
  brought({ _id, _rev }) {
    if (!this.wanted || this.instance === undefined) return;
    this.revs.add(`${_id}\0${_rev}`);
    if (this.revs.size <= MOST) return;
    for (const oldest of this.revs) {
      this.revs.delete(oldest);
      return;
    }
  }

  /** The server has them all. @param {string} id @param {string[]} revs */
  has(id, revs) {
    return revs.length > 0 && revs.every((rev) => this.revs.has(`${id}\0${rev}`));
  }

  /** The same, said for good. @param {string} id @param {string[]} revs */
  claim(id, revs) {
    if (!this.has(id, revs)) return false;
    for (const rev of revs) this.revs.delete(`${id}\0${rev}`);
    this.claims += 1;
    return true;
  }

  /**
   * The database still is the one that was read. Asked too where nothing was claimed
   * yet: a checkpoint in a successor would vouch for what is claimed later.
   * @param {string} session of the replication whose checkpoint rests on that
   * @throws where it is not, or does not tell
   */
  async confirm(session) {
    const { claims, instance, revs } = this;
    if (session !== this.refused) {
      const rests = claims !== this.confirmed || (instance !== undefined && (revs.size > 0 || this.reading()));
      if (!rests) return;
      const now = instanceOf(await this.remote.infoNow());
      if (now !== undefined && now === instance) {
        this.confirmed = claims;
        return;
      }
      this.clear();
      this.instance = undefined;
      this.refused = session;
      this.confirmed = this.claims;
    }
    const reason = 'the database was deleted and created anew, or does not tell that it was not';
    throw toError({ code: 'fast_sync_recreated', kind: 'recreated', status: 0, reason }, 'Writing a checkpoint', this.remote.base);
  }

  /**
   * A checkpoint of the server, without what a refused session wrote: the next one
   * begins before all that was claimed.
   * @param {any} doc
   */
  trusted(doc) {
    const { refused } = this;
    if (refused === undefined || doc.session_id !== refused) return doc;
    const history = (doc.history ?? []).filter((/** @type {any} */ entry) => entry.session_id !== refused);
    return { ...doc, history, session_id: '', last_seq: 0 };
  }
}

/**
 * When the database was created. CouchDB before 3.3 says "0" of any.
 * @param {any} info
 */
function instanceOf(info) {
  const { instance_start_time: time } = info ?? {};
  return time === undefined || Number(time) === 0 ? undefined : String(time);
}
