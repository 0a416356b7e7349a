// The browsers that tests run in, and how each is found and started. A browser that is missing is
// said to be, and its tests are skipped, but not in CI: CHROMIUM and FIREFOX name others than those
// on PATH.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, test } from 'node:test';
import { launch } from 'puppeteer-core';

/** No call of a test takes so many ms; one that never ends shall not take the three minutes of puppeteer's own. */
const PATIENCE = 60_000;

/** @typedef {{ name: string, start: () => Promise<import('puppeteer-core').Browser> }} Kind */

const chromiumFlags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

const kinds = [
  {
    name: 'Chromium',
    path: process.env.CHROMIUM ?? onPath(['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']),
    options: { args: chromiumFlags },
  },
  {
    // Through WebDriver BiDi.
    name: 'Firefox',
    path: process.env.FIREFOX ?? onPath(['firefox', 'firefox-esr']),
    options: { browser: /** @type {const} */ ('firefox') },
  },
];

/**
 * Defines tests for each browser. It is started when the first of them asks for it, and closed
 * after the last.
 * @param {(kind: Kind) => void} define
 */
export function inEachBrowser(define) {
  for (const { name, path, options } of kinds) {
    if (!path) {
      const missing = `there is no ${name} on PATH; ${name.toUpperCase()}=/path/to/it names one`;
      test(name, { skip: process.env.CI ? false : missing }, () => assert.fail(missing));
      continue;
    }
    /** @type {Promise<import('puppeteer-core').Browser> | undefined} */
    let started;
    define({ name, start: () => (started ??= launch({ executablePath: path, headless: true, protocolTimeout: PATIENCE, ...options })) });
    after(async () => (await started)?.close());
  }
}

/** @param {string[]} names */
function onPath(names) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}
