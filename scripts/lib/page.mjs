// From www/ to www/dist: the page as any static host can serve it, flat, with no address in it that is absolute. PouchDB
// and the plugin lie beside it as they are published, so that what is measured is what users have.
import { readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { filesOf, put } from './files.mjs';
import { root } from './run.mjs';

const from = join(root, 'www');
export const pageFolder = join(from, 'dist');

const asTheyAre = [
  join(root, 'node_modules', 'pouchdb', 'dist', 'pouchdb.min.js'),
  join(root, 'node_modules', 'pouchdb', 'dist', 'pouchdb.indexeddb.min.js'),
  join(root, 'dist', 'pouchdb-fast-sync.min.js'),
  join(from, 'index.html'),
];

/** Needs dist/, which `build` makes. */
export async function buildPage() {
  /** @satisfies {import('esbuild').BuildOptions} */
  const common = { absWorkingDir: root, bundle: true, minify: true, write: /** @type {const} */ (false), outdir: pageFolder, target: 'es2022', logLevel: /** @type {const} */ ('warning') };
  const built = await Promise.all([
    build({ ...common, entryPoints: ['www/page.js', 'www/page.css'], format: 'esm' }),
    // A classic worker: it loads PouchDB by importScripts.
    build({ ...common, entryPoints: ['www/contestant.js'], format: 'iife' }),
  ]);
  const files = built.flatMap(({ outputFiles }) => outputFiles.map(({ path, contents }) => ({ path, contents })));
  for (const path of asTheyAre) files.push({ path: join(pageFolder, basename(path)), contents: /** @type {any} */ (readFileSync(path)) });
  for (const { path, contents } of files) put(path, contents);
  const kept = new Set(files.map(({ path }) => path));
  for (const path of filesOf([pageFolder])) if (!kept.has(path)) rmSync(path, { force: true });
}
