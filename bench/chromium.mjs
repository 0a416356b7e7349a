// Runs in Chromium: every one in a browser of its own with a fresh profile, for an incognito window would keep IndexedDB in
// memory, and a kept profile would keep preflights and connections.
//
// Decides how the browser is started and what it may load. The page comes from another origin than the database, as it does
// for most users, so that preflights are real.
import { createReadStream, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { PLUGIN } from '../demo/pouch.mjs';
import { findChromium } from '../scripts/lib/setup.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A browser that was just started is busy with itself for so many ms: with a process for its own pages, among others. */
const SETTLED_MS = 4_000;
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];
const PAGE = `<!doctype html><meta charset="utf-8"><title>bench</title><link rel="icon" href="data:,">
<script src="/node_modules/pouchdb/dist/pouchdb.min.js"></script>
<script src="/node_modules/pouchdb/dist/pouchdb.indexeddb.min.js"></script>
<script type="module" src="/bench/page.mjs"></script>`;

/** @param {{on: string, documents: string, plugin?: string, patience: number}} options @returns {Promise<import('./node.mjs').Runner>} */
export async function chromiumRunner({ on, documents, plugin = PLUGIN, patience }) {
  const executablePath = await findChromium();
  if (!executablePath) throw new Error('no Chromium was found');
  const puppeteer = await import('puppeteer-core');
  const folder = path.dirname(path.resolve(plugin));
  const site = createServer((request, response) => serve(request, response, { documents, folder }));
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  const origin = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (site.address()).port}`;

  return {
    async run(job, { start, end }) {
      const profile = await mkdtemp(path.join(os.tmpdir(), 'fast-sync-bench-'));
      const browser = await puppeteer.launch({ executablePath, args: FLAGS, userDataDir: profile, protocolTimeout: patience });
      try {
        const page = await browser.newPage();
        page.on('pageerror', (error) => console.error(`in the page: ${error}`));
        await page.goto(origin);
        await page.waitForFunction('globalThis.bench');
        const local = { name: 'local', adapter: on.replace('chromium-', '') };
        await page.evaluate((j, p) => /** @type {any} */ (globalThis).bench.prepare(j, p), { ...job, local }, job.runner === 'fast' ? `/plugin/${path.basename(plugin)}` : undefined);
        await new Promise((settled) => setTimeout(settled, SETTLED_MS));
        await start();
        const done = await page.evaluate(() => /** @type {any} */ (globalThis).bench.run());
        await end();
        return { ...done, leaves: await page.evaluate(() => /** @type {any} */ (globalThis).bench.result()) };
      } finally {
        await browser.close();
        await rm(profile, { recursive: true, force: true, maxRetries: 5 });
      }
    },
    async stop() {
      site.close();
      site.closeAllConnections();
    },
  };
}

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response @param {{documents: string, folder: string}} where */
function serve(request, response, { documents, folder }) {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname === '/') {
    response.setHeader('content-type', 'text/html');
    response.end(PAGE);
    return;
  }
  const file = pathname === '/documents' ? documents
    : pathname.startsWith('/plugin/') ? path.join(folder, pathname.slice('/plugin/'.length))
      : /^\/(bench|demo|node_modules)\//.test(pathname) ? path.join(ROOT, pathname) : '';
  if (!file || !existsSync(file)) {
    response.statusCode = 404;
    response.end();
    return;
  }
  response.setHeader('content-type', /\.m?js$/.test(file) ? 'text/javascript' : pathname === '/documents' ? 'application/json' : 'application/octet-stream');
  createReadStream(file).pipe(response);
}
