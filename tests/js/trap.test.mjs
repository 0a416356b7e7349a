// A trapped engine: wherever it stops, stock goes on, nothing is lost, and the process lives.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const child = fileURLToPath(new URL('support/trap-child.mjs', import.meta.url));

/** @param {string} direction @param {number} at */
async function trapped(direction, at) {
  const { stdout } = await promisify(execFile)(process.execPath, [child, direction, String(at)], { timeout: 30_000 });
  return JSON.parse(stdout);
}

for (const direction of ['pull', 'push', 'sync']) {
  test(`a trap at any call: ${direction}`, { timeout: 120_000 }, async () => {
    const { calls, stock } = await trapped(direction, 0);
    assert.equal(stock, null, 'the engine did the work');
    // At the first call, at the last, and at some between.
    for (const share of [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]) {
      const at = Math.max(1, Math.round(calls * share));
      const seen = await trapped(direction, at);
      assert.equal(seen.again, 0, `at ${at} of ${calls}`);
    }
  });
}
