// The work that is timed; runs in Node (node-run.mjs) and in a page (page.mjs) alike.
//
// Decides what belongs to a run's time: everything from the first use of a URL to the end of the replication. Opening the
// local database and filling it for a push come before, looking at the result comes after.
import { leaves } from '../demo/compare.mjs';

/**
 * @typedef {object} Job
 * @property {string} runner  stock, tuned, fast, floor or floor1000
 * @property {import('./options.mjs').Row['dir']} dir
 * @property {string} source  URL; '' for a push
 * @property {string} target  URL; '' for a pull
 * @property {object} options of the replication
 * @property {any} local      options of the local database, with its name
 * @property {string[]} [warm] one run each before, into this target, that is not timed
 */

/** So many documents are written at once when a local database is filled before a push. */
const FILL_BATCH = 500;
/** The size of batch that an informed user sets. */
const FLOOR_BATCH = 1000;

export class Work {
  /** @param {any} PouchDB @param {Job} job @param {() => Promise<any[]>} documents the set's, when they are needed */
  constructor(PouchDB, job, documents) {
    this.PouchDB = PouchDB;
    this.job = job;
    this.documents = documents;
    this.isFloor = job.runner.startsWith('floor');
  }

  /** Everything up to the start. */
  async prepare() {
    const { dir, local, warm = [] } = this.job;
    for (const [at, target] of warm.entries()) await this.#warmUp({ ...this.job, target, warm: [], local: { ...local, name: `${local.name}-${at}` } });
    if (dir !== 'remote') {
      this.local = new this.PouchDB(local);
      await this.local.info();
    }
    if (this.isFloor) this.docs = await this.documents();
    if (dir === 'push') {
      const docs = await this.documents();
      for (let at = 0; at < docs.length; at += FILL_BATCH) await this.local.bulkDocs(docs.slice(at, at + FILL_BATCH), { new_edits: false });
    }
    if (dir === 'resync') await this.replicate();
  }

  /** @param {Job} job */
  async #warmUp(job) {
    const work = new Work(this.PouchDB, job, this.documents);
    await work.prepare();
    await work.run();
    await work.local?.destroy();
  }

  /** What is timed. @returns {Promise<{docs: number, failures: number, stats?: object}>} */
  async run() {
    if (!this.isFloor) return this.replicate();
    const docs = /** @type {any[]} */ (this.docs);
    const size = this.job.runner === 'floor' ? docs.length : FLOOR_BATCH;
    for (let at = 0; at < docs.length; at += size) await this.local.bulkDocs(docs.slice(at, at + size), { new_edits: false });
    return { docs: docs.length, failures: 0 };
  }

  /** The leaves of the local database, where there is one to look at. */
  async result() {
    return this.local ? leaves(this.local) : undefined;
  }

  async replicate() {
    const { dir, source, target, options } = this.job;
    const replication = dir === 'remote' ? this.PouchDB.replicate(source, target, options)
      : dir === 'push' ? this.local.replicate.to(target, options)
        : dir === 'sync' ? this.local.sync(source, options)
          : this.local.replicate.from(source, options);
    const result = await replication;
    const { docs_written: docs, doc_write_failures: failures } = result.pull ?? result;
    return { docs, failures, stats: replication.fastSync?.stats };
  }
}
