// Writes a batch to the target; stock's replicator sees one write. On a database
// of this process it goes in parts, sized so that none keeps a browser's main
// thread for long. To a server it goes in several requests at once (src/writes.rs).
import { attach, fetchLeftOut } from './attachments.js';
import { toError } from './errors.js';
import { outgoing, refusesMultipart } from './outgoing.js';
import { breathe, inMainThread } from './platform.js';
import { inherited } from './remote.js';
import { unlessTrapped } from './trap.js';

/**
 * A part aims at so many ms, of which the page's thread works less than half, in one
 * task that hands the documents to the browser. Where the processor is shared, that
 * lasts three or four times as long, and from 50 ms on a page is felt to stop.
 */
const AIM_MS = 40;
/** Nothing is known yet, and all that is called is called for the first time. */
const FIRST_PART = 50;
/** A page's thread works about 0.1 ms for a note; beyond these, little time is gained. */
const MOST = 100;
/** Each part is a transaction, which costs more than a few documents. */
const LEAST = 25;

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
    await breathe();
    const docs = whole ? req.docs : req.docs.slice(from, from + part(link));
    const started = performance.now();
    results.push(...(await put(link, { ...req, docs }, rest)));
    // The rest of a batch says more of transactions than of documents.
    if (docs.length >= LEAST) link.msPerDoc = (performance.now() - started) / docs.length;
    from += docs.length;
    stats.docsWritten += docs.length;
    link.progress('writing');
  }
  return results;
}

/**
 * An attachment that was left to the target may be gone by now, with the leaf that
 * had it: the batch is then written with all bytes.
 * @param {import('./link.js').Link} link
 * @param {any} req
 * @param {any[]} rest
 */
async function put(link, req, rest) {
  const { target } = link;
  try {
    return await target.bulkDocs(req, ...rest);
  } catch (/** @type {any} */ error) {
    if (error?.status !== 412 || !(await fetchLeftOut(link, req.docs))) throw error;
    return target.bulkDocs(req, ...rest);
  }
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
  const { target, targetRemote } = link;
  const remote = /** @type {import('./remote.js').Remote} */ (targetRemote);
  /** @type {any[]} */
  let parts;
  try {
    parts = await Promise.all(inTurn(req.docs).map(async (docs) => ({ docs, out: await outgoing(docs, remote) })));
  } catch {
    // An attachment that is nothing known here: stock tells what is wrong with it.
    return target.bulkDocs(req, ...rest);
  }
  try {
    const rows = [];
    for (const part of parts) rows.push(...(await send(link, part)));
    return rows;
  } catch (/** @type {any} */ failure) {
    // Stock looks at the answer no more, but would count a failure.
    if (link.cancelled) return [];
    // What went without becoming text is not made into text for an error's sake.
    const uploads = parts.some(({ out }) => out.some((/** @type {any} */ each) => typeof each !== 'string'));
    if (link.breaks(failure) || (link.stocksOwn(failure) && !uploads)) return target.bulkDocs(req, ...rest);
    // There is no other way to write a document.
    const own = failure.kind === 'absent' ? { ...failure, kind: 'status', code: 'fast_sync_status' } : failure;
    throw toError(own, 'Writing documents', remote.base);
  }
}

/**
 * Design documents after the others of their batch: what they say of documents
 * holds for those of later batches, as where a batch is one request.
 * @param {any[]} docs
 */
function inTurn(docs) {
  const isDesign = (/** @type {any} */ doc) => doc._id.startsWith('_design/');
  return [docs.filter((doc) => !isDesign(doc)), docs.filter(isDesign)].filter((part) => part.length > 0);
}

/**
 * @param {import('./link.js').Link} link
 * @param {{ docs: any[], out: (string | import('./outgoing.js').Upload)[] }} part
 */
async function send(link, { docs, out }) {
  const { rows, tooLarge, refusesMultipart: refused } = await unlessTrapped(link.engine().write(out));
  if (refused) refusesMultipart(link.targetRemote?.base ?? '');
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
  return { ...row, name: row.error, status, message: row.reason, stack: new Error().stack };
}
