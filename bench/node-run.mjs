// One run in a Node process of its own, forked by node.mjs.
//
// Decides how memory is read: the high-water mark of the whole process, put back just before the clock starts where the
// system can do that (Linux), so that what a preparation took does not count.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { writeFileSync } from 'node:fs';
import { loadPouchDB } from '../demo/pouch.mjs';
import { Work } from './work.mjs';

process.once('disconnect', () => process.exit(0));
const [{ job, documents, plugin }] = await once(process, 'message');
const send = (/** @type {any} */ message) => new Promise((sent) => process.send?.(message, sent));
try {
  const PouchDB = await loadPouchDB(job.runner === 'fast' ? 'fast' : 'stock', plugin);
  const work = new Work(PouchDB, job, async () => JSON.parse(await readFile(documents, 'utf8')));
  await work.prepare();
  send({ ready: true });
  await once(process, 'message');
  try { writeFileSync('/proc/self/clear_refs', '5'); } catch { /* elsewhere the mark is the process's whole life's */ }
  const cpu = process.cpuUsage(), start = performance.now();
  const outcome = await work.run();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  await send({ done: { ...outcome, ms, cpu: (user + system) / 1000, peak: process.resourceUsage().maxRSS * 1024 } });
  await send({ leaves: await work.result() });
  process.exit(0);
} catch (error) {
  const { name, status, message, reason } = /** @type {any} */ (error);
  await send({ failed: [name, status, message || reason].filter(Boolean).join(': ') });
  process.exit(1);
}
