// How documents enter a database: edits (`new_edits` true: a new revision on top of a leaf, or a
// conflict) and replicated revisions (false: the given path is merged, conflicts and all).
// As in CouchDB, one request's documents are checked first, then written in the order of their
// ids; an unknown attachment stub refuses the request as a whole.

import { randomBytes } from 'node:crypto';
import { resolveStubs } from './attachments.mjs';
import { compareBytes } from './bytes.mjs';
import { badRequest, conflict, CouchError, notFound } from './errors.mjs';
import { newRevId } from './erlang.mjs';
import { comparePaths } from './tree.mjs';
import { refusal, validators } from './validate.mjs';

/**
 * @typedef {import('./document.mjs').Incoming} Incoming
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./database.mjs').UserContext} UserContext
 * @typedef {{ ok: true, id: string, rev: string } | { id: string, rev?: string, error: string, reason: string }} Row
 */

/**
 * Documents of one request by id, in the order in which they are written.
 * @template {{ id: string }} T
 * @param {T[]} docs
 * @returns {T[][]}
 */
function buckets(docs) {
  /** @type {Map<string, T[]>} */
  const byId = new Map();
  for (const doc of docs) byId.set(doc.id, [...(byId.get(doc.id) ?? []), doc]);
  return [...byId.keys()].sort(compareBytes).map((id) => /** @type {T[]} */ (byId.get(id)));
}

/** @param {Incoming} doc @param {CouchError} error */
const refused = (doc, { error, reason }) => ({ id: doc.id, error, reason });

/**
 * @param {Database} db
 * @param {Incoming[]} docs
 * @param {UserContext} user
 * @returns {Row[]} one for each document
 */
export function updateInteractively(db, docs, user) {
  for (const doc of docs) if (doc.id === '') doc.id = randomBytes(16).toString('hex');
  const functions = validators(db);
  /** @type {Map<Incoming, Row>} */
  const rows = new Map();
  const checked = shardsToCheck(db, functions, docs);
  const accepted = docs.filter((doc) => {
    if (doc.id.startsWith('_local/') || !checked.has(db.shardOf(doc.id))) return true;
    const error = checkEdit(db, functions, user, doc);
    if (error) rows.set(doc, refused(doc, error));
    return !error;
  });
  for (const bucket of buckets(accepted)) {
    for (const doc of bucket) {
      rows.set(doc, doc.id.startsWith('_local/') ? putLocal(db, doc) : writeEdit(db, doc));
    }
  }
  settle(db, docs);
  db.events.emit('update');
  return docs.map((doc) => /** @type {Row} */ (rows.get(doc)));
}

/**
 * @param {Database} db
 * @param {Function[]} functions
 * @param {UserContext} user
 * @param {Incoming} doc
 * @returns {CouchError | null}
 */
function checkEdit(db, functions, user, doc) {
  const tree = db.docs.get(doc.id)?.tree;
  const parent = doc.revs.ids.length > 0 ? tree?.get(`${doc.revs.start}-${doc.revs.ids[0]}`) : undefined;
  const before = parent && !parent.children ? parent : null;
  if (doc.revs.ids.length > 0 && !before) return tree || doc.atts.length === 0 ? conflict() : stubsOrConflict(doc);
  if (doc.revs.ids.length === 0 && tree && !tree.winner().value?.deleted) return conflict();
  doc.atts = resolveStubs(doc.id, doc.atts, before?.value?.atts ?? [], doc.revs.start + 1);
  return refusal(db, functions, user, doc, before);
}

/** @param {Incoming} doc */
function stubsOrConflict(doc) {
  resolveStubs(doc.id, doc.atts, []);
  return conflict();
}

/**
 * @param {Database} db
 * @param {Incoming} doc
 * @returns {Row}
 */
