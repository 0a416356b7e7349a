// The page under www/, as a person uses it: with the embedded server behind it, and from a plain static host. Leaves
// screenshots in both colour schemes and two widths in target/screenshots, to be looked at.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startServer } from '../../demo/server.mjs';
import { buildPage } from '../../scripts/lib/page.mjs';
import { serve, serveFolder } from '../../www/serve.mjs';
import { startChromium } from '../packaging/support/pages.mjs';

const screenshots = fileURLToPath(new URL('../../target/screenshots/', import.meta.url));
const login = { user: 'anna', password: 'p@ss: wörd' };
const NOTES = 150;

/** @type {import('puppeteer-core').Browser} */
let chromium;
/** @type {import('../../www/serve.mjs').Served} */
let site;
/** A server that asks who one is, with a small database. @type {import('../../demo/server.mjs').RunningServer} */
let couch;

before(async () => {
  await buildPage();
  mkdirSync(screenshots, { recursive: true });
  [chromium, site, couch] = await Promise.all([startChromium(), serve({ notes: NOTES, rtt: 20 }), startServer(login)]);
  const docs = Array.from({ length: 40 }, (_, n) => ({ _id: `note-${n}`, n, text: 'Zürich 🙂' }));
  await ask('PUT', '/notes');
  await ask('POST', '/notes/_bulk_docs', { docs });
});
after(() => Promise.all([chromium?.close(), site?.stop(), couch?.stop()]));

test('both are run from the keyboard, and leave equal databases and nothing else', async (t) => {
  const { page, messages } = await open(t, site.url);
  await shoot(page, 'idle');
  assert.equal(await page.$eval('#own-fields', isHidden), true);
  await tabTo(page, 'run');
  await page.keyboard.press('Enter');
  await page.waitForFunction(`document.activeElement.id === 'cancel'`);
  await finish(page, /^Done: both databases are equal/);
  const table = await figures(page);
  assert.match(table['Same database'][0], /^Yes, equal: 150 documents, \d+ leaf revisions$/);
  assert.equal(table.Documents[0], table.Documents[1]);
  assert.ok(Number(table.Requests[1]) < Number(table.Requests[0]), String(table.Requests));
  assert.ok(Number(table.Preflights[0]) > 0);
  assert.equal(await page.$eval('#aside', isHidden), true);
  assert.equal(await page.evaluate('document.activeElement.id'), 'result');
  assert.equal(await page.$$eval('#waterfall-stock .kind, #waterfall-fast .kind, #chart .line', (lines) => lines.length > 6), true);
  await shoot(page, 'done');
  await assertNothingLeft(page);
  assert.deepEqual(messages, []);
});

test('settings are used; cancelling leaves nothing; a second tab waits', async (t) => {
  const { page, context, messages } = await open(t, site.url);
  await page.click('#attachments');
  await set(page, 'rtt', '400');
  await page.click('summary');
  await page.type('#batch', '12');
  await page.select('#concurrency', '1');
  await page.click('#run');
  await page.waitForFunction(`document.querySelector('#status').textContent === 'PouchDB syncs.'`);
  await page.waitForSelector('#waterfall-stock .kind.feed');
  await shoot(page, 'running');

  const other = await context.newPage();
  await other.goto(site.url);
  await other.click('#run');
  await finish(other, /Another tab/);
  await other.close();

  await page.bringToFront();
  await page.click('#cancel');
  await finish(page, /^Cancelled/);
  await assertNothingLeft(page);

  await set(page, 'rtt', '0');
  await page.click('#run');
  await finish(page, /^Done: both databases are equal/);
  const feed = await page.$eval('#kinds tbody tr', (row) => Number(row.cells[1].textContent));
  assert.ok(feed > NOTES / 12, `${feed} feed requests are too few for batches of 12`);
  assert.deepEqual(messages, []);
});

test('mistakes are told in words, and nothing is created', async (t) => {
  const { page } = await open(t, site.url);
  await page.focus('#sources input');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.$eval('#own-fields', isHidden), false);
  const closed = await plainServer(t, (_request, response) => response.end('{}'));
  const pages = await plainServer(t, (_request, response) => response.setHeader('access-control-allow-origin', '*').end('{"hello":"world"}'));

  /** @type {[url: string, user: string, password: string, words: RegExp, focus: string][]} */
  const mistakes = [
    ['notes', '', '', /no URL/, 'url'],
    [couch.origin, '', '', /is a server\. Add the name/, 'url'],
    [`${couch.origin}/notes`, '', '', /asks who you are \(401\)/, 'user'],
    [`${couch.origin}/notes`, 'anna', 'wrong', /does not let “anna” in \(401\)/, 'password'],
    [`${couch.origin}/missing`, 'anna', login.password, /There is no database at .*missing \(404\)\. Nothing was created/, 'url'],
    ['http://127.0.0.1:9/notes', '', '', /cannot be reached/, 'url'],
    [`${closed}/notes`, '', '', /\(CORS\).*enable_cors/s, 'url'],
    [`${pages}/notes`, '', '', /not as a CouchDB database/, 'url'],
  ];
  for (const [url, user, password, words, focus] of mistakes) {
    await set(page, 'url', url);
    await set(page, 'user', user);
    await set(page, 'password', password);
    await page.click('#run');
    await page.waitForFunction(`!document.querySelector('#run').disabled && !document.querySelector('#problem').hidden`);
    assert.match(await page.$eval('#problem', text), words);
    assert.equal(await page.evaluate('document.activeElement.id'), focus);
  }
  await shoot(page, 'mistake');
  assert.equal((await ask('GET', '/missing')).status, 404);
});

