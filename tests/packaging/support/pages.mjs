// Pages over HTTP, and a Chromium that opens them.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { launch } from 'puppeteer-core';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

/**
 * Serves a folder.
 * @param {import('node:test').TestContext} t
 * @param {string} folder
 * @param {{ csp?: string }} [options]
 */
export async function servePages(t, folder, { csp } = {}) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    try {
      const body = await readFile(join(folder, path));
      response.setHeader('Content-Type', types[extname(path)] ?? 'application/octet-stream');
      if (csp) response.setHeader('Content-Security-Policy', csp);
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}`;
}

/** A Chromium with a fresh profile, to be closed by the caller. */
export function startChromium() {
  return launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
}

/**
 * Opens a page in a context of its own, and waits for the promise that it
 * leaves in `window.outcome`.
 * @param {import('node:test').TestContext} t
 * @param {import('puppeteer-core').Browser} chromium
 * @param {string} url
 * @returns {Promise<{ outcome: any, messages: string[] }>} with what it said on the console, errors too
 */
export async function openPage(t, chromium, url) {
  const context = await chromium.createBrowserContext();
  t.after(() => context.close());
  const page = await context.newPage();
  /** @type {string[]} */
  const messages = [];
  page.on('console', (message) => messages.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => messages.push(`pageerror: ${error}`));
  await page.goto(url);
  try {
    await page.waitForFunction('window.outcome !== undefined', { timeout: 30_000 });
    // A page without 'unsafe-eval' must answer too: the debugger's evaluation is not held to its policy.
    return { outcome: await page.evaluate('window.outcome'), messages };
  } catch (error) {
    throw new Error(`${url}\n${messages.join('\n')}`, { cause: error });
  }
}
