// Serves the page, and an embedded server full of notes behind it, at a distance that the page may change.
//
// Decides what the page is told about the embedded server: a block of JSON in place of a comment in its index.html. A page
// from any other static host has no such block, and hides what belongs to it. Stock and the plugin reach the server through
// a proxy each: neither finds connections open, or preflights remembered, because the other was there before.
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { corpus } from '../demo/corpus.mjs';
import { startDelay } from '../demo/delay.mjs';
import { startServer } from '../demo/server.mjs';

const BUILT = fileURLToPath(new URL('dist/', import.meta.url));
/** Documents written to the server at once. */
const FILL_BATCH = 500;
/** A round trip between neighbouring countries, in ms. */
const RTT = 45;
/** The longest that the page may ask for, in ms. */
const RTT_MAX = 400;

/** @type {Record<string, string>} */
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8' };

/** @typedef {{notes: number, leaves: number, attachments: number, rtt: number, rttMax: number, stock: string, fast: string, plain: string, withAttachments: string}} Embedded */
/** @typedef {{url: string, stop: () => Promise<void>}} Served */

/**
 * The built page and the embedded server.
 * @param {{notes?: number, rtt?: number, port?: number, tell?: (line: string) => void}} [options]
 * @returns {Promise<Served>}
 */
export async function serve({ notes, rtt = RTT, port = 0, tell = () => {} } = {}) {
  const couch = await startServer();
  const proxies = [await startDelay({ port: couch.port }), await startDelay({ port: couch.port })];
  const setRtt = (/** @type {number} */ ms) => proxies.forEach((proxy) => proxy.setRtt(ms));
  try {
    const { leaves, ...counts } = await corpus({ notes });
    tell(`Filling the embedded server with ${leaves.length} revisions of ${counts.notes} notes`);
    await fill(`${couch.origin}/notes`, leaves.map(({ _attachments, ...doc }) => doc));
    await fill(`${couch.origin}/notes-with-files`, leaves);
    setRtt(rtt);
    const [stock, fast] = proxies.map((proxy) => `http://127.0.0.1:${proxy.port}`);
    /** @type {Embedded} */
    const embedded = {
      notes: counts.notes, leaves: leaves.length, attachments: counts.attachments, rtt, rttMax: RTT_MAX,
      stock, fast, plain: 'notes', withAttachments: 'notes-with-files',
    };
    const site = await serveFolder({
      port,
      index: (html) => html.replace('<!-- embedded server -->', `<script type="application/json" id="embedded">${JSON.stringify(embedded)}</script>`),
      answer: (request) => answer(request, proxies, setRtt),
    });
    return {
      url: site.url,
      async stop() {
        await site.stop();
        await Promise.all([...proxies, couch].map((child) => child.stop()));
      },
    };
  } catch (error) {
    await Promise.all([...proxies, couch].map((child) => child.stop()));
    throw error;
  }
}

/**
 * The built page as any static host would serve it.
 * @param {{port?: number, headers?: Record<string, string>, index?: (html: string) => string, answer?: (request: import('node:http').IncomingMessage) => Promise<any>}} [options]
 * @returns {Promise<Served>}
 */
export async function serveFolder({ port = 0, headers = {}, index = (html) => html, answer = async () => {} } = {}) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const name = pathname === '/' ? 'index.html' : pathname.slice(1);
    for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
    try {
      const said = await answer(request);
      if (said) {
        response.writeHead(said.status, { 'content-type': 'application/json' }).end(JSON.stringify(said.body));
        return;
      }
      // The built folder is flat: a name with a slash in it is none of its files.
      const body = /^[\w.-]+$/.test(name) ? await readFile(path.join(BUILT, name)) : undefined;
      if (!body) throw new Error('no such file');
      response.setHeader('content-type', TYPES[path.extname(name)] ?? 'application/octet-stream');
      response.setHeader('cache-control', 'no-cache');
      response.end(name === 'index.html' ? index(body.toString()) : body);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/`,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * What the page asks: `PUT distance` with `{"rtt": ms}`, and `GET preflights`, which a browser keeps from its pages.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('../demo/delay.mjs').Distance[]} proxies @param {(ms: number) => void} setRtt
 */
async function answer(request, proxies, setRtt) {
  if (request.method === 'PUT' && request.url === '/distance') {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { rtt } = JSON.parse(body);
    if (!(rtt >= 0 && rtt <= RTT_MAX)) return { status: 400, body: { reason: `rtt is from 0 to ${RTT_MAX}` } };
    setRtt(rtt);
    for (const proxy of proxies) proxy.reset();
    return { status: 200, body: { rtt } };
  }
  if (request.method === 'GET' && request.url === '/preflights') {
    const [stock, fast] = await Promise.all(proxies.map(async (proxy) => (await proxy.counters()).preflights));
    return { status: 200, body: { stock, fast } };
  }
}

/** @param {string} db URL @param {any[]} docs */
async function fill(db, docs) {
  await ask(db, 'PUT');
  for (let at = 0; at < docs.length; at += FILL_BATCH) {
    await ask(`${db}/_bulk_docs`, 'POST', { docs: docs.slice(at, at + FILL_BATCH), new_edits: false });
  }
  // The code that answers a replication is warm before the first contestant comes, who would pay for it alone.
  const { results } = await ask(`${db}/_changes?style=all_docs`, 'GET');
  const some = results.slice(0, FILL_BATCH).map((/** @type {any} */ { id, changes: [{ rev }] }) => ({ id, rev }));
  await ask(`${db}/_bulk_get?revs=true&attachments=true`, 'POST', { docs: some });
}

/** @param {string} url @param {string} method @param {object} [body] @returns {Promise<any>} */
async function ask(url, method, body) {
  const response = await fetch(url, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`the embedded server refused ${method} ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** @returns {Promise<number>} the exit code */
async function main() {
  const { values } = parseArgs({ options: { port: { type: 'string' }, notes: { type: 'string' } } });
  const [port, notes] = [values.port, values.notes].map((value) => (value === undefined ? undefined : Number(value)));
  if ([port, notes].some((n) => n !== undefined && !(Number.isInteger(n) && n >= 0 && n < 65_536))) {
    console.error('--port and --notes take a number');
    return 2;
  }
  const served = await serve({ port, notes, tell: console.log }).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    console.error(`Port ${port} is taken. Another one: npm run www -- --port ${Number(port) + 1}`);
  });
  if (!served) return 1;
  console.log(`\nThe page: ${served.url}\nThe folder www/dist works from any static host too, without the embedded server. Ctrl-C ends this.`);
  await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
  await served.stop();
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main();