test('from a plain static host: a database with a login, which is stored nowhere', async (t) => {
  const host = await serveFolder();
  t.after(() => host.stop());
  const { page, messages } = await open(t, `${host.url}index.html`);
  assert.equal(await page.$eval('#embedded-fields', isHidden), true);
  const url = `${couch.origin.replace('//', `//anna:${encodeURIComponent(login.password)}@`)}/notes`;
  await page.type('#url', url);
  await page.keyboard.press('Enter');
  await finish(page, /^Done: both databases are equal/);
  assert.deepEqual((await figures(page)).Documents, ['40', '40']);
  assert.equal(await page.$eval('#url', value), `${couch.origin}/notes`);
  assert.equal(await page.$eval('#password', value), login.password);
  await shoot(page, 'own');
  await assertNothingLeft(page);
  assert.ok(!(await page.content()).includes(login.password));
  assert.deepEqual(messages, []);
});

test('where a policy refuses WebAssembly, the page says that stock did both', async (t) => {
  const host = await serveFolder({ headers: { 'content-security-policy': "script-src 'self'" } });
  t.after(() => host.stop());
  const { page } = await open(t, host.url);
  await page.type('#url', `${couch.origin}/notes`);
  await page.type('#user', login.user);
  await page.type('#password', login.password);
  await page.click('#run');
  await finish(page, /^Done: both databases are equal/);
  assert.match(await page.$eval('#aside', text), /Content-Security-Policy.*'wasm-unsafe-eval'/);
});

/** @param {import('node:test').TestContext} t @param {string} url */
async function open(t, url) {
  const context = await chromium.createBrowserContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.setViewport({ width: 1280, height: 800 });
  /** @type {string[]} */
  const messages = [];
  page.on('console', (message) => {
    // The browser itself reports that a checkpoint, which a first sync asks for, is not there.
    if (['error', 'warn'].includes(message.type()) && !/\b404\b/.test(message.text())) messages.push(message.text());
  });
  page.on('pageerror', (error) => messages.push(String(error)));
  await page.goto(url);
  return { page, context, messages };
}

/** In both schemes and two widths. @param {import('puppeteer-core').Page} page @param {string} name */
async function shoot(page, name) {
  for (const width of [360, 1280]) {
    await page.setViewport({ width, height: 800 });
    for (const scheme of ['dark', 'light']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      // The drawings follow the width in a frame of their own.
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      await page.screenshot({ path: join(screenshots, `www-${name}-${width}-${scheme}.png`), fullPage: true });
    }
    const tooWide = await page.$$eval('html, #form, #stage, #stage > section', (boxes) => boxes.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ id, scrollWidth }) => `${id} ${scrollWidth}`));
    assert.deepEqual(tooWide, [], `${name} on a screen of ${width}`);
  }
}

/** @param {import('puppeteer-core').Page} page @param {string} id */
async function tabTo(page, id) {
  for (let presses = 0; presses < 12; presses++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate('document.activeElement.id') === id) return;
  }
  assert.fail(`#${id} is not reached by Tab`);
}

/** @param {import('puppeteer-core').Page} page @param {RegExp} status */
async function finish(page, status) {
  await page.waitForFunction(`!document.querySelector('#run').disabled`, { timeout: 60_000 });
  assert.match(await page.$eval('#status', text), status);
}

/** @param {import('puppeteer-core').Page} page @returns {Promise<Record<string, string[]>>} */
async function figures(page) {
  return Object.fromEntries(await page.$$eval('#figures tbody tr', (rows) => rows.map((row) => {
    const [head, ...cells] = [...row.cells].map(({ textContent }) => textContent ?? '');
    return [head, cells];
  })));
}

/** @param {import('puppeteer-core').Page} page */
async function assertNothingLeft(page) {
  const left = await page.evaluate(async () => ({
    databases: (await indexedDB.databases()).map(({ name }) => name), stored: localStorage.length + sessionStorage.length, cookies: document.cookie,
  }));
  assert.deepEqual(left, { databases: [], stored: 0, cookies: '' });
}

/** @param {import('puppeteer-core').Page} page @param {string} id @param {string} to */
async function set(page, id, to) {
  await page.$eval(`#${id}`, (input, v) => {
    /** @type {any} */ (input).value = v;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }, to);
}

/** @param {import('node:test').TestContext} t @param {import('node:http').RequestListener} listener */
async function plainServer(t, listener) {
  const server = createServer(listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => (server.close(), server.closeAllConnections()));
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;
}

/** Of the server with the login. @param {string} method @param {string} path @param {object} [body] */
async function ask(method, path, body) {
  const authorization = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`;
  return fetch(couch.origin + path, { method, headers: { 'content-type': 'application/json', authorization }, body: body && JSON.stringify(body) });
}

const isHidden = (/** @type {any} */ element) => element.offsetParent === null;
const text = (/** @type {any} */ element) => element.textContent;
const value = (/** @type {any} */ element) => element.value;
