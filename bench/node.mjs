// Runs in Node: every one in a fresh process with a fresh database.
//
// Decides where the local database lives (memory, or a folder that is removed afterwards) and when a run has taken too long.
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const RUN = fileURLToPath(new URL('./node-run.mjs', import.meta.url));

/**
 * @typedef {{ms: number, docs: number, failures: number, stats?: object, cpu?: number, peak?: number, longTasks?: number, longest?: number, leaves?: Record<string, string>}} Run
 * @typedef {object} Runner
 * @property {(job: import('./work.mjs').Job, hooks: {start: () => Promise<void>, end: () => Promise<void>}) => Promise<Run>} run
 * @property {() => Promise<void>} stop
 */

/**
 * @param {{on: string, documents: string, plugin?: string, patience: number}} options `documents` is a file
 * @returns {Runner}
 */
export function nodeRunner({ on, documents, plugin, patience }) {
  return {
    async run(job, { start, end }) {
      const folder = await mkdtemp(path.join(os.tmpdir(), 'fast-sync-bench-'));
      const local = on === 'node-memory' ? { name: 'local', adapter: 'memory' } : { name: path.join(folder, 'local'), adapter: 'leveldb' };
      const child = fork(RUN, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      const timer = setTimeout(() => child.kill('SIGKILL'), patience);
      try {
        return await new Promise((resolve, reject) => {
          /** @type {Run} */
          let done;
          child.on('message', (/** @type {any} */ message) => {
            if (message.ready) start().then(() => child.send({ go: true }), reject);
            else if (message.done) { done = message.done; end().catch(reject); }
            else if (message.failed) reject(new Error(message.failed));
            else resolve({ ...done, leaves: message.leaves });
          });
          child.once('exit', (code, signal) => reject(new Error(signal === 'SIGKILL' ? `took longer than ${patience / 1000} s` : `ended with ${signal ?? code}`)));
          child.send({ job: { ...job, local }, documents, plugin });
        });
      } finally {
        clearTimeout(timer);
        child.kill();
        await rm(folder, { recursive: true, force: true });
      }
    },
    async stop() {},
  };
}
