// Writes a batch to the target. On a database of this process it goes in parts,
// sized so that none keeps a browser's main thread for long; stock's replicator
// sees one write.
import { attach } from './attachments.js';
import { inherited } from './remote.js';

/** A part aims at so many ms: below the 50 that a browser calls a long task. */
const AIM_MS = 30;
const FIRST_PART = 100;
const MOST = 1000;
const LEAST = 25;

/**
 * @param {import('./link.js').Link} link
 * @param {any} req of `bulkDocs`
 * @param {any[]} rest
 */
export async function write(link, req, rest) {
  const { target, stats } = link;
  for (const doc of req.docs) attach(doc);
  const whole = !inMainThread || link.targetRemote || !inherited(target, 'bulkDocs');
  const began = performance.now();
  const results = [];
  for (let from = 0; from < req.docs.length;) {
    const count = whole ? req.docs.length : part(link);
    const docs = req.docs.slice(from, from + count);
    const started = performance.now();
    results.push(...(await target.bulkDocs({ ...req, docs }, ...rest)));
    link.partMs = (performance.now() - started) / docs.length;
    from += count;
    stats.docsWritten += docs.length;
  }
  stats.writeMs += performance.now() - began;
  return results;
}

const inMainThread = typeof globalThis.document === 'object';

/** @param {import('./link.js').Link} link */
function part({ partMs }) {
  return partMs ? Math.max(LEAST, Math.min(MOST, Math.round(AIM_MS / partMs))) : FIRST_PART;
}
