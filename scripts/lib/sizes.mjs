// What the build costs a page, held against the budgets. It measures files and
// does not know how they came about.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { root, Told } from './run.mjs';

// Most bytes, gzipped. The eager part delays every start of an application that
// has the plugin; the engine comes when the first replication starts.
const budgets = { engine: 60_000, eager: 4_000 };

/**
 * Prints the sizes.
 * @param {string[]} eager the files of the eager part
 * @param {{ check: boolean }} options `check`: too large is a failure
 */
export function reportSizes(eager, { check }) {
  const sizes = { engine: gzipped([join(root, 'pkg', 'engine.wasm')]), eager: gzipped(eager) };
  console.log(`engine (wasm)  ${kB(sizes.engine)} gzip, at most ${kB(budgets.engine)}`);
  console.log(`eager JS       ${kB(sizes.eager)} gzip, at most ${kB(budgets.eager)}`);
  const fits = sizes.engine <= budgets.engine && sizes.eager <= budgets.eager;
  if (check && !fits) throw new Told('That is over budget.');
}

/** @param {string[]} files */
function gzipped(files) {
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
}

/** @param {number} bytes */
function kB(bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
