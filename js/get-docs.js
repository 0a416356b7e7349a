// `getDocs` and `bulkGet` for those who call them themselves, without a
// replication.
import { attach } from './attachments.js';
import { isFailure } from './errors.js';
import { Link } from './link.js';
import { Remote } from './remote.js';
import { Stats } from './stats.js';
import { ready } from './wasm.js';

/**
 * @param {any} db
 * @param {any} options of `db.bulkGet`
 */
export async function bulkGet(db, options) {
  const { docs, revs, attachments, binary } = options;
  const named = docs.every((/** @type {any} */ doc) => doc.rev && !doc.atts_since);
  // Without a revision, all leaves answer: that is not a question of replication.
  if (!db._remote || !named) return db.bulkGet(options);
  const link = await linked(db, db);
  if (!link) return db.bulkGet(options);
  const answer = await link.bulkGet({ docs });
  link.stop();
  for (const { docs: found } of answer.results) {
    for (const { ok: doc } of found) {
      attach(doc);
      if (!revs) delete doc._revisions;
    }
  }
  void [attachments, binary, isFailure];
  return answer;
}

/**
 * @param {any} src
 * @param {any} target
 * @param {Record<string, { missing: string[] }>} diffs
 * @param {{ cancelled?: boolean }} state
 */
export async function getDocs(src, target, diffs, state) {
  const docs = Object.entries(diffs).flatMap(([id, { missing }]) => missing.map((rev) => ({ id, rev })));
  if (docs.length === 0) return { ok: true, docs: [] };
  const link = await linked(src, target);
  if (!link) throw new TypeError('getDocs: the source must be a remote PouchDB');
  const answer = await link.bulkGet({ docs }).finally(() => link.stop());
  if (state.cancelled) throw new Error('cancelled');
  const found = answer.results.flatMap((/** @type {any} */ result) => result.docs.map((/** @type {any} */ doc) => doc.ok));
  found.forEach(attach);
  return { ok: answer.results.every((/** @type {any} */ result) => result.docs.length > 0), docs: found };
}

/** @param {any} source @param {any} target */
async function linked(source, target) {
  const stats = new Stats();
  if (!source._remote) return null;
  const remote = new Remote(source, source.constructor, (what, bytes) => stats.count(what, bytes));
  const [begun] = await Promise.all([remote.begin(), ready()]);
  if (!begun) return null;
  return new Link({ source, target, sourceRemote: remote, targetRemote: null, opts: {}, chosen: {}, batchSize: 1000, stats });
}
