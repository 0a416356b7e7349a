// All of a database that a replication must leave the same: by id the winner, and every leaf with
// its body, history, deleted flag and attachments. Seqs and `_local` documents are not part of it.

import assert from 'node:assert/strict';

/**
 * @typedef {{ deleted: boolean, revisions: { start: number, ids: string[] }, body: string,
 *   attachments: Record<string, { content_type: string, bytes: string }> }} Leaf
 * @typedef {{ winner: string, conflicts: string[], leaves: Record<string, Leaf> }} Entry
 * @typedef {{ docCount: number, deletedCount: number, docs: Map<string, Entry> }} Snapshot
 */

/**
 * @param {any} db a local PouchDB
 * @returns {Promise<Snapshot>}
 */
export async function snapshot(db) {
  const { results } = await db.changes({ since: 0, style: 'all_docs', include_docs: true, conflicts: true });
  const docs = new Map();
  for (const row of results.sort(byId)) docs.set(row.id, await entry(db, row));
  const info = await db.info();
  const deleted = results.filter((/** @type {any} */ row) => row.deleted).length;
  assert.equal(info.doc_count, results.length - deleted, 'doc_count agrees with the feed');
  return { docCount: info.doc_count, deletedCount: deleted, docs };
}

/**
 * @param {any} db
 * @param {any} row
 * @returns {Promise<Entry>}
 */
async function entry(db, row) {
  const revs = row.changes.map((/** @type {any} */ change) => change.rev).sort();
  const found = await db.get(row.id, { open_revs: revs, revs: true, attachments: true });
  /** @type {Record<string, Leaf>} */
  const leaves = {};
  for (const { ok, missing } of found) {
    assert.ok(ok, `${row.id} at ${missing} has a body`);
    const { _id, _rev, _deleted, _revisions, _attachments, ...body } = ok;
    assert.equal(_id, row.id);
    leaves[_rev] = {
      deleted: Boolean(_deleted), revisions: _revisions, body: canonical(body), attachments: attachmentsOf(_attachments),
    };
  }
  assert.deepEqual(Object.keys(leaves).sort(), revs, `${row.id} has the leaves that its feed row names`);
  return { winner: row.doc._rev, conflicts: row.doc._conflicts ?? [], leaves };
}

/** @param {any} [attachments] */
function attachmentsOf(attachments = {}) {
  const names = Object.keys(attachments).sort();
  return Object.fromEntries(names.map((name) => {
    const { content_type, data } = attachments[name];
    assert.equal(typeof data, 'string', `${name} has its bytes`);
    return [name, { content_type, bytes: data }];
  }));
}

/**
 * The same of the scripted server's database.
 * @param {import('./couch/database.mjs').Database} database
 * @returns {Snapshot}
 */
export function serverSnapshot(database) {
  const docs = new Map();
  let deletedCount = 0;
  for (const [id, { winner, leaves }] of Object.entries(database.dump()).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const living = leaves.filter((leaf) => !leaf.deleted && leaf.rev !== winner).map((leaf) => leaf.rev);
    const isDeleted = leaves.every((leaf) => leaf.deleted);
    if (isDeleted) deletedCount += 1;
    docs.set(id, {
      winner,
      conflicts: living,
      leaves: Object.fromEntries(leaves.map(({ rev, deleted, revisions, body, attachments }) =>
        [rev, { deleted, revisions, body: canonical(body), attachments }])),
    });
  }
  return { docCount: docs.size - deletedCount, deletedCount, docs };
}

/**
 * Fails with the first document that differs.
 * @param {Snapshot} expected
 * @param {Snapshot} actual
 * @param {string} [what]
 */
export function compare(expected, actual, what = 'the two databases') {
  assert.deepEqual([...actual.docs.keys()], [...expected.docs.keys()], `${what} hold the same documents`);
  for (const [id, entry] of expected.docs) {
    assert.deepEqual(tidy(actual.docs.get(id)), tidy(entry), `${what} hold the same of ${JSON.stringify(id)}`);
  }
  const counts = ({ docCount, deletedCount }) => ({ docCount, deletedCount });
  assert.deepEqual(counts(actual), counts(expected), `${what} count alike`);
}

/**
 * A snapshot with the attachments that another one has for the same leaves.
 * @param {Snapshot} of
 * @param {Snapshot} from
 * @returns {Snapshot}
 */
export function withAttachmentsOf(of, from) {
  const docs = new Map([...of.docs].map(([id, { leaves, ...rest }]) => {
    const known = from.docs.get(id)?.leaves ?? {};
    return [id, { ...rest, leaves: Object.fromEntries(Object.entries(leaves).map(([rev, leaf]) =>
      [rev, { ...leaf, attachments: known[rev]?.attachments ?? leaf.attachments }])) }];
  }));
  return { ...of, docs };
}

/** Nothing depends on the order of conflicts. @param {Entry | undefined} entry */
const tidy = (entry) => entry && { ...entry, conflicts: [...entry.conflicts].sort() };

/** JSON with sorted keys: not every adapter keeps their order. @param {any} value @returns {string} */
function canonical(value) {
  return JSON.stringify(value, (_key, v) => {
    if (v === null || typeof v !== 'object' || Array.isArray(v)) return v;
    return { entries: Object.keys(v).sort().map((key) => [key, v[key]]) };
  });
}

/** @param {{ id: string }} a @param {{ id: string }} b */
const byId = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
