// `npm run bench`: stock, tuned stock and the plugin, measured side by side.
//
// Decides nothing but the order of things: options.mjs says what is measured, place.mjs against what, measure.mjs how, and
// report.mjs what is made of it.
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PLUGIN } from '../demo/pouch.mjs';
import { Bench } from './measure.mjs';
import { plan as planFor, USAGE, UsageError } from './options.mjs';
import { Place, PlaceError } from './place.mjs';
import { inALine, markdown, summary } from './report.mjs';

/** @param {string[]} argv @returns {Promise<number>} the exit code */
export async function main(argv) {
  /** @type {Place | undefined} */
  let place;
  /** @type {Bench | undefined} */
  let bench;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'fast-sync-bench-'));
  const stop = () => { if (bench) bench.stopped = true; };
  process.once('SIGINT', stop); // a second one ends at once; databases then stay on the server
  try {
    const plan = planFor(argv);
    if (!plan) {
      console.log(USAGE);
      return 0;
    }
    if (plan.runners.includes('fast') && !existsSync(plan.plugin ?? PLUGIN)) {
      throw new UsageError(plan.plugin ? `--plugin: there is no ${plan.plugin}` : 'the plugin is not built (npm run build); --only stock,tuned measures without it');
    }
    if (plan.runners.includes('fast')) plan.plugin ??= await copyOfBuild(folder);
    place = await Place.open();
    bench = new Bench(place, plan, folder, (run) => console.error(inALine(run)));
    console.error(`${place.name}, Node ${process.versions.node}, ${plan.rows.length} rows of ${plan.rounds} rounds`);
    const results = [], failed = [];
    for (const row of plan.rows) {
      if (bench.stopped) break;
      console.error(`\n${row.dir} ${row.docs} ${row.set}, ${row.rtt} ms, ${row.on}`);
      try {
        results.push(await bench.measure(row));
      } catch (error) {
        if (!(error instanceof PlaceError)) throw error;
        failed.push(`${row.dir} ${row.set}, ${row.rtt} ms, ${row.on}: ${error.message}`);
        console.error(`  ${error.message}`);
      }
    }
    console.log(`\nAgainst ${place.name}, medians of ${plan.rounds}${plan.warm ? `, each after ${plan.warm} more in its process` : ''}:\n\n${markdown(results)}`);
    for (const line of failed) console.log(`- not measured: ${line}`);
    if (plan.json) {
      const about = { server: place.name, node: process.versions.node, when: new Date().toISOString(), rounds: plan.rounds, warm: plan.warm };
      await writeFile(plan.json, JSON.stringify({ about, rows: results.map((result) => ({ ...summary(result), runs: result.runs })) }, null, 1));
    }
    return !failed.length && results.every(({ runs }) => runs.every(({ equal, error }) => equal && !error)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof PlaceError)) throw error;
    console.error(error.message);
    return 2;
  } finally {
    process.off('SIGINT', stop);
    await place?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The plugin as it is now: a build in the meantime would change what is measured from one run to the next.
 * @param {string} folder @returns {Promise<string>}
 */
async function copyOfBuild(folder) {
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  await cp(path.dirname(PLUGIN), path.join(folder, 'dist'), { recursive: true });
  return path.join(folder, 'dist', path.basename(PLUGIN));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
