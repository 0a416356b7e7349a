// One database: its documents with their trees, `_local` documents, shards and their counters,
// and what tests need to look inside and to change it without HTTP. Writing rules live in
// writes.mjs, the feed in changes.mjs.

import { EventEmitter } from 'node:events';
import { randomBytes } from 'node:crypto';
import { plainBytes } from './attachments.mjs';
import { crc32Of } from './bytes.mjs';
import { documentFromJson, documentToJson } from './document.mjs';
import { notFound } from './errors.mjs';
import { encodeSeq } from './seq.mjs';
import { pathOf, RevTree } from './tree.mjs';
import { putLocal, updateInteractively, updateReplicated } from './writes.mjs';

/**
 * @typedef {{ id: string, tree: RevTree, shard: number, seq: number }} StoredDoc
 * @typedef {{ name: string | null, roles: string[] }} UserContext
 */

/** @type {UserContext} */
export const ADMIN = { name: null, roles: ['_admin'] };

// CouchDB 3's default: nobody but admins
const CLOSED = { members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } };

export class Database {
  /**
   * @param {string} name
   * @param {{ q?: number, revsLimit?: number, limits?: { maxDocumentSize?: number } }} [options]
   */
  constructor(name, { q = 2, revsLimit = 1000, limits = {} } = {}) {
    this.name = name;
    this.uuid = randomBytes(16).toString('hex');
    this.created = Math.floor(Date.now() / 1000);
    this.revsLimit = revsLimit;
    this.limits = limits;
    /** @type {import('./seq.mjs').Vector} newest counter of each shard */
    this.seqs = new Array(q).fill(0);
    /** @type {Map<string, StoredDoc>} in the order of their last update */
    this.docs = new Map();
    /** @type {Set<string>} */
    this.designIds = new Set();
    /** @type {Map<string, { rev: number, body: object }>} */
    this.locals = new Map();
    this.security = CLOSED;
    /** Writes of every kind answer 403, as for a user who may only read. */
    this.readOnly = false;
    /**
     * How the feed mixes its shards, which the real one leaves to chance: as the writes came, or
     * the shards that rows are drawn from in turn, the rest of each shard thereafter.
     */
    this.feedOrder = /** @type {'update' | number[]} */ ('update');
    /** @type {((entry: import('./log.mjs').LogEntry, db: Database) => unknown) | null} called before a request is handled */
    this.onRequest = null;
    /** @type {{ matches: (id: string) => boolean, times: number } | null} */
    this.lagging = null;
    /** Shards that have read the validation functions; see writes.mjs. @type {Set<number>} */
    this.settledShards = new Set();
    this.events = new EventEmitter().setMaxListeners(0);
    this.deleted = false;
  }

  /** @param {string} id */
  shardOf(id) {
    return Math.floor((crc32Of(id) / 2 ** 32) * this.seqs.length);
  }

  get updateSeq() {
    return encodeSeq(this.uuid, this.seqs);
  }

  info() {
    let deletedCount = 0;
    for (const { tree } of this.docs.values()) if (tree.winner().value?.deleted) deletedCount += 1;
    return {
      instance_start_time: String(this.created),
      db_name: this.name,
      purge_seq: encodeSeq(this.uuid, this.seqs.map(() => 0)),
      update_seq: this.updateSeq,
      sizes: { file: 16708 + 4096 * this.docs.size, external: 64 * this.docs.size, active: 512 * this.docs.size },
      props: {},
      doc_del_count: deletedCount,
      doc_count: this.docs.size - deletedCount,
      disk_format_version: 8,
      compact_running: false,
      cluster: { q: this.seqs.length, n: 1, w: 1, r: 1 },
    };
  }

  /**
   * Gives a document a new place at the end of the feed.
   * @param {StoredDoc} doc
   */
  touch(doc) {
    this.seqs[doc.shard] += 1;
    doc.seq = this.seqs[doc.shard];
    this.docs.delete(doc.id);
    this.docs.set(doc.id, doc);
    if (doc.id.startsWith('_design/')) this.designIds.add(doc.id);
  }

  /** @param {string} id */
  create(id) {
    return { id, tree: new RevTree(), shard: this.shardOf(id), seq: 0 };
  }

  /**
   * The revisions that a read finds, as nodes, or what is missing, as strings. A replica that
   * lags behind knows nothing of a document when a read is content with one answer.
   * @param {string} id
   * @param {'all' | import('./revs.mjs').Rev[]} revs
   * @param {{ latest?: boolean, r?: number }} [options]
   * @returns {(import('./tree.mjs').Node | string)[]}
   */
  openRevs(id, revs, { latest = false, r } = {}) {
    const doc = r === 1 && this.isLagging(id) ? undefined : this.docs.get(id);
    if (revs === 'all') return doc ? doc.tree.leaves() : [];
    /** @type {Set<import('./tree.mjs').Node | string>} */
    const found = new Set();
    for (const { rev } of revs) {
      const node = doc?.tree.get(rev);
      if (latest && node) doc?.tree.leavesFrom(rev).forEach((leaf) => found.add(leaf));
      else found.add(node?.value ? node : rev);
    }
    return [...found];
  }