function writeEdit(db, doc) {
  const stored = db.docs.get(doc.id) ?? db.create(doc.id);
  const { tree } = stored;
  const value = valueOf(doc);
  const isDead = tree.nodes.size > 0 && tree.winner().value?.deleted === true;
  /** @type {{ pos: number, id: string } | null} */
  let parent = null;
  if (isDead) {
    // A deleted document comes back on top of its winner, and only without a `_rev`.
    if (doc.revs.ids.length > 0 || doc.deleted) return refused(doc, conflict());
    parent = tree.winner();
  } else if (doc.revs.ids.length > 0 && tree.nodes.size === 0) {
    // Where nothing was checked, an edit of a revision that nobody knows goes through.
    parent = { pos: doc.revs.start, id: doc.revs.ids[0] };
  } else if (doc.revs.ids.length > 0) {
    const node = tree.get(`${doc.revs.start}-${doc.revs.ids[0]}`);
    // Taken by an earlier document of the same request.
    if (!node || node.children) return refused(doc, conflict());
    parent = node;
  } else if (tree.nodes.size > 0) {
    return refused(doc, conflict());
  }
  const revId = newRevId(value, parent);
  const start = (parent?.pos ?? 0) + 1;
  tree.add({ start, ids: parent ? [revId, parent.id] : [revId] }, value);
  tree.stem(db.revsLimit);
  db.touch(stored);
  return { ok: true, id: doc.id, rev: `${start}-${revId}` };
}

/**
 * @param {Incoming} doc whose stubs are resolved
 * @returns {import('./tree.mjs').Value}
 */
const valueOf = ({ deleted, body, atts }) => ({
  deleted, body, atts: /** @type {import('./attachments.mjs').Attachment[]} */ (atts),
});

/**
 * @param {Database} db
 * @param {Incoming[]} docs
 * @param {UserContext} user
 * @returns {Row[]} only the refused ones
 */
export function updateReplicated(db, docs, user) {
  for (const doc of docs) {
    if (doc.revs.ids.length === 0) {
      throw badRequest('When `new_edits: false`, the document needs `_rev` or `_revisions` specified');
    }
  }
  const functions = validators(db);
  /** @type {Row[]} */
  const rows = [];
  const checked = shardsToCheck(db, functions, docs);
  const accepted = buckets(docs).map((bucket) => {
    if (bucket[0].id.startsWith('_local/') || !checked.has(db.shardOf(bucket[0].id))) return bucket;
    return newLeaves(db, bucket).filter((doc) => {
      const before = nearestAncestor(db.docs.get(doc.id)?.tree, doc.revs);
      doc.atts = resolveStubs(doc.id, doc.atts, before?.value?.atts ?? []);
      const error = refusal(db, functions, user, doc, before);
      if (error) rows.push({ id: doc.id, rev: revOf(doc), error: error.error, reason: error.reason });
      return !error;
    });
  });
  for (const bucket of accepted) mergeBucket(db, bucket);
  settle(db, docs);
  db.events.emit('update');
  return rows;
}

/**
 * @param {Database} db
 * @param {Incoming[]} bucket documents of one id
 */
function mergeBucket(db, bucket) {
  if (bucket.length === 0) return;
  if (bucket[0].id.startsWith('_local/')) {
    bucket.forEach((doc) => putLocal(db, doc));
    return;
  }
  const stored = db.docs.get(bucket[0].id) ?? db.create(bucket[0].id);
  const before = snapshot(stored.tree);
  const changes = bucket.map((doc) => stored.tree.add(doc.revs, valueOf(doc)));
  if (!changes.includes(true)) return;
  stored.tree.stem(db.revsLimit);
  // What was stemmed off again is no change, and moves nothing in the feed.
  const isSame = before.size === stored.tree.nodes.size
    && [...stored.tree.nodes].every(([rev, { value }]) => before.has(rev) && before.get(rev) === value);
  if (!isSame) db.touch(stored);
}

