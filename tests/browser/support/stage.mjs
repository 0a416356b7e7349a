// What a test needs to have a page: a browser's context, the site, a tab, and a way to call what
// stands on its stage (page/stage.js).

import { setTimeout as sleep } from 'node:timers/promises';
import { startSite } from './site.mjs';

/** In ms; a busy machine takes its time. */
const PATIENCE = 40_000;

/**
 * Until it holds.
 * @param {string} what is waited for
 * @param {() => Promise<boolean> | boolean} holds
 */
export async function until(what, holds) {
  const end = performance.now() + PATIENCE;
  while (!await holds()) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await sleep(20);
  }
}

export class Tab {
  /** @param {import('puppeteer-core').Page} page */
  constructor(page) {
    this.page = page;
    /** What the page said that nobody asked for. @type {string[]} */
    this.messages = [];
    page.on('console', (message) => {
      // A checkpoint that a first sync looks for is not there, which the browser and PouchDB say.
      if (['error', 'warn'].includes(message.type()) && !/\b404\b/.test(message.text())) this.messages.push(message.text());
    });
    page.on('pageerror', (error) => this.messages.push(String(error)));
  }

  /**
   * @param {string} method of the stage
   * @param {any[]} args
   * @returns {Promise<any>}
   */
  async call(method, ...args) {
    const answer = await this.page.evaluate((name, given) => /** @type {any} */ (globalThis).call(name, given), method, JSON.stringify(args));
    return JSON.parse(answer);
  }

  /**
   * A database opened, and a replication run on it.
   * @param {string} name
   * @param {string} adapter
   * @param {any[]} docs that the database holds before
   * @param {[direction: string, url: string, options?: any, remoteOptions?: any]} replication
   */
  async sync(name, adapter, docs, ...replication) {
    await this.call('open', name, adapter, docs);
    return this.call('run', name, ...replication);
  }

  /** As tests/js/support/snapshot.mjs compares it. @param {string} name @returns {Promise<import('../../js/support/snapshot.mjs').Snapshot>} */
  async contents(name) {
    const { docs, ...rest } = await this.call('contents', name);
    return { ...rest, docs: new Map(docs) };
  }
}

/**
 * A browser context with nothing in it, and the site. Both are gone when the test is over.
 * @param {import('node:test').TestContext} t
 * @param {import('./browsers.mjs').Kind} kind
 * @param {{ policy?: string }} [options]
 */
export async function openSite(t, kind, options) {
  const site = await startSite(options);
  t.after(() => site.stop());
  const browser = await kind.start();
  const context = await browser.createBrowserContext();
  t.after(() => context.close());
  return {
    async tab() {
      const page = await context.newPage();
      const tab = new Tab(page);
      await page.goto(site.url);
      return tab;
    },
  };
}

/**
 * One tab.
 * @param {import('node:test').TestContext} t
 * @param {import('./browsers.mjs').Kind} kind
 * @param {{ policy?: string }} [options]
 */
export async function openTab(t, kind, options) {
  return (await openSite(t, kind, options)).tab();
}
