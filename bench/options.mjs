// What a command line asks to be measured.
//
// Decides the names of everything that can be chosen, the presets, and what a mistake is answered with. Runs nothing.
import { parseArgs } from 'node:util';
import { SETS } from './sets.mjs';

export const DIRECTIONS = {
  pull: 'a remote database into an empty local one',
  resync: 'the same once more, with nothing to do',
  push: 'a local database into an empty remote one',
  remote: 'a remote database into an empty remote one',
  sync: 'both ways between a remote database and an empty local one',
};
export const PLATFORMS = ['node-memory', 'node-leveldb', 'chromium-indexeddb', 'chromium-idb'];
/** The floors write the same documents with nothing but bulkDocs: all at once, and by 1,000. */
export const RUNNERS = ['stock', 'tuned', 'fast', 'floor', 'floor1000'];

/**
 * @typedef {{dir: keyof typeof DIRECTIONS, set: string, docs: number, rtt: number, on: string}} Row
 * @typedef {{rows: Row[], rounds: number, warm: number, runners: string[], json?: string, plugin?: string, fastOptions?: object}} Plan
 */

/** Few rows, in two minutes. @type {Partial<Row>[]} */
const QUICK = [{ rtt: 0 }, { rtt: 45 }];

/** What is promised, and what it is compared with. @type {Partial<Row>[]} */
const PROMISED = [
  ...[0, 45, 166].map((rtt) => ({ rtt })),
  { set: 'small', docs: 10_000 },
  ...[0, 45, 166].map((rtt) => ({ set: 'notes', rtt })),
  { on: 'node-leveldb' },
  { set: 'notes', on: 'node-leveldb' },
  ...['chromium-indexeddb', 'chromium-idb'].flatMap((on) => [{ on }, { set: 'notes', on }]),
  { dir: 'resync' },
  { set: 'attachments' }, { set: 'attachments-1mb' }, { set: 'attachments-2kb' },
  { set: 'attachments', on: 'chromium-indexeddb' },
  { dir: 'push' }, { dir: 'push', set: 'notes' },
  { dir: 'remote' }, { dir: 'remote', set: 'notes' },
  { dir: 'sync', set: 'notes' },
];

export const USAGE = `npm run bench -- [what] [how]
  what   --quick           1,000 small documents, near and far
         --issue           everything that is promised (the default; about half an hour)
         or any of these, each a list with commas:
         --dir   ${Object.keys(DIRECTIONS).join(', ')}
         --set   ${Object.keys(SETS).join(', ')}
         --docs  how many, when not the set's own number
         --rtt   milliseconds of a round trip
         --on    ${PLATFORMS.join(', ')}
  how    --rounds N        3; medians are printed
         --warm N          0; so many runs before each in its process or page, untimed
         --only LIST       of ${RUNNERS.join(', ')}
         --plugin FILE     another build of the plugin
         --fast-options J  JSON for the option fastSync
         --json FILE       saves every run
  COUCH_URL=http://user:password@host:5984 names a CouchDB to measure against; its databases fast-sync-bench-* are
  created and deleted. Without it, an embedded server is used, which computes on one thread.`;

export class UsageError extends Error {}

/** @param {string[]} argv @returns {Plan | undefined} nothing when help is asked for */
export function plan(argv) {
  let values;
  try {
    const text = { type: /** @type {'string'} */ ('string') }, flag = { type: /** @type {'boolean'} */ ('boolean') };
    ({ values } = parseArgs({ args: argv, options: {
      dir: text, set: text, docs: text, rtt: text, on: text, rounds: text, warm: text, only: text, plugin: text, 'fast-options': text, json: text,
      quick: flag, issue: flag, help: { ...flag, short: 'h' },
    } }));
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message);
  }
  if (values.help) return undefined;
  const rows = values.dir || values.set || values.docs || values.rtt || values.on ? product(values)
    : (values.quick ? QUICK : PROMISED).map(complete);
  return {
    rows,
    rounds: number('rounds', values.rounds ?? (values.quick ? '1' : '3')),
    warm: number('warm', values.warm ?? '0'),
    runners: values.only ? names('only', values.only, RUNNERS) : RUNNERS,
    json: values.json, plugin: values.plugin,
    fastOptions: values['fast-options'] ? json(values['fast-options']) : undefined,
  };
}

/** @param {Partial<Row>} some @returns {Row} */
function complete(some) {
  const set = some.set ?? 'small';
  return { dir: 'pull', docs: SETS[set].docs, rtt: 45, on: 'node-memory', ...some, set };
}

/** @param {{dir?: string, set?: string, docs?: string, rtt?: string, on?: string}} values */
function product(values) {
  const dirs = /** @type {Row['dir'][]} */ (names('dir', values.dir ?? 'pull', Object.keys(DIRECTIONS)));
  const sets = names('set', values.set ?? 'small', Object.keys(SETS));
  const rtts = (values.rtt ?? '45').split(',').map((rtt) => number('rtt', rtt));
  const platforms = names('on', values.on ?? 'node-memory', PLATFORMS);
  const counts = values.docs?.split(',').map((docs) => ({ docs: number('docs', docs) })) ?? [{}];
  return dirs.flatMap((dir) => sets.flatMap((set) => counts.flatMap((count) => rtts.flatMap((rtt) =>
    platforms.map((on) => complete({ dir, set, rtt, on, ...count }))))));
}

/** @param {string} option @param {string} list @param {string[]} allowed */
function names(option, list, allowed) {
  const chosen = list.split(',').map((name) => name.trim());
  const wrong = chosen.find((name) => !allowed.includes(name));
  if (wrong !== undefined) throw new UsageError(`--${option}: ${JSON.stringify(wrong)} is none of ${allowed.join(', ')}`);
  return chosen;
}

/** @param {string} option @param {string} text */
function number(option, text) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || text.trim() === '') throw new UsageError(`--${option}: ${JSON.stringify(text)} is no whole number`);
  return value;
}

/** @param {string} text */
function json(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--fast-options: ${/** @type {Error} */ (error).message}`);
  }
}
