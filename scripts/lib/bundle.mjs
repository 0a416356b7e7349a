// From js/ and pkg/ to dist/: what is published. One eager part, and one that
// is loaded when the first replication starts. What the modules do is theirs.
import { readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { filesOf, put } from './files.mjs';
import { root } from './run.mjs';
import { types } from './types.mjs';

const dist = join(root, 'dist');
const entry = join(root, 'js', 'index.js');

/** @satisfies {import('esbuild').BuildOptions} */
const common = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  minify: true,
  write: /** @type {const} */ (false),
  // The engine's WebAssembly features came with these years' browsers.
  target: 'es2022',
  legalComments: /** @type {const} */ ('none'),
  logLevel: /** @type {const} */ ('warning'),
  // Looked for by the glue where there is no globalThis; some bundlers put a shim in for it.
  define: { global: 'undefined' },
  // Neither a browser nor Node: an import of a built-in module does not resolve.
  platform: /** @type {const} */ ('neutral'),
};

// `require('pouchdb-fast-sync')` is the plugin itself: PouchDB.plugin() takes an
// object with a `default` for a plugin that adds that one name, in silence.
const commonJsIsThePlugin = {
  js: 'module.exports = (({ default: plugin, ...named }) => Object.assign(plugin, named, { default: plugin }))(module.exports);',
};
const commonJs = {
  format: /** @type {const} */ ('cjs'),
  outExtension: { '.js': '.cjs' },
  // import() of a CommonJS file would need a loader in some hosts; require() is lazy too.
  supported: { 'dynamic-import': false },
};

/** @typedef {{ path: string, contents: string | Uint8Array }} Output */

/**
 * Writes dist/, and takes out of it what is not built any more.
 * @returns {Promise<{ eager: string[] }>} what is loaded with the first import
 */
export async function bundle() {
  const { modules, eager } = await asModules();
  for (const { path, contents } of modules) put(path, contents);
  const others = [...(await asCommonJs(modules)), ...(await asSlim()), ...(await asScript()), ...types(), engineFile()];
  for (const { path, contents } of others) put(path, contents);
  const built = new Set([...modules, ...others].map(({ path }) => path));
  for (const path of filesOf([dist])) if (!built.has(path)) rmSync(path, { force: true });
  return { eager };
}

/**
 * index.js, engine.js that it imports later, and what the two share.
 */
async function asModules() {
  const entryPoints = [entry, join(root, 'js', 'engine.js')];
  const built = await build({ ...common, entryPoints, format: 'esm', splitting: true, metafile: true });
  const { outputs } = built.metafile;
  const eager = new Set(['dist/index.js']);
  for (const path of eager) {
    for (const { kind, path: needed } of outputs[path].imports) if (kind === 'import-statement') eager.add(needed);
  }
  return { modules: built.outputFiles, eager: [...eager].map((path) => join(root, path)) };
}

/**
 * The same files once more: esbuild splits only ES modules.
 * @param {Output[]} modules
 * @returns {Promise<Output[]>}
 */
async function asCommonJs(modules) {
  const [index, ...rest] = [...modules].sort((a) => (basename(a.path) === 'index.js' ? -1 : 1)).map(({ path }) => path);
  const options = { ...common, ...commonJs, plugins: [siblingsStayOutside] };
  const built = await Promise.all([
    build({ ...options, entryPoints: [index], footer: commonJsIsThePlugin }),
    build({ ...options, entryPoints: rest }),
  ]);
  return built.flatMap(({ outputFiles }) => outputFiles);
}

/** @type {import('esbuild').Plugin} */
const siblingsStayOutside = {
  name: 'siblings stay outside',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\// }, ({ path }) => ({ path: path.replace(/\.js$/, '.cjs'), external: true }));
  },
};

/**
 * One file, without the bytes of the engine: `fastSync.with({ wasm })` brings them.
 * @returns {Promise<Output[]>}
 */
async function asSlim() {
  const options = { ...common, entryPoints: { slim: entry }, plugins: [withoutBytes] };
  const built = await Promise.all([
    build({ ...options, format: 'esm' }),
    build({ ...options, ...commonJs, footer: commonJsIsThePlugin }),
  ]);
  return built.flatMap(({ outputFiles }) => outputFiles);
}

/** @type {import('esbuild').Plugin} */
const withoutBytes = {
  name: 'without bytes',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]engine-bytes\.js$/ }, () => ({ contents: 'export function bytes() {}' }));
  },
};

/**
 * One file for <script>.
 * @returns {Promise<Output[]>}
 */
async function asScript() {
  const contents = `
    import * as all from './index.js';
    const { default: fastSync, ...named } = all;
    globalThis.fastSync = Object.assign(fastSync, named);
    globalThis.PouchDB?.plugin(fastSync);`;
  const stdin = { contents, resolveDir: join(root, 'js') };
  const { outputFiles } = await build({ ...common, stdin, format: 'iife', platform: 'browser' });
  return outputFiles.map((file) => ({ path: join(dist, 'pouchdb-fast-sync.min.js'), contents: file.contents }));
}

/** @returns {Output} */
function engineFile() {
  return { path: join(dist, 'engine.wasm'), contents: readFileSync(join(root, 'pkg', 'engine.wasm')) };
}
