// Runs stock, then the plugin, then compares what they left: the order of things, and the workers that do them.
//
// Decides that the two never run at once, since they would share the network, and that nothing stays behind: a worker's
// database is deleted at its start, at its end, and when it is stopped half-way. Knows nothing of the page.
import { differences } from '../demo/compare.mjs';

/** One tab at a time: the databases of two would have the same names. */
const LOCK = 'pouchdb-fast-sync-race';
/** PouchDB's prefix of IndexedDB names. */
const PREFIX = '_pouch_';

/** @typedef {'stock' | 'fast'} Who */
/** @typedef {import('./contestant.js').Outcome} Outcome */
/** @typedef {{sync: Record<Who, import('./contestant.js').Sync>}} Job */
/**
 * @typedef {object} Listener
 * @property {(who: Who) => void} started
 * @property {(who: Who, progress: {docs: number, ms: number, received: number}) => void} progress
 * @property {(who: Who, requests: import('./meter.js').Request[]) => void} requests
 * @property {(who: Who, outcome: Outcome) => void} synced
 * @property {(who: Who, failure: import('./contestant.js').Failure) => void} failed
 * @property {(who: Who, read: number) => void} comparing documents read so far
 */
/** @typedef {{documents: number, leaves: number, differences: import('../demo/compare.mjs').Difference[]}} Comparison */

export class BusyError extends Error {}
export class Cancelled extends Error {}

/**
 * @param {Job} job @param {Listener} listener @param {AbortSignal} signal
 * @returns {Promise<Comparison | undefined>} nothing when one of them failed, which the listener was told
 * @throws {Cancelled | BusyError}
 */
export async function race(job, listener, signal) {
  // Locks exist where the page came over https or from this machine.
  if (!navigator.locks) return run(job, listener, signal);
  return navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => {
    if (!lock) throw new BusyError();
    return run(job, listener, signal);
  });
}

/** @param {Job} job @param {Listener} listener @param {AbortSignal} signal @returns {Promise<Comparison | undefined>} */
async function run(job, listener, signal) {
  const contestants = [new Contestant('stock', listener), new Contestant('fast', listener)];
  const cancel = () => contestants.forEach((contestant) => contestant.stop(new Cancelled()));
  signal.addEventListener('abort', cancel);
  try {
    if (signal.aborted) throw new Cancelled();
    let complete = true;
    for (const contestant of contestants) {
      const { who } = contestant;
      try {
        await contestant.do('open', { name: contestant.name, plugin: who === 'fast' });
        listener.started(who);
        listener.synced(who, await contestant.do('sync', job.sync[who]));
      } catch (error) {
        if (error instanceof Cancelled) throw error;
        listener.failed(who, /** @type {any} */ (error));
        complete = false;
      }
    }
    if (!complete) return undefined;
    const [stock, fast] = [await contestants[0].do('describe'), await contestants[1].do('describe')];
    const documents = Object.values(fast);
    return {
      documents: documents.length,
      leaves: documents.reduce((sum, { leaves }) => sum + Object.keys(leaves).length, 0),
      differences: differences(stock, fast),
    };
  } finally {
    signal.removeEventListener('abort', cancel);
    await Promise.all(contestants.map((contestant) => contestant.end()));
  }
}

/** A worker, as something that can be asked for one thing after the other. */
class Contestant {
  #worker = new Worker('contestant.js');
  /** @type {{resolve: (result: any) => void, reject: (error: unknown) => void} | undefined} */
  #asked;
  /** @type {unknown} */
  #stopped;

  /** @param {Who} who @param {Listener} listener */
  constructor(who, listener) {
    this.who = who;
    this.name = `pouchdb-fast-sync-page-${who}`;
    this.#worker.onmessage = ({ data }) => {
      if (data.progress) listener.progress(who, data.progress);
      else if (data.requests) listener.requests(who, data.requests);
      else if (data.described) listener.comparing(who, data.described);
      else if (data.failed) this.#asked?.reject(data.failed);
      else this.#asked?.resolve(data.result);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.stop({ message: event.message || 'its script could not be loaded' });
    };
  }

  /** @param {string} duty @param {any} [arg] @returns {Promise<any>} */
  do(duty, arg) {
    if (this.#stopped) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject };
      this.#worker.postMessage({ duty, arg });
    });
  }

  /** @param {unknown} reason */
  stop(reason) {
    this.#stopped ??= reason;
    this.#worker.terminate();
    this.#asked?.reject(reason);
  }

  /** Without a trace. */
  async end() {
    await this.do('close').catch(() => {});
    this.#worker.terminate();
    await new Promise((resolve) => {
      const request = indexedDB.deleteDatabase(PREFIX + this.name);
      request.onsuccess = request.onerror = () => resolve(undefined);
    });
  }
}
