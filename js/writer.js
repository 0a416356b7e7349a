// Writes a batch to the target; stock's replicator sees one write. On a database
// of this process it goes in parts, sized so that none keeps a browser's main
// thread for long. To a server it goes in several requests at once (src/writes.rs).
import { attach } from './attachments.js';
import { toError } from './errors.js';
import { inherited } from './remote.js';

/** A part aims at so many ms: below the 50 that a browser calls a long task. */
const AIM_MS = 30;
const FIRST_PART = 100;
const MOST = 1000;
const LEAST = 25;

const inMainThread = typeof globalThis.document === 'object';

/**
 * @param {import('./link.js').Link} link
 * @param {any} req of `bulkDocs`
 * @param {any[]} rest
 */
export async function write(link, req, rest) {
  const { stats } = link;
  for (const doc of req.docs) attach(doc);
  const began = performance.now();
  const remote = link.targetRemote?.pristine('bulkDocs') && req.new_edits === false;
  const results = await (remote && !link.broken ? toServer(link, req, rest) : toLocal(link, req, rest));
  stats.writeMs += performance.now() - began;
  return results;
}

/**
 * @param {import('./link.js').Link} link
 * @param {any} req
 * @param {any[]} rest
 */
async function toLocal(link, req, rest) {
  const { target, stats } = link;
  const whole = !inMainThread || link.targetRemote || !inherited(target, 'bulkDocs');
  const results = [];
  for (let from = 0; from < req.docs.length;) {
    const docs = req.docs.slice(from, from + (whole ? req.docs.length : part(link)));
    const started = performance.now();
    results.push(...(await target.bulkDocs({ ...req, docs }, ...rest)));
    link.msPerDoc = (performance.now() - started) / docs.length;
    from += docs.length;
    stats.docsWritten += docs.length;
    link.progress('writing');
  }
  return results;
}

/** @param {import('./link.js').Link} link */
function part({ msPerDoc }) {
  return msPerDoc ? Math.max(LEAST, Math.min(MOST, Math.round(AIM_MS / msPerDoc))) : FIRST_PART;
}

/**
 * @param {import('./link.js').Link} link
 * @param {any} req
 * @param {any[]} rest
 */
async function toServer(link, req, rest) {
  const { docs } = req;
  if (docs.some((/** @type {any} */ doc) => doc._attachments)) return toLocal(link, req, rest);
  let answer;
  try {
    answer = await link.engine().write(docs.map(textOf));
  } catch (failure) {
    if (link.breaks(failure) || link.stocksOwn(failure)) return link.target.bulkDocs(req, ...rest);
    throw toError(/** @type {any} */ (failure), 'Writing documents', link.targetRemote?.base ?? '');
  }
  const { rows, tooLarge } = answer;
  for (const at of tooLarge) {
    rows.push({ id: docs[at]._id, error: 'document_too_large', reason: docs[at]._id, status: 413 });
  }
  link.stats.docsWritten += docs.length - rows.length;
  link.progress('writing');
  return rows.map(asStock);
}

/**
 * A row of `_bulk_docs` as stock's adapter hands it on (pouchdb-errors,
 * `generateErrorFromResponse`): callers read `name` and `status`.
 * @param {any} row
 */
function asStock(row) {
  const status = row.error === 'conflict' ? 409 : row.status ?? 500;
  return { ...row, name: row.error, status, message: row.reason };
}

/** @type {WeakMap<any, string>} */
const texts = new WeakMap();

/**
 * The JSON text of a document, kept as long as the document is: reading ahead
 * needs its size, and writing the text.
 * @param {any} doc
 */
export function textOf(doc) {
  let text = texts.get(doc);
  if (text === undefined) texts.set(doc, (text = JSON.stringify(doc)));
  return text;
}
