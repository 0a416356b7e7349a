// One row of the benchmark: all its runs, interleaved.
//
// Decides the order of runs (every round begins with another runner, so that none always meets a warm or a tired server),
// what is counted, and what "equal" means: the same documents with the same leaves as the source, looked at when the clock
// has stopped.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { CONTESTANTS } from '../demo/pouch.mjs';
import { chromiumRunner } from './chromium.mjs';
import { nodeRunner } from './node.mjs';
import { SETS } from './sets.mjs';

/** A run that takes longer than this (ms) has failed. */
const PATIENCE = 10 * 60_000;

/**
 * @typedef {import('./node.mjs').Run & {runner: string, round: number, equal?: boolean, counters?: import('../demo/delay.mjs').Counters, serverBusy?: number, error?: string}} Measured
 * @typedef {{row: import('./options.mjs').Row, runs: Measured[]}} Result
 */

export class Bench {
  /** @type {Map<string, Promise<{file: string, docs: any[]}>>} */
  #documents = new Map();

  /**
   * @param {import('./place.mjs').Place} place @param {import('./options.mjs').Plan} plan
   * @param {string} folder for the files of the sets @param {(run: Measured) => void} tell
   */
  constructor(place, plan, folder, tell) {
    this.folder = folder;
    /** Set from outside: the run that goes on is the last. */
    this.stopped = false;
    this.place = place;
    this.plan = plan;
    this.tell = tell;
  }

  /** @param {import('./options.mjs').Row} row @returns {Promise<Result>} */
  async measure(row) {
    const { place, plan } = this;
    const { file, docs } = await this.documents(row);
    if (row.on.startsWith('chromium')) await place.checkCors();
    const runner = await (row.on.startsWith('node') ? nodeRunner : chromiumRunner)({ on: row.on, documents: file, plugin: plan.plugin, patience: PATIENCE });
    // The floors write to an empty local database.
    const runners = plan.runners.filter((name) => !name.startsWith('floor') || row.dir === 'pull' || row.dir === 'sync');
    const source = await place.filled(`${row.set} ${row.docs}`, async () => docs);
    const expected = await place.leaves(source);
    /** @type {Measured[]} */
    const runs = [];
    const once = async (/** @type {string} */ name, /** @type {number} */ round, /** @type {boolean} */ near) => {
      if (this.stopped) return;
      const run = await this.#run(runner, { row, name, round, near, source, expected });
      this.tell(run);
      runs.push(run);
    };
    try {
      // With no distance to bridge, the proxy would only take processor time away: what it counts is counted apart.
      const near = row.rtt === 0;
      place.delay.setRtt(row.rtt);
      for (let round = 1; round <= plan.rounds; round++) {
        for (const at of runners.keys()) await once(runners[(at + round - 1) % runners.length], round, near);
      }
      if (near) for (const name of runners) if (name in CONTESTANTS) await once(name, 0, false);
    } finally {
      await runner.stop();
    }
    return { row, runs };
  }

  /**
   * @param {import('./node.mjs').Runner} runner
   * @param {{row: import('./options.mjs').Row, name: string, round: number, near: boolean, source: string, expected: Record<string, string>}} what
   * @returns {Promise<Measured>}
   */
  async #run(runner, { row, name, round, near, source, expected }) {
    const { place, plan } = this;
    const create = () => (row.dir === 'push' || row.dir === 'remote' ? place.create() : undefined);
    const target = await create();
    const warm = await Promise.all(Array.from({ length: plan.warm }, create));
    /** @type {Measured['counters']} */
    let counters;
    let busy = 0;
    try {
      const { leaves, ...run } = await runner.run({
        runner: name, dir: row.dir, local: undefined,
        source: row.dir === 'push' ? '' : place.urlOf(source, near),
        target: target ? place.urlOf(target, near) : '',
        warm: warm.map((name) => (name ? place.urlOf(name, near) : '')),
        options: {
          ...CONTESTANTS[/** @type {import('../demo/pouch.mjs').Contestant} */ (name)]?.options,
          ...(name === 'fast' && plan.fastOptions ? { fastSync: plan.fastOptions } : {}),
        },
      }, {
        start: async () => {
          place.delay.reset();
          await place.delay.counters(); // the reset has happened
          busy = await place.server?.busy() ?? 0;
        },
        end: async () => {
          const after = await place.server?.busy() ?? 0;
          busy = after - busy;
          counters = near || name.startsWith('floor') ? undefined : await place.delay.counters();
        },
      });
      const found = target ? await place.leaves(target) : leaves;
      return { runner: name, round, ...run, equal: same(expected, found ?? {}), counters, serverBusy: place.server && busy };
    } catch (error) {
      return { runner: name, round, ms: NaN, docs: 0, failures: 0, error: /** @type {Error} */ (error).message };
    } finally {
      for (const name of [target, ...warm]) if (name) await place.drop(name);
    }
  }

  /** A set's documents, and the file that runs read them from. @param {{set: string, docs: number}} row */
  documents({ set, docs }) {
    const key = `${set}-${docs}`;
    let made = this.#documents.get(key);
    if (!made) {
      this.#documents.set(key, made = (async () => {
        const file = path.join(this.folder, `${key}.json`);
        const leaves = await SETS[set].make(docs);
        await writeFile(file, JSON.stringify(leaves));
        return { file, docs: leaves };
      })());
    }
    return made;
  }
}

/** @param {Record<string, string>} expected @param {Record<string, string>} found */
function same(expected, found) {
  const ids = Object.keys(expected);
  return ids.length === Object.keys(found).length && ids.every((id) => expected[id] === found[id]);
}