  /**
   * Makes reads with `r=1` miss documents, as a replica does that has not caught up.
   * @param {Iterable<string> | ((id: string) => boolean)} ids
   * @param {{ times?: number }} [options] how many reads miss
   */
  lag(ids, { times = Infinity } = {}) {
    const set = typeof ids === 'function' ? null : new Set(ids);
    this.lagging = { matches: typeof ids === 'function' ? ids : (id) => set?.has(id) ?? false, times };
  }

  /** @param {string} id */
  isLagging(id) {
    if (!this.lagging || this.lagging.times <= 0 || !this.lagging.matches(id)) return false;
    this.lagging.times -= 1;
    return true;
  }

  /**
   * Writes as `_bulk_docs` does, at once and without HTTP.
   * @param {any[]} docs
   * @param {{ new_edits?: boolean, user?: UserContext }} [options]
   * @returns {any[]} rows as `_bulk_docs` answers
   */
  bulkDocs(docs, { new_edits: newEdits = true, user = ADMIN } = {}) {
    const incoming = docs.map((doc) => documentFromJson(structuredClone(doc)));
    return newEdits ? updateInteractively(this, incoming, user) : updateReplicated(this, incoming, user);
  }

  /**
   * @param {any} doc
   * @param {{ new_edits?: boolean, user?: UserContext }} [options]
   * @returns {any} `{ ok, id, rev }`; throws the row of a refused write
   */
  put(doc, options = {}) {
    if (doc._id?.startsWith('_local/')) return putLocal(this, documentFromJson(structuredClone(doc)));
    const [row] = this.bulkDocs([doc], options);
    if (row?.error) throw Object.assign(new Error(`${row.error}: ${row.reason}`), row);
    return row ?? { ok: true, id: doc._id, rev: doc._rev };
  }

  /**
   * @param {string} id
   * @param {string} [rev] the winner without
   */
  get(id, rev) {
    if (id.startsWith('_local/')) {
      const local = this.locals.get(id);
      return local && { _id: id, _rev: `0-${local.rev}`, ...local.body };
    }
    const tree = this.docs.get(id)?.tree;
    const node = rev ? tree?.get(rev) : tree?.winner();
    return node?.value && documentToJson(id, node, { revs: true });
  }

  /**
   * @param {string} id
   * @returns {{ rev: string, deleted: boolean, doc: any }[]} the winner first
   */
  leaves(id) {
    const ranked = this.docs.get(id)?.tree.ranked() ?? [];
    return ranked.map((node) => ({
      rev: node.rev,
      deleted: node.value?.deleted ?? false,
      doc: documentToJson(id, node, { revs: true }),
    }));
  }

  /**
   * Everything that must be the same in two databases after a replication, by id.
   * Attachments carry their plain bytes: the digest of a gzip-stored one is CouchDB's own affair.
   */
  dump() {
    const ids = [...this.docs.keys()].sort();
    return Object.fromEntries(ids.map((id) => {
      const tree = /** @type {StoredDoc} */ (this.docs.get(id)).tree;
      const leaves = tree.ranked().map((node) => {
        const value = /** @type {import('./tree.mjs').Value} */ (node.value);
        return {
          rev: node.rev,
          deleted: value.deleted,
          revisions: pathOf(node, this.revsLimit),
          body: value.body,
          attachments: Object.fromEntries(value.atts
            .map((att) => [att.name, { content_type: att.type, bytes: plainBytes(att).toString('base64') }])
            .sort()),
        };
      });
      return [id, { winner: tree.winner().rev, leaves }];
    }));
  }

  /** Drops the bodies of all revisions but the leaves: they answer `missing` from now on. */
  compact() {
    for (const { tree } of this.docs.values()) tree.compact();
  }

  /** A setting counts as an update of every shard. @param {number} limit */
  setRevsLimit(limit) {
    this.revsLimit = limit;
    this.seqs = this.seqs.map((seq) => seq + 1);
  }

  /** @param {object} security */
  setSecurity(security) {
    this.security = /** @type {typeof CLOSED} */ (security);
    this.seqs = this.seqs.map((seq) => seq + 1);
  }

  /** Ends the feeds that wait on it. */
  destroy() {
    this.deleted = true;
    this.events.emit('update');
  }
}

/**
 * @param {StoredDoc | undefined} doc
 * @returns {import('./tree.mjs').Node} the winner; throws 404 where there is none to show
 */
export function livingWinner(doc) {
  const node = doc?.tree.winner();
  if (!node) throw notFound('missing');
  if (node.value?.deleted) throw notFound('deleted');
  return node;
}
