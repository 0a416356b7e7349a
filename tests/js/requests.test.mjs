// What goes over the wire: how many requests, with which headers and parameters. A header or a
// parameter that stock does not send breaks servers and CORS set-ups that work with stock.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faults } from './support/couch/index.mjs';
import { observe } from './support/observe.mjs';
import { local, pouches } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';

const { stock, fast } = pouches();

/** @param {any} db @param {any} url or a handle @param {any} [options] */
async function pull(db, url, options) {
  const { result, error } = await observe(db.replicate.from(url, options)).ended;
  assert.equal(error, undefined);
  return result;
}

for (const attachments of [false, true]) {
  test(`a first sync of 1,000 documents costs at most 14 requests${attachments ? ' apart from attachments' : ''}`, async (t) => {
    const docs = notes(1000);
    if (attachments) docs.slice(0, 3).forEach((doc) => Object.assign(doc, { _attachments: { a: { content_type: 'image/png', data: 'AAAA' } } }));
    const { couch, url } = await scene(t, { docs });
    const result = await pull(local(t, fast), url);
    assert.equal(result.docs_written, 1000);
    assert.ok(couch.count(/\/db\/(?!note)/) + couch.count(/ \/$/) <= 14, couch.log.map((entry) => `${entry.method} ${entry.url}`).join('\n'));
  });
}

for (const version of /** @type {const} */ ([8, 7])) {
  test(`the same with PouchDB ${version}`, async (t) => {
    const { couch, url } = await scene(t, { docs: 1000 });
    const result = await pull(local(t, pouches(version).fast), url);
    assert.equal(result.docs_written, 1000);
    assert.ok(couch.count() <= 14, couch.log.map((entry) => `${entry.method} ${entry.url}`).join('\n'));
  });
}

test('a sync with nothing to do costs no more than stock\'s', async (t) => {
  const { couch, url } = await scene(t, { docs: 20 });
  const costs = [];
  for (const PouchDB of [stock, fast]) {
    const db = local(t, PouchDB);
    await pull(db, url);
    couch.clearLog();
    await pull(db, url);
    costs.push(couch.count());
  }
  assert.ok(costs[1] <= costs[0], `${costs[1]} requests, stock ${costs[0]}`);
});

test('an empty database costs no more than stock\'s, the first time and again', async (t) => {
  /** @type {number[][]} */
  const costs = [];
  for (const PouchDB of [stock, fast]) {
    const { couch, url } = await scene(t);
    const db = local(t, PouchDB);
    await pull(db, url);
    const first = couch.count();
    await pull(db, url);
    costs.push([first, couch.count() - first]);
  }
  const [[first, again], ours] = costs;
  assert.ok(ours[0] <= first && ours[1] <= again, `${ours} requests, stock ${first}, ${again}`);
});

test('a connection for documents is opened while the feed is on its way, where it is ours to open', async (t) => {
  const { couch, url } = await scene(t, { docs: 20 });
  /** @type {[any, any][]} */
  const ways = [[{}, {}], [{}, { fastSync: { concurrency: 1 } }], [{ fetch: stock.fetch }, {}]];
  const opened = [];
  for (const [handle, options] of ways) {
    couch.clearLog();
    await pull(local(t, fast), new fast(url, handle), options);
    opened.push(couch.count(/ \/$/) - 1);
  }
  // Without Node's own modules there is no agent, and every request has a connection of its own.
  assert.deepEqual(opened, [process.getBuiltinModule ? 1 : 0, 0, 0]);
});

/** What a client adds by itself depends on the client, not on who uses it. */
const ofTheClient = new Set(['host', 'connection', 'accept-encoding', 'user-agent', 'accept-language', 'sec-fetch-mode', 'content-length', 'transfer-encoding', 'keep-alive']);

/** @param {any} entry */
const headersOf = ({ headers }) => Object.keys(headers).filter((name) => !ofTheClient.has(name));

test('no request header that stock does not send, and no Content-Type on a GET', async (t) => {
  const docs = /** @type {any[]} */ (notes(50));
  docs[0]._attachments = { 'a.txt': { content_type: 'text/plain', data: 'aGk=' } };
  for (const options of [{}, { doc_ids: ['note-00003'] }, { selector: { text: 'number 4' } }]) {
    /** @type {Set<string>[]} */
    const sent = [];
    for (const PouchDB of [stock, fast]) {
      const { couch } = await scene(t, { docs, users: { admin: 'secret' } });
      const remote = new PouchDB(couch.dbUrl('db', { user: 'admin' }), { headers: { 'X-Mine': 'yes' } });
      await pull(local(t, PouchDB), remote, { ...options });
      sent.push(new Set(couch.log.flatMap(headersOf)));
      if (PouchDB === fast) {
        for (const entry of couch.matching(/^GET/)) assert.equal(entry.headers['content-type'], undefined, entry.url);
      }
      for (const entry of couch.log) {
        assert.equal(entry.headers['x-mine'], 'yes', `${entry.method} ${entry.url}`);
        assert.ok(entry.headers.authorization, `${entry.method} ${entry.url}`);
      }
    }
    assert.deepEqual([...sent[1]].filter((name) => !sent[0].has(name)), []);
  }
});

test('parameters of its own only after the server said that it is CouchDB', async (t) => {
  const { couch, url, database } = await scene(t, { docs: 300 });
  await pull(local(t, fast), url);
  // By its name, or by the shards of the database, which no other server has.
  const welcomed = Math.min(...couch.matching(/^GET \/(db\/)?$/).map((entry) => /** @type {number} */ (entry.end)));
  const own = couch.log.filter(({ query }) => 'seq_interval' in query || 'r' in query);
  assert.ok(own.length > 0);
  for (const entry of own) assert.ok(entry.start >= welcomed, `${entry.url} went out before the welcome`);

  // A server that does not say so never gets one.
  couch.faults.add({ when: { path: /^\/$/ }, times: Infinity, action: faults.mapJson(({ version }) => ({ server: 'other', version })) });
  couch.faults.add({ when: { path: /^\/db\/$/ }, times: Infinity, action: faults.mapJson(({ cluster: _, ...info }) => info) });
  database.bulkDocs(notes(300, 1000));
  couch.clearLog();
  const result = await pull(local(t, fast), url);
  assert.equal(result.docs_written, 600);
  assert.deepEqual(couch.log.filter(({ query }) => 'seq_interval' in query || 'r' in query).map(({ url: path }) => path), []);
});

test('a filtered feed gets no seq_interval', async (t) => {
  for (const options of [{ doc_ids: notes(40).map(({ _id }) => _id) }, { selector: { text: { $gt: 'number 5' } } }]) {
    const { couch, url } = await scene(t, { docs: 200 });
    await pull(local(t, fast), url, { ...options, batch_size: 10 });
    assert.equal(couch.log.some(({ query }) => 'seq_interval' in query), false);
  }
});

test('what is asked is asked once', async (t) => {
  const { couch, url } = await scene(t, { docs: 700 });
  await pull(local(t, fast), url);
  const asked = couch.matching(/_bulk_get/).flatMap(({ bodyJSON }) => bodyJSON.docs.map((/** @type {any} */ doc) => `${doc.id} ${doc.rev}`));
  assert.equal(new Set(asked).size, asked.length);
  assert.equal(asked.length, 700);
  const reads = couch.matching(/^GET .*(_local|_changes|\/db\/$| \/$)/).map(({ url: path }) => path);
  assert.deepEqual(reads.filter((path, at) => reads.indexOf(path) !== at), [], 'no URL was read twice');
});
