// Documents for stock's replicator, from the question which the target lacks to their
// bodies. Where the engine does not know, or somebody replaced the method, the handle
// answers.
import { detach } from './attachments.js';
import { toError } from './errors.js';
import { asked, key, told } from './flat.js';
import { breathe } from './platform.js';
import { inherited } from './remote.js';
import { unlessTrapped } from './trap.js';

/** @typedef {import('./link.js').Link} Link */

/**
 * What the target lacks of what it was handed: known from reading ahead, or asked now.
 * @param {Link} link
 * @param {Record<string, string[]>} diff id to revisions
 */
export async function revsDiff(link, diff) {
  const pristine = link.targetRemote ? link.targetRemote.pristine('revsDiff') : inherited(link.target, 'revsDiff');
  link.idle = false;
  await breathe();
  if (!link.run || link.broken) return link.target.revsDiff(diff);
  const { engine } = link.run;
  if (!pristine) {
    const answer = await link.target.revsDiff(diff);
    dropOthers(engine, diff, answer);
    return answer;
  }
  // What is taken for true is confirmed with the checkpoint, where that is ours to write.
  const knows = link.targetRemote?.pristine('put') && link.targetRemote.pristine('get') ? link.knows : null;
  const echo = Object.keys(diff).filter((id) => knows?.claim(id, diff[id]));
  let digits;
  try {
    digits = engine.takeDiff(asked(diff));
  } catch (error) {
    link.breaks(error);
    return link.target.revsDiff(diff);
  }
  const { known, unknown } = told(diff, digits);
  for (const id of echo) delete unknown[id];
  const ids = Object.keys(unknown);
  link.idle = link.goesOn && echo.length > 0 && ids.length === 0 && Object.keys(known).length === 0;
  await breathe();
  if (ids.length === 0) return known;
  const answer = await (link.targetRemote?.twin ?? link.target).revsDiff(unknown);
  /** @type {Record<string, any>} */
  const merged = {};
  for (const id of Object.keys(diff)) {
    // A document may be called `constructor`.
    if (Object.hasOwn(known, id)) merged[id] = known[id];
    else if (Object.hasOwn(answer, id)) merged[id] = answer[id];
  }
  dropOthers(engine, unknown, answer);
  return merged;
}

/**
 * Nobody is going to ask for what the target turned out to have.
 * @param {import('../pkg/engine.js').Engine} engine
 * @param {Record<string, string[]>} diff
 * @param {any} answer
 */
function dropOthers(engine, diff, answer) {
  for (const [id, revs] of Object.entries(diff)) {
    const kept = new Set(Object.hasOwn(answer, id) ? answer[id].missing : []);
    for (const rev of revs) if (!kept.has(rev)) engine.drop(key(id), key(rev));
  }
}

/**
 * PouchDB 7 asks for documents of generation 1 in this way first. Those that it
 * does not get, it asks for with all others.
 * @param {Link} link
 * @param {any[]} args
 */
export function allDocs(link, args) {
  const serves = !link.broken && link.run && isPristine(link, 'bulkGet') && isPristine(link, 'allDocs');
  return serves && args[0]?.keys && args[0].include_docs ? { rows: [] } : link.source.allDocs(...args);
}

/** @param {Link} link @param {string} name of a method of the source */
function isPristine(link, name) {
  return link.sourceRemote ? link.sourceRemote.pristine(name) : inherited(link.source, name);
}

/**
 * The documents that the engine has, or fetches now.
 * @param {Link} link @param {any} opts @param {any[]} rest
 */
export async function bulkGet(link, opts, ...rest) {
  if (!isPristine(link, 'bulkGet') || rest.length > 0 || link.broken) {
    for (const { id, rev } of opts.docs) link.run?.engine.drop(key(id), key(rev));
    return link.source.bulkGet(opts, ...rest);
  }
  let answer;
  try {
    answer = await take(link, opts.docs);
  } catch (/** @type {any} */ failure) {
    if (link.breaks(failure)) return link.source.bulkGet(opts, ...rest);
    throw toError(failure, 'Fetching documents', link.url());
  }
  if (link.sourceRemote) detach(answer);
  for (const { docs } of answer.results) for (const { ok } of docs) link.brings?.brought(ok);
  return answer;
}

/** @param {Link} link @param {{ id: string, rev: string }[]} entries */
async function take(link, entries) {
  const { engine, flat } = link.run ?? link.startRun({}, 0, false);
  const named = (/** @type {any[]} */ list) => list.map(({ id, rev }) => `${key(id)}\0${key(rev)}`).join('\0');
  const text = named(entries);
  const unknown = Array.from(engine.unknown(text), (at) => entries[at]);
  if (unknown.length > 0) engine.want(named(unknown), Uint32Array.from(unknown, (entry) => flat.rows.keep(entry)));
  const [counts, numbers] = await unlessTrapped(engine.takeDocs(text));
  let next = 0;
  const results = entries.map(({ id }, at) => {
    const docs = [];
    for (let left = counts[at]; left > 0; left--) docs.push({ ok: flat.docs.take(numbers[next++]) });
    return { id, docs };
  });
  await breathe();
  return { results };
}