/** @param {import('./tree.mjs').RevTree} tree */
const snapshot = (tree) => new Map([...tree.nodes].map(([rev, { value }]) => [rev, value]));

/**
 * CouchDB looks at the old trees before a write only where it has to: in shards that have
 * validation functions or have not read them yet, and for design documents and attachments.
 * Elsewhere a replicated revision whose body was missing is filled in; where it looks, ignored.
 * @param {Database} db
 * @param {Function[]} functions
 * @param {Incoming[]} docs
 */
function shardsToCheck(db, functions, docs) {
  const needs = docs.filter(({ id, atts }) =>
    functions.length > 0 || atts.length > 0 || id.startsWith('_design/') || !db.settledShards.has(db.shardOf(id)));
  return new Set(needs.map(({ id }) => db.shardOf(id)));
}

/** @param {Database} db @param {Incoming[]} docs that were validated */
function settle(db, docs) {
  for (const { id } of docs) if (!/^_(design|local)\//.test(id)) db.settledShards.add(db.shardOf(id));
  // A new design document makes every shard read them all again.
  if (docs.some(({ id }) => id.startsWith('_design/'))) db.settledShards.clear();
}

/** @param {Incoming} doc */
const revOf = (doc) => `${doc.revs.start}-${doc.revs.ids[0]}`;

/**
 * Those of one id's documents that add a leaf to its tree: not known yet, and no ancestor of
 * another one. CouchDB takes the rest for done.
 * @param {Database} db
 * @param {Incoming[]} bucket
 */
function newLeaves(db, bucket) {
  const tree = db.docs.get(bucket[0].id)?.tree;
  if (!tree) return bucket;
  const covered = new Set(bucket.flatMap((doc) => olderThan(doc.revs)));
  return bucket.filter((doc) => {
    const node = tree.get(revOf(doc));
    if (!node) return !covered.has(revOf(doc));
    if (!node.children) return false;
    // An inner revision counts as new while its path leads its stemmed branch back to another one.
    let root = node;
    while (root.parent) root = root.parent;
    const beyond = olderThan(doc.revs).slice(node.pos - root.pos);
    const others = bucket.filter((other) => other !== doc && comparePaths(other.revs, doc.revs) < 0)
      .map((other) => [revOf(other), ...olderThan(other.revs)])
      .filter((revs) => !revs.includes(root.rev));
    return beyond.some((older) => tree.get(older) || others.some((revs) => revs.includes(older)));
  });
}

/** @param {import('./tree.mjs').Path} path @returns {string[]} */
const olderThan = ({ start, ids }) => ids.slice(1).map((id, i) => `${start - i - 1}-${id}`);

/**
 * @param {import('./tree.mjs').RevTree | undefined} tree
 * @param {import('./tree.mjs').Path} path
 */
function nearestAncestor(tree, path) {
  for (let i = 1; tree && i < path.ids.length; i += 1) {
    const node = tree.get(`${path.start - i}-${path.ids[i]}`);
    if (!node) continue;
    for (let at = /** @type {import('./tree.mjs').Node | null} */ (node); at; at = at.parent) if (at.value) return at;
    return null;
  }
  return null;
}

/**
 * `_local` documents have no history: any `_rev`, old or absent, is accepted and counted up.
 * @param {Database} db
 * @param {Incoming} doc
 * @returns {Row}
 */
export function putLocal(db, doc) {
  if (doc.deleted) {
    if (!db.locals.delete(doc.id)) throw notFound('missing');
    return { ok: true, id: doc.id, rev: '0-0' };
  }
  const given = doc.revs.ids[0] ?? '0';
  if (doc.revs.start !== 0 || !/^\d+$/.test(given)) throw new CouchError(500, 'error', 'Invalid rev format');
  const rev = Number(given) + 1;
  db.locals.set(doc.id, { rev, body: doc.body });
  return { ok: true, id: doc.id, rev: `0-${rev}` };
}
