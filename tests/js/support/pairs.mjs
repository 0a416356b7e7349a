// Two sides that a replication is between: what each holds is drawn, or given, and written as a
// replicator would write it, so that stock and the plugin can be given the same twice.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { startCouch } from './couch/index.mjs';
import { Histories, steps } from './histories.mjs';
import { observe } from './observe.mjs';
import { local } from './pouches.mjs';

/** Runs of a property, and how it is repeated: FC_RUNS widens, FC_SEED repeats. @param {number} runs */
export const settings = (runs) => ({
  includeErrorInReport: true, timeout: 30_000, interruptAfterTimeLimit: 120_000,
  numRuns: Math.ceil(process.env.FC_RUNS ? (Number(process.env.FC_RUNS) * runs) / 40 : runs),
  ...(process.env.FC_SEED ? { seed: Number(process.env.FC_SEED) } : {}),
});

/** A batch of one, of a few, and what the plugin and stock choose themselves. */
export const batchSizes = fc.constantFrom({}, { batch_size: 1 }, { batch_size: 2 }, { batch_size: 7 }, { batch_size: 1000 });

/** Which of so many revisions the other side holds already. */
const held = fc.oneof(
  { weight: 2, arbitrary: fc.constant(() => false) },
  fc.nat(30).map((count) => (/** @type {number} */ at) => at < count),
  fc.integer({ min: 2, max: 4 }).map((n) => (/** @type {number} */ at) => at % n === 0),
);

/** What the source holds, and what the target holds of it and of its own. */
export const standing = fc.record({
  before: steps({ minLength: 1, maxLength: 30 }), own: steps({ minLength: 0, maxLength: 4 }), options: batchSizes, held,
});

/** The documents of both sides, in the order of their writing. @param {any} given */
export function sides({ before, own, held: isHeld }) {
  const histories = new Histories();
  const source = histories.write(before);
  const target = [...source.filter((_doc, at) => isHeld(at)), ...new Histories(histories).write(own)];
  return { source, target };
}

/**
 * Servers, each with one database `db`.
 * @param {any[][]} contents of each
 * @param {(couches: import('./couch/index.mjs').Couch[]) => Promise<any>} use
 */
export async function withServers(contents, use) {
  const couches = await Promise.all(contents.map(() => startCouch()));
  try {
    contents.forEach((docs, at) => docs.forEach((doc) => couches[at].db('db').bulkDocs([doc], { new_edits: false })));
    return await use(couches);
  } finally {
    await Promise.all(couches.map((couch) => couch.stop()));
  }
}

/**
 * A database of this process that holds documents, in several batches.
 * @param {any} PouchDB
 * @param {any[]} docs
 * @param {(db: any) => Promise<any>} use
 */
export async function withLocal(PouchDB, docs, use) {
  /** @type {(() => unknown)[]} */
  const after = [];
  try {
    const db = local({ after: (fn) => after.push(fn) }, PouchDB);
    for (let at = 0; at < docs.length; at += 10) {
      await db.bulkDocs(docs.slice(at, at + 10).map((doc) => structuredClone(doc)), { new_edits: false });
    }
    return await use(db);
  } finally {
    for (const fn of after) await fn();
  }
}

/**
 * A replication that has to succeed.
 * @param {any} replication
 * @returns {Promise<{ result: any, docs: string[] }>}
 */
export async function done(replication) {
  const { result, error, docs } = await observe(replication).ended;
  assert.equal(error, undefined);
  return { result, docs: docs.sort() };
}
