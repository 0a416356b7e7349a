// npm test [-- SUITE ...]: sets up, builds, runs the suites, and tells how each
// ended. The suites are rust, js, browser and packaging; without a name, all.
import { join } from 'node:path';
import { build } from './lib/build.mjs';
import { filesOf } from './lib/files.mjs';
import { exitCode, root, say, script, Told } from './lib/run.mjs';
import { findChromium, needNode, needRust } from './lib/setup.mjs';

// A test that hangs must end before the machine's patience does.
const limitMs = 15 * 60_000;

/** @typedef {'passed' | 'failed' | string} Outcome any other text tells why the suite did not run */

/** @type {Record<string, () => Promise<Outcome>>} */
const suites = {
  async rust() {
    await needRust();
    // The default of proptest; a nightly run or a hunt sets more.
    const cases = process.env.PROPTEST_CASES ?? '256';
    return outcome(await exitCode('cargo', ['test', '--locked'], { PROPTEST_CASES: cases }));
  },
  js: () => nodeTests('tests/js', { files: 2 }),
  browser: withChromium(() => nodeTests('tests/browser', { files: 1 })),
  packaging: withChromium(() => nodeTests('tests/packaging', { files: 1 })),
};

await script(async () => {
  needNode();
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !Object.hasOwn(suites, name));
  if (unknown.length > 0) throw new Told(`No suite ${unknown.join(', ')}. There are: ${Object.keys(suites).join(', ')}`);
  const chosen = names.length > 0 ? names : Object.keys(suites);
  if (chosen.some((name) => name !== 'rust')) await build();

  /** @type {{ name: string, ended: Outcome, seconds: number }[]} */
  const results = [];
  for (const name of chosen) {
    say(`\n== ${name}`);
    const start = performance.now();
    const ended = await suites[name]();
    results.push({ name, ended, seconds: (performance.now() - start) / 1000 });
  }
  console.log('');
  for (const { name, ended, seconds } of results) say(`${name.padEnd(10)} ${ended}  ${seconds.toFixed(0)} s`);
  // On a machine of one's own a missing browser is said, and no more.
  const accepted = process.env.CI ? ['passed'] : ['passed', 'no Chromium'];
  return results.every(({ ended }) => accepted.includes(ended)) ? 0 : 1;
});

/**
 * @param {string} folder
 * @param {{ files: number }} atATime
 * @returns {Promise<Outcome>}
 */
async function nodeTests(folder, { files }) {
  const tests = filesOf([join(root, folder)], '.test.mjs');
  if (tests.length === 0) return 'no tests';
  const options = ['--test-reporter=spec', `--test-concurrency=${files}`, `--test-timeout=${limitMs}`];
  return outcome(await exitCode(process.execPath, ['--test', ...options, ...tests]));
}

/**
 * @param {() => Promise<Outcome>} suite
 * @returns {() => Promise<Outcome>}
 */
function withChromium(suite) {
  return async () => {
    const chromium = await findChromium();
    if (!chromium) return 'no Chromium';
    process.env.CHROMIUM = chromium;
    return suite();
  };
}

/** @param {number} code */
function outcome(code) {
  return code === 0 ? 'passed' : 'failed';
}
