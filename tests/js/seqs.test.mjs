// Sequences are opaque: whatever JSON value a server gives is given back as it came.

import assert from 'node:assert/strict';
import { alike } from './support/alike.mjs';
import { observe } from './support/observe.mjs';
import { notes } from './support/scene.mjs';

/**
 * A handle whose server has other sequences than the scripted one.
 * @param {any} PouchDB
 * @param {string} url
 * @param {(seq: string) => any} outside
 * @param {(text: string) => string} inside of the query's `since`
 */
function translated(PouchDB, url, outside, inside) {
  const rename = (/** @type {any} */ seq) => (seq === null ? null : outside(seq));
  return new PouchDB(url, {
    async fetch(/** @type {string} */ address, /** @type {any} */ options) {
      const asked = address.replace(/([?&]since=)([^&]*)/, (_all, name, since) => `${name}${encodeURIComponent(inside(decodeURIComponent(since)))}`);
      const answer = await PouchDB.fetch(asked, options);
      if (!/_changes|\/db\/$/.test(address)) return answer;
      const json = await answer.json();
      if (json.last_seq) json.last_seq = rename(json.last_seq);
      if (json.update_seq) json.update_seq = rename(json.update_seq);
      for (const row of json.results ?? []) row.seq = rename(row.seq);
      const text = JSON.stringify(json);
      return { ok: answer.ok, status: answer.status, headers: answer.headers, json: async () => JSON.parse(text), text: async () => text };
    },
  });
}

/** @type {Map<number, string>} */
const numbers = new Map();

/** @type {[string, (seq: string) => any, (text: string) => string][]} */
const kinds = [
  ['numbers', (seq) => { numbers.set(parseInt(seq, 10), seq); return parseInt(seq, 10); }, (text) => numbers.get(Number(text)) ?? text],
  ['lists', (seq) => [parseInt(seq, 10), seq], (text) => (text === '0' ? '0' : JSON.parse(text)[1])],
  ['strings with everything in them', (seq) => `${seq} &=+%20"ü🍏`, (text) => text.replace(' &=+%20"ü🍏', '')],
];

for (const [name, outside, inside] of kinds) {
  for (const batch_size of [undefined, 7]) {
    alike(`sequences that are ${name}, batch_size ${batch_size}`, async ({ PouchDB, db, url, database, couch }) => {
      const remote = translated(PouchDB, url, outside, inside);
      const first = await observe(db.replicate.from(remote, { batch_size })).ended;
      assert.equal(first.error, undefined);
      database.bulkDocs(notes(5, 500));
      couch.clearLog();
      const second = await observe(db.replicate.from(remote, { batch_size })).ended;
      assert.equal(second.error, undefined);
      const since = couch.matching(/_changes/)[0].query.since;
      return {
        written: [first.result.docs_written, second.result.docs_written], since: parseInt(since, 10),
        last: typeof second.result.last_seq, rows: first.changes.map((change) => Array.isArray(change.last_seq)),
      };
    }, { docs: 40, check: ({ written, since }) => assert.deepEqual([written, since], [[40, 5], 40]) });
  }
}
