// The one-file build in the places where a browser runs scripts: a page, a
// worker, a service worker, a file, a strict policy, a page with Node's globals.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { folderWithPackage, neighbour, write } from './support/folders.mjs';
import { openPage, servePages, startChromium } from './support/pages.mjs';
import { assertSynced, assertSyncedByThePlugin, startNotes, syncOnce, usedThePlugin } from './support/sync.mjs';

const plugin = 'node_modules/pouchdb-fast-sync/dist/pouchdb-fast-sync.min.js';
const pouchScript = '<script src="pouchdb.js"></script>';
const pluginScript = `<script src="${plugin}"></script>`;
const mainScript = '<script src="main.js"></script>';

/** @type {import('puppeteer-core').Browser} */
let chromium;
before(async () => {
  chromium = await startChromium();
});
after(() => chromium.close());

/**
 * A folder with PouchDB, the package, a server to sync from, and the given
 * files; without a page among them, one of the usual three scripts.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, (sync: string) => string>} [files] from the expression that syncs
 */
async function site(t, files = {}) {
  const couch = await startNotes(t);
  const sync = `(${syncOnce})(PouchDB, '${couch.url}/notes')`;
  const folder = await folderWithPackage(t, {
    'pouchdb.js': await neighbour('pouchdb/dist/pouchdb.min.js'),
    'index.html': html(pouchScript, pluginScript, mainScript),
    'main.js': `window.outcome = ${sync};`,
  });
  await write(folder, Object.fromEntries(Object.entries(files).map(([name, content]) => [name, content(sync)])));
  return { couch, folder };
}

/** @param {string[]} scripts */
function html(...scripts) {
  return `<!doctype html><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">${scripts.join('')}`;
}

/**
 * Without what stock prints, too, at a first sync: no checkpoint was found.
 * @param {string[]} messages
 */
function unusual(messages) {
  return messages.filter((message) => !/\b404\b/.test(message));
}

test('a <script> after PouchDB registers itself', async (t) => {
  const { couch, folder } = await site(t);
  const { outcome, messages } = await openPage(t, chromium, `${await servePages(t, folder)}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
  assert.deepEqual(unusual(messages), []);
});

test('a <script> before PouchDB leaves the plugin in window.fastSync', async (t) => {
  const { couch, folder } = await site(t, {
    'index.html': () => html(pluginScript, pouchScript, mainScript),
    'main.js': (sync) => `PouchDB.plugin(fastSync.with({ concurrency: 2 })); fastSync.getDocs.call; window.outcome = ${sync};`,
  });
  const { outcome } = await openPage(t, chromium, `${await servePages(t, folder)}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
});

test('a file:// page', async (t) => {
  const { couch, folder } = await site(t);
  const { outcome } = await openPage(t, chromium, String(pathToFileURL(join(folder, 'index.html'))));
  assertSyncedByThePlugin(outcome, couch);
});

test('a web worker', async (t) => {
  const { couch, folder } = await site(t, {
    'index.html': () => html(mainScript),
    'main.js': () => `window.outcome = new Promise((resolve, reject) => {
      const worker = new Worker('worker.js');
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });`,
    'worker.js': (sync) => `importScripts('pouchdb.js', '${plugin}'); ${sync}.then(postMessage);`,
  });
  const { outcome } = await openPage(t, chromium, `${await servePages(t, folder)}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
});

test('a service worker, one sync for an event', async (t) => {
  const { couch, folder } = await site(t, {
    'index.html': () => html(mainScript),
    'main.js': () => `window.outcome = navigator.serviceWorker.register('worker.js').then(async () => {
      const { active } = await navigator.serviceWorker.ready;
      return new Promise((resolve) => {
        const channel = new MessageChannel();
        channel.port1.onmessage = ({ data }) => resolve(data);
        active.postMessage('sync', [channel.port2]);
      });
    });`,
    'worker.js': (sync) => `importScripts('pouchdb.js', '${plugin}');
      self.onmessage = (event) => event.waitUntil(${sync}.catch(String).then((outcome) => event.ports[0].postMessage(outcome)));`,
  });
  const { outcome } = await openPage(t, chromium, `${await servePages(t, folder)}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
});

test("a strict policy with 'wasm-unsafe-eval'", async (t) => {
  const { couch, folder } = await site(t);
  const csp = `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src ${couch.url}; img-src data:`;
  const { outcome, messages } = await openPage(t, chromium, `${await servePages(t, folder, { csp })}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
  assert.deepEqual(unusual(messages), []);
});

test("a strict policy without 'wasm-unsafe-eval': stock, and one line for the developer", async (t) => {
  const { couch, folder } = await site(t, {
    'main.js': (sync) => `const lines = [];
      PouchDB.on('debug', ([from, ...line]) => { if (from === 'fast-sync') lines.push(line.join(' ')); });
      window.outcome = ${sync}.then((outcome) => ({ outcome, lines }));`,
  });
  const csp = `default-src 'none'; script-src 'self'; connect-src ${couch.url}; img-src data:`;
  const { outcome: { outcome, lines }, messages } = await openPage(t, chromium, `${await servePages(t, folder, { csp })}/index.html`);
  assertSynced(outcome);
  assert.ok(!usedThePlugin(couch));
  assert.equal(lines.length, 1, lines.join('\n'));
  assert.match(lines[0], /stock/);
  assert.deepEqual(unusual(messages), []);
});

// Electron's renderer with node integration is Chromium with these on `window`.
test("a page with Node's globals", async (t) => {
  const { couch, folder } = await site(t, {
    'index.html': () => html(pouchScript, '<script src="node.js"></script>', pluginScript, mainScript),
    'node.js': () => `
      window.global = window;
      window.process = { type: 'renderer', platform: 'linux', env: {}, argv: [], versions: { node: '20.0.0', electron: '30.0.0' }, nextTick: queueMicrotask };
      window.Buffer = class Buffer extends Uint8Array {};
      window.module = { exports: {} };
      window.exports = module.exports;
      window.require = (name) => { throw new Error('asked for ' + name); };`,
  });
  const { outcome } = await openPage(t, chromium, `${await servePages(t, folder)}/index.html`);
  assertSyncedByThePlugin(outcome, couch);
});
