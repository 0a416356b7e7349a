// One run in a page of its own; chromium.mjs calls what stands on `bench`, one after the other.
//
// Decides which tasks of the main thread count as long: those that the Long Tasks API reports (above 50 ms) between start
// and end of the run.
import { Work } from './work.mjs';

/** Long tasks are reported a moment after they end, in ms. */
const REPORTED_WITHIN = 200;

/** @type {{duration: number, startTime: number}[]} */
const longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries())).observe({ type: 'longtask' });

/** @type {Work} */
let work;

/** @type {any} */ (globalThis).bench = {
  /** @param {import('./work.mjs').Job} job @param {string} [plugin] a URL */
  async prepare(job, plugin) {
    if (plugin) PouchDB.plugin((await import(plugin)).default);
    work = new Work(PouchDB, job, async () => (await fetch('/documents')).json());
    await work.prepare();
  },

  async run() {
    const start = performance.now();
    const outcome = await work.run();
    const end = performance.now();
    await new Promise((resolve) => setTimeout(resolve, REPORTED_WITHIN));
    const during = longTasks.filter(({ startTime, duration }) => startTime < end && startTime + duration > start).map(({ duration }) => duration);
    return { ...outcome, ms: end - start, longTasks: during.length, longest: Math.max(0, ...during) };
  },

  result: () => work.result(),
};
