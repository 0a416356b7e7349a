// `getDocs` and `bulkGet` for those who call them themselves, without a
// replication.
import { attach } from './attachments.js';
import { bulkGet as fetched } from './documents.js';
import { Lanes } from './lanes.js';
import { Link } from './link.js';
import { each } from './reading.js';
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
  const slices = db._remote ? slicesOf(options.docs) : [];
  if (slices.length < 2) return db.bulkGet(options);
  const answers = await each(slices, AT_ONCE, (docs) => db.bulkGet({ ...options, docs }));
  return { results: answers.flatMap(({ results }) => results) };
}

/**
 * Entries of one document stay together: where PouchDB has to ask for each document
 * alone, it gathers their results. Where they stand apart, nothing is divided.
 * @param {any[]} docs
 * @returns {any[][]}
 */
function slicesOf(docs) {
  const slices = [[docs[0]]];
  const seen = new Set();
  for (const [at, doc] of docs.entries()) {
    if (at === 0) continue;
    const slice = slices[slices.length - 1];
    const { id } = slice[slice.length - 1];
    if (doc.id !== id) seen.add(id);
    if (seen.has(doc.id)) return [];
    if (doc.id !== id && slice.length >= SLICE) slices.push([doc]);
    else slice.push(doc);
  }
  return slices;
}

/**
 * @param {any} src
 * @param {any} target
 * @param {Record<string, { missing?: string[] }>} diffs
 * @param {{ cancelled?: boolean }} state
 */
export async function getDocs(src, target, diffs, state) {
  const docs = Object.entries(diffs).flatMap(([id, { missing = [] }]) => missing.map((rev) => ({ id, rev })));
  if (docs.length === 0) return { ok: true, docs: [] };
  const link = await linked(src, target);
  const answer = await (link ? fetched(link, { docs, revs: true, latest: true }).finally(() => link.stop()) : plain(src, docs));
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
  const count = (/** @type {string} */ what, /** @type {number} */ bytes) => stats.count(what, bytes);
  const remote = new Remote(source, source.constructor, count);
  // Where WebAssembly is refused, it is done as PouchDB does it.
  const [begun, compiled] = await Promise.all([remote.begin(), ready().then(() => true, () => false)]);
  if (!begun || !compiled || !remote.pristine('bulkGet')) return null;
  const targetRemote = target._remote ? new Remote(target, target.constructor, count) : null;
  const link = new Link({ source, target, sourceRemote: remote, targetRemote, opts: {}, chosen: {}, batchSize: 1000, stats });
  link.keepsStubs = false;
  return link;
}

/**
 * As PouchDB does it, but each attachment with its revision.
 * @param {any} src
 * @param {{ id: string, rev: string }[]} docs
 */
async function plain(src, docs) {
  const answer = await src.bulkGet({ docs, revs: true, latest: true });
  const found = answer.results.flatMap((/** @type {any} */ result) => result.docs).flatMap((/** @type {any} */ { ok }) => ok ?? []);
  const lanes = new Lanes(AT_ONCE);
  await Promise.all(found.flatMap((/** @type {any} */ doc) =>
    Object.entries(doc._attachments ?? {}).map(async ([name, attachment]) => {
      attachment.data = await lanes.run(() => src.getAttachment(doc._id, name, { rev: doc._rev }));
      delete attachment.stub;
      delete attachment.length;
    })));
  return answer;
}
