// A feed page whose rows are handed over as they come: every row once, in order, however
// the page is laid out and wherever its chunks end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPage } from '../../js/reading.js';

/** @param {number} count @param {(at: number) => any} [seq] */
const rowsOf = (count, seq = (at) => `${at}-abc`) => Array.from({ length: count }, (_, at) => ({
  seq: seq(at), id: `note ,\n ü ${at}`, changes: [{ rev: `1-${'0'.repeat(200)}` }],
}));

/** As CouchDB lays it out. @param {any[]} rows @param {string} [before] @param {string} [between] */
const couch = (rows, before = '', between = ',\r\n') => `${before}{"results":[\n${rows.map((row) => JSON.stringify(row)).join(between)}\n],\n"last_seq":"9-z","pending":0}\n`;

/** @param {string} text @param {number} size of a chunk */
function response(text, size) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const pull = (/** @type {any} */ to) => {
    if (at >= bytes.length) to.close();
    else to.enqueue(bytes.slice(at, (at += size)));
  };
  return { body: new ReadableStream({ pull }) };
}

/** @param {any} given */
async function read(given) {
  /** @type {any[]} */
  const early = [];
  let ticks = 0;
  const text = await readPage(given, () => { ticks += 1; }, (rows) => early.push(...rows));
  return { early, text, ticks };
}

for (const size of [1_000, 7_777, 60_000, 1e9]) {
  test(`every row comes once, in order, in chunks of ${size}`, async () => {
    const rows = rowsOf(1_000);
    const { early, text, ticks } = await read(response(couch(rows), size));
    const { results, last_seq, pending } = JSON.parse(text);
    assert.deepEqual([...early, ...results], rows);
    assert.deepEqual([last_seq, pending], ['9-z', 0]);
    assert.ok(ticks > 0);
    assert.equal(early.length > 0, size < 1e9);
  });
}

test('line breaks of a heartbeat come before and between', async () => {
  const rows = rowsOf(400);
  const text = couch(rows, '\n\n', ',\n').replaceAll(',\n{', ',\n\n\n{');
  const got = await read(response(text, 10_000));
  assert.ok(got.early.length > 0);
  assert.deepEqual([...got.early, ...JSON.parse(got.text).results], rows);
});

test('only up to a row that has a sequence', async () => {
  const rows = rowsOf(900, (at) => (at % 200 === 199 ? `${at}-abc` : null));
  const got = await read(response(couch(rows), 5_000));
  assert.equal(got.early.length % 200, 0);
  assert.ok(got.early.length >= 400);
  assert.deepEqual([...got.early, ...JSON.parse(got.text).results], rows);
});

test('a page of any other layout comes whole', async () => {
  const rows = rowsOf(500);
  const page = { results: rows, last_seq: 500, pending: 0 };
  for (const text of [JSON.stringify(page), JSON.stringify(page, null, 1), JSON.stringify({ last_seq: 1, ...page }), '<html>\n,\n']) {
    const got = await read(response(text, 4_000));
    assert.deepEqual(got.early, []);
    assert.equal(got.text, text);
  }
});

test('rows that are refused are left to the rest', async () => {
  const rows = rowsOf(500);
  let calls = 0;
  const text = await readPage(response(couch(rows), 4_000), () => {}, () => {
    calls += 1;
    throw new TypeError('a feed row without id');
  });
  assert.equal(calls, 1);
  assert.deepEqual(JSON.parse(text).results, rows);
});

test('a response without a stream comes whole', async () => {
  const text = couch(rowsOf(500));
  assert.deepEqual(await read({ text: async () => text }), { early: [], text, ticks: 0 });
});
