// The tarball through every common bundler, and what comes out run in Chromium.
// Each brings PouchDB from another of its packages.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { folderWithPackage, neighbourhood, write } from './support/folders.mjs';
import { openPage, servePages, startChromium } from './support/pages.mjs';
import { assertSyncedByThePlugin, startNotes, syncOnce } from './support/sync.mjs';

/** @type {import('puppeteer-core').Browser} */
let chromium;
/** @type {(name: string) => Promise<any>} a bundler */
let load;
before(async () => {
  chromium = await startChromium();
  const require = createRequire(join(await neighbourhood(), 'package.json'));
  load = async (name) => import(String(pathToFileURL(require.resolve(name))));
});
after(() => chromium.close());

const whole = { imports: `import PouchDB from 'pouchdb';`, plugins: '' };
const browserOnly = { imports: `import PouchDB from 'pouchdb-browser';`, plugins: '' };
const core = {
  imports: `import PouchDB from 'pouchdb-core';
    import indexeddb from 'pouchdb-adapter-indexeddb';
    import http from 'pouchdb-adapter-http';
    import replication from 'pouchdb-replication';`,
  plugins: 'PouchDB.plugin(indexeddb).plugin(http).plugin(replication);',
};
// What PouchDB's own source expects of every bundler.
const define = { global: 'globalThis', 'process.env.NODE_ENV': '"production"' };
const page = (/** @type {string} */ script) => `<!doctype html><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">${script}`;

/**
 * @param {import('node:test').TestContext} t
 * @param {{ imports: string, plugins: string }} pouch
 * @param {string} html
 */
async function application(t, { imports, plugins }, html, plugin = 'fastSync', entry = 'pouchdb-fast-sync') {
  const couch = await startNotes(t);
  const main = `${imports}
    import fastSync, { getDocs } from '${entry}';
    ${plugins}
    PouchDB.plugin(${plugin});
    if (typeof getDocs !== 'function') throw new Error('no getDocs');
    window.outcome = (${syncOnce})(PouchDB, '${couch.url}/notes');`;
  return { couch, folder: await folderWithPackage(t, { 'main.js': main, 'index.html': page(html) }) };
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Awaited<ReturnType<typeof startNotes>>} couch
 * @param {string} url
 */
async function assertWorks(t, couch, url) {
  const { outcome } = await openPage(t, chromium, url);
  assertSyncedByThePlugin(outcome, couch);
}

test('Vite, built', async (t) => {
  const { couch, folder } = await application(t, whole, '<script type="module" src="/main.js"></script>');
  const vite = await load('vite');
  await vite.build({ root: folder, configFile: false, logLevel: 'silent', define: { global: 'globalThis' } });
  await assertWorks(t, couch, `${await servePages(t, join(folder, 'dist'))}/index.html`);
});

test("Vite's development server", async (t) => {
  const { couch, folder } = await application(t, browserOnly, '<script type="module" src="/main.js"></script>');
  const vite = await load('vite');
  const server = await vite.createServer({
    root: folder, configFile: false, logLevel: 'silent', define: { global: 'globalThis' },
    server: { host: '127.0.0.1', port: 0, fs: { strict: false } },
  });
  t.after(() => server.close());
  await server.listen();
  await assertWorks(t, couch, server.resolvedUrls.local[0]);
});

test('Vite, in a module worker', async (t) => {
  const { couch, folder } = await application(t, browserOnly, '<script type="module" src="/page.js"></script>');
  await write(folder, {
    'worker.js': `import './globals.js'; import './main.js'; self.outcome.then(postMessage, (error) => { throw error; });`,
    // The shared application speaks to a page.
    'globals.js': 'self.window = self;',
    'page.js': `const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
      window.outcome = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });`,
  });
  const vite = await load('vite');
  await vite.build({
    root: folder, configFile: false, logLevel: 'silent', define: { global: 'globalThis' }, worker: { format: 'es' },
  });
  await assertWorks(t, couch, `${await servePages(t, join(folder, 'dist'))}/index.html`);
});

test('webpack 5', async (t) => {
  const { couch, folder } = await application(t, browserOnly, '<script src="dist/main.js"></script>');
  const { default: webpack } = await load('webpack');
  const stats = await new Promise((resolve, reject) => {
    const output = { path: join(folder, 'dist') };
    const config = { mode: 'production', context: folder, entry: './main.js', output, performance: { hints: false } };
    webpack(config, (/** @type {any} */ error, /** @type {any} */ done) => (error ? reject(error) : resolve(done)));
  });
  assert.deepEqual(stats.toJson().errors, []);
  assert.deepEqual(stats.toJson().warnings, []);
  await assertWorks(t, couch, `${await servePages(t, folder)}/index.html`);
});

test('esbuild, one file', async (t) => {
  const { couch, folder } = await application(t, core, '<script src="out.js"></script>');
  const esbuild = await load('esbuild');
  await esbuild.build({
    absWorkingDir: folder, entryPoints: ['main.js'], bundle: true, outfile: 'out.js', define, logLevel: 'silent',
  });
  await assertWorks(t, couch, `${await servePages(t, folder)}/index.html`);
});

test('esbuild, split', async (t) => {
  const { couch, folder } = await application(t, browserOnly, '<script type="module" src="out/main.js"></script>');
  const esbuild = await load('esbuild');
  await esbuild.build({
    absWorkingDir: folder, entryPoints: ['main.js'], bundle: true, outdir: 'out', define, logLevel: 'silent',
    format: 'esm', splitting: true,
  });
  await assertWorks(t, couch, `${await servePages(t, folder)}/index.html`);
});

test('rollup', async (t) => {
  const { couch, folder } = await application(t, browserOnly, '<script type="module" src="out/main.js"></script>');
  const [{ rollup }, { default: resolve }, { default: commonjs }, { default: json }] = await Promise.all([
    'rollup', '@rollup/plugin-node-resolve', '@rollup/plugin-commonjs', '@rollup/plugin-json'].map(load));
  const plugins = [resolve({ browser: true, preferBuiltins: false }), commonjs(), json()];
  const bundle = await rollup({ input: join(folder, 'main.js'), plugins, logLevel: 'silent' });
  await bundle.write({ dir: join(folder, 'out'), format: 'es', intro: 'const global = globalThis;' });
  await bundle.close();
  await assertWorks(t, couch, `${await servePages(t, folder)}/index.html`);
});

for (const [how, wasm] of Object.entries({
  'a URL': `'/node_modules/pouchdb-fast-sync/dist/engine.wasm'`,
  'a Module': `await WebAssembly.compileStreaming(fetch('/node_modules/pouchdb-fast-sync/dist/engine.wasm'))`,
})) {
  test(`/slim with ${how}, by esbuild`, async (t) => {
    const { couch, folder } = await application(t, browserOnly, '<script type="module" src="out.js"></script>',
      `fastSync.with({ wasm: ${wasm} })`, 'pouchdb-fast-sync/slim');
    const esbuild = await load('esbuild');
    await esbuild.build({
      absWorkingDir: folder, entryPoints: ['main.js'], bundle: true, outfile: 'out.js', define, format: 'esm', logLevel: 'silent',
    });
    await assertWorks(t, couch, `${await servePages(t, folder)}/index.html`);
  });
}
