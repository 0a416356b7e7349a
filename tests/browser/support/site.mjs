// The site that test pages come from: another origin than the database's, as for most users, so
// that preflights are real. Stock and the plugin stand side by side on each page, in PouchDBs of
// their own, and the same in a worker.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = fileURLToPath(new URL('../../../node_modules/pouchdb/dist/', import.meta.url));

/** PouchDB once for stock, once more for the plugin, then the stage that uses both. */
const scripts = ['/pouchdb.js', '/indexeddb.js', '/keep-stock.js', '/pouchdb.js', '/indexeddb.js', '/stage.js'];
const page = `<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,">
${scripts.map((src) => `<script src="${src}"></script>`).join('\n')}`;

/** @type {Promise<string> | undefined} */
let bundled;

/** One classic script, with dist/ in it as a bundler would put it into a user's. */
function bundle() {
  bundled ??= build({
    entryPoints: [`${here}page/stage.js`], bundle: true, write: false, format: 'iife', platform: 'browser', target: 'es2022',
    alias: { 'node:assert/strict': `${here}page/assert.js` }, define: { global: 'globalThis' },
  }).then(({ outputFiles: [file] }) => file.text);
  return bundled;
}

/** @param {{ policy?: string }} [options] a Content-Security-Policy for the page */
export async function startSite({ policy } = {}) {
  /** @type {Record<string, () => Promise<string> | string>} */
  const files = {
    '/pouchdb.js': () => readFile(`${dist}pouchdb.min.js`, 'utf8'),
    '/indexeddb.js': () => readFile(`${dist}pouchdb.indexeddb.min.js`, 'utf8'),
    '/keep-stock.js': () => 'globalThis.StockPouchDB = PouchDB;',
    '/stage.js': bundle,
    '/worker.js': () => `importScripts(${scripts.map((src) => `'${src}'`).join()});`,
  };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const text = await files[pathname]?.();
    response.setHeader('Content-Type', text ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8');
    if (policy) response.setHeader('Content-Security-Policy', policy);
    response.end(text ?? page);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}/`,
    stop: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())),
  };
}
