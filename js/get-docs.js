// `getDocs` and `bulkGet` for those who call them themselves, without a
// replication.
import { attach } from './attachments.js';
import { Link } from './link.js';
import { Remote } from './remote.js';
import { Stats } from './stats.js';
import { ready } from './wasm.js';

/** Entries of one request of `bulkGet`: some 0.3 s of a server's time. */
const SLICE = 250;
/** Its requests at once: a browser keeps six connections to an origin. */
const AT_ONCE = 4;

/**
 * In slices by the handle's own method, so that every option means what it means there.
 * @param {any} db
 * @param {any} options of `db.bulkGet`
 */
export async function bulkGet(db, options) {
  const { docs } = options;
  if (!db._remote || docs.length <= SLICE) return db.bulkGet(options);
  const starts = Array.from({ length: Math.ceil(docs.length / SLICE) }, (_, at) => at * SLICE);
  const answers = new Array(starts.length);
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, starts.length) }, async () => {
    while (next < starts.length) {
      const at = next++;
      answers[at] = await db.bulkGet({ ...options, docs: docs.slice(starts[at], starts[at] + SLICE) });
    }
  }));
  return { results: answers.flatMap(({ results }) => results) };
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
  const answer = await (link ? link.bulkGet({ docs, revs: true, latest: true }).finally(() => link.stop()) : plain(src, docs));
  if (state.cancelled) throw new Error('cancelled');
  const rows = answer.results.flatMap((/** @type {any} */ { docs: found }) => (found.length > 0 ? found : [{}]));
  const found = rows.flatMap((/** @type {any} */ { ok }) => ok ?? []);
  found.forEach(attach);
  return { ok: found.length === rows.length, docs: found };
}

/**
 * A link that reads nothing ahead; none where the engine cannot serve.
 * @param {any} source @param {any} target
 */
async function linked(source, target) {
  if (source._remote !== true || typeof source.fetch !== 'function') return null;
  const stats = new Stats();
  const remote = new Remote(source, source.constructor, (what, bytes) => stats.count(what, bytes));
  // Where WebAssembly is refused, it is done as PouchDB does it.
  const [begun, compiled] = await Promise.all([remote.begin(), ready().then(() => true, () => false)]);
  if (!begun || !compiled || !remote.pristine('bulkGet')) return null;
  return new Link({ source, target, sourceRemote: remote, targetRemote: null, opts: {}, chosen: {}, batchSize: 1000, stats });
}

/**
 * As PouchDB does it, but each attachment with its revision.
 * @param {any} src
 * @param {{ id: string, rev: string }[]} docs
 */
async function plain(src, docs) {
  const answer = await src.bulkGet({ docs, revs: true, latest: true });
  const found = answer.results.flatMap((/** @type {any} */ result) => result.docs).flatMap((/** @type {any} */ { ok }) => ok ?? []);
  for (const doc of found) {
    await Promise.all(Object.entries(doc._attachments ?? {}).map(async ([name, attachment]) => {
      attachment.data = await src.getAttachment(doc._id, name, { rev: doc._rev });
      delete attachment.stub;
      delete attachment.length;
    }));
  }
  return answer;
}
