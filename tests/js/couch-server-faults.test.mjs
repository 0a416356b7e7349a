// What the scripted server can do beyond answering: fail on demand, take its time, refuse, lag
// behind, forget, and tell afterwards what it was asked. Each of these is what a later test
// of replication leans on, so each is shown here to do what its name says.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { concat } from './support/couch/bytes.mjs';
import { exchange } from './support/couch/exchange.mjs';
import { faults, startCouch } from './support/couch/index.mjs';

/** @type {import('./support/couch/index.mjs').Couch} */
let couch;
before(async () => { couch = await startCouch(); });
after(() => couch.stop());
afterEach(() => {
  couch.faults.clear();
  couch.clearLog();
  Object.assign(couch, { latency: 0, connectionLatency: false, idleTimeout: 0 });
});

/** @param {string} path @param {RequestInit & { json?: object }} [init] */
const ask = (path, { json, ...init } = {}) => fetch(couch.url + path, json === undefined ? init : {
  method: 'POST', body: JSON.stringify(json), ...init,
  headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...init.headers },
});
/** @param {string} path @param {RequestInit & { json?: object }} [init] @returns {Promise<any>} */
const jsonOf = async (path, init) => (await ask(path, init)).json();

const notes = (/** @type {string} */ name, count = 3) => {
  const db = couch.db(name);
  db.bulkDocs(Array.from({ length: count }, (_, i) => ({ _id: `n${i}`, n: i })));
  return db;
};
/** @param {import('./support/couch/database.mjs').Database} db */
const wanted = (db) => ({ docs: [...db.docs.values()].map(({ id, tree }) => ({ id, rev: tree.winner().rev })) });

describe('faults', () => {
  test('a status, after some good answers, as often as told', async () => {
    const fault = couch.faults.add({
      when: { method: 'GET', path: /_up/ }, after: 1, times: 2,
      action: faults.status(503, { error: 'busy', reason: 'later' }, { 'Retry-After': '2' }),
    });
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await ask('/_up')).status);
    assert.deepEqual(statuses, [200, 503, 503, 200]);
    assert.equal(fault.hits, 2);
    assert.deepEqual(couch.log.map((entry) => entry.fault), [null, 'status 503', 'status 503', null]);
    couch.faults.add({ when: (entry) => entry.path === '/_up', action: faults.status(429, {}, { 'Retry-After': '7' }) });
    assert.equal((await ask('/_up')).headers.get('retry-after'), '7');
  });

  test('a reset before anything was done, and one after all was', async () => {
    const db = couch.db('resets');
    couch.faults.add({ when: { path: /resets/ }, action: faults.resetBefore() });
    await assert.rejects(ask('/resets/_bulk_docs', { json: { docs: [{ _id: 'a' }] } }));
    assert.equal(db.docs.size, 0);
    couch.faults.add({ when: { path: /resets/ }, action: faults.resetAfter() });
    await assert.rejects(ask('/resets/_bulk_docs', { json: { docs: [{ _id: 'a' }] } }));
    assert.equal(db.docs.size, 1);
    assert.deepEqual(couch.log.map((entry) => entry.status), [null, null]);
  });

  test('JSON cut short under a good status, or with its connection', async () => {
    const db = notes('cut');
    couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.truncate(60) });
    const cut = await ask('/cut/_bulk_get', { json: wanted(db) });
    assert.equal(cut.status, 200);
    assert.equal((await cut.text()).length, 60);
    couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.truncate(60, { reset: true }) });
    const broken = await ask('/cut/_bulk_get', { json: wanted(db) });
    await assert.rejects(broken.text());
  });

  test('a page of HTML where JSON was due', async () => {
    couch.faults.add({ when: { path: /_up/ }, action: faults.html(200) });
    couch.faults.add({ when: { path: /_up/ }, action: faults.html() });
    const first = await ask('/_up');
    assert.deepEqual([first.status, first.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
    assert.match(await first.text(), /^<!doctype html>/);
    assert.equal((await ask('/_up')).status, 502);
  });

  test('silence, until the client gives up', async () => {
    couch.faults.add({ when: { path: /_up/ }, action: faults.hang() });
    await assert.rejects(ask('/_up', { signal: AbortSignal.timeout(30) }), { name: 'TimeoutError' });
    assert.equal((await ask('/_up')).status, 200);
  });

  test('a delay of one request while others pass', async () => {
    couch.faults.add({ when: { path: /slow/ }, action: faults.delay(60) });
    const order = await Promise.all(['/_up?slow', '/_up'].map((path) => ask(path).then(() => performance.now())));
    assert.ok(order[1] < order[0]);
  });

  test('_bulk_get with too few results, or with one too many', async () => {
    const db = notes('results');
    const ids = async () => (await jsonOf('/results/_bulk_get', { json: wanted(db) })).results.map((/** @type {any} */ one) => one.id);
    couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.shortResults(2) });
    assert.deepEqual(await ids(), ['n0', 'n1']);
    couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.strangerInResults({ first: true }) });
    assert.deepEqual(await ids(), ['stranger', 'n0', 'n1', 'n2']);
    assert.deepEqual(await ids(), ['n0', 'n1', 'n2']);
  });

  test('_bulk_get that misses a document once', async () => {
    const db = notes('missing');
    couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.missingInResults(['n1']) });
    const answers = async () => (await jsonOf('/missing/_bulk_get', { json: wanted(db) })).results
      .map((/** @type {any} */ { docs: [{ ok, error }] }) => ok?._rev ?? `${error.rev} ${error.reason}`);
    const [before, after] = [await answers(), await answers()];
    assert.deepEqual(before, after.map((/** @type {string} */ rev, /** @type {number} */ i) => (i === 1 ? `${rev} missing` : rev)));
  });

  test('feed rows without changes', async () => {
    notes('rows');
    couch.faults.add({ when: { path: /_changes/ }, action: faults.rowsWithoutChanges((_row, index) => index === 1) });
    const { results } = await jsonOf('/rows/_changes');
    assert.deepEqual(results.map((/** @type {any} */ row) => 'changes' in row), [true, false, true]);
  });
});

describe('a server that is far, slow to connect, or short of patience', () => {
  test('latency holds back every answer, and can change while it runs', async () => {
    couch.latency = 40;
    await ask('/_up');
    const [entry] = couch.log;
    // Timers may fire a millisecond early.
    assert.ok((entry.end ?? 0) - entry.start >= 37);
    couch.latency = 0;
    await ask('/_up');
  });

  test('a new connection costs one round trip more', async () => {
    Object.assign(couch, { latency: 40, connectionLatency: true });
    await exchange(couch.url, { method: 'GET', path: '/_up' });
    const [first] = couch.log;
    assert.ok((first.end ?? 0) - first.start >= 75);
  });

  test('idle connections are closed', async () => {
    couch.idleTimeout = 20;
    await (await ask('/_up')).text();
    await new Promise((resolve) => { setTimeout(resolve, 60); });
    await (await ask('/_up')).text();
    const [first, second] = couch.log;
    assert.notEqual(first.connection, second.connection);
  });
});

describe('what a database can be made to do', () => {
  test('a replica that lags behind misses documents for r=1 only', async () => {
    const db = notes('lagging');
    db.lag(['n1'], { times: 1 });
    const errors = async (/** @type {string} */ query) => (await jsonOf(`/lagging/_bulk_get?revs=true${query}`, { json: wanted(db) }))
      .results.filter((/** @type {any} */ one) => one.docs[0].error?.reason === 'missing').map((/** @type {any} */ one) => one.id);
    assert.deepEqual(await errors(''), []);
    assert.deepEqual(await errors('&r=1'), ['n1']);
    assert.deepEqual(await errors('&r=1'), []);
  });

  test('compaction forgets what is no leaf, and latest leads on from there', async () => {
    const db = couch.db('compacted');
    const first = db.put({ _id: 'a', v: 1 });
    db.put({ _id: 'a', _rev: first.rev, v: 2 });
    const ask1 = (/** @type {string} */ query) => jsonOf(`/compacted/_bulk_get?${query}`, { json: { docs: [{ id: 'a', rev: first.rev }] } });
    assert.equal((await ask1('')).results[0].docs[0].ok.v, 1);
    db.compact();
    assert.equal((await ask1('')).results[0].docs[0].error.reason, 'missing');
    assert.equal((await ask1('latest=true')).results[0].docs[0].ok.v, 2);
  });

  test('a low revs limit cuts histories', () => {
    const db = couch.db('stemmed');
    db.setRevsLimit(3);
    let row = db.put({ _id: 'a' });
    for (let i = 0; i < 5; i += 1) row = db.put({ _id: 'a', _rev: row.rev, i });
    const [{ doc }] = db.leaves('a');
    assert.equal(doc._revisions.start, 6);
    assert.equal(doc._revisions.ids.length, 3);
  });

  test('it changes while a client reads it', async () => {
    const db = notes('busy');
    db.onRequest = (entry) => { if (/_bulk_get/.test(entry.path)) db.put({ ...db.get('n0'), changed: true }); };
    const { results: before } = await jsonOf('/busy/_changes');
    const asked = wanted(db);
    const { results } = await jsonOf('/busy/_bulk_get', { json: asked });
    assert.equal(results[0].docs[0].ok._rev, before[0].changes[0].rev);
    assert.notEqual(db.get('n0')._rev, before[0].changes[0].rev);
  });

  test('seq_interval leaves seqs out by what remains of the limit', async () => {
    notes('interval', 7);
    const places = async (/** @type {string} */ query) => (await jsonOf(`/interval/_changes?${query}`))
      .results.flatMap((/** @type {any} */ row, /** @type {number} */ i) => (row.seq === null ? [] : [i]));
    assert.deepEqual(await places('limit=7&seq_interval=3'), [1, 4]);
    assert.deepEqual(await places('limit=5&seq_interval=5'), [0]);
    assert.deepEqual(await places('limit=5&seq_interval=6'), []);
  });

  test('documents and requests can be too large', async () => {
    const small = await startCouch({ limits: { maxDocumentSize: 100, maxRequestSize: 1000 } });
    try {
      small.db('db');
      const status = async (/** @type {number} */ size) => (await fetch(`${small.url}/db/_bulk_docs`, {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ docs: [{ s: 'x'.repeat(size) }] }),
      })).json();
      assert.deepEqual((await status(10))[0].ok, true);
      assert.equal((await status(200)).error, 'document_too_large');
      assert.equal((await status(2000)).error, 'too_large');
    } finally {
      await small.stop();
    }
  });

  test('a multipart/related document is written with the attachments behind it', async () => {
    const db = couch.db('related');
    const json = JSON.stringify({ _attachments: { 'a.bin': { follows: true, content_type: 'image/png', length: 4 } } });
    const body = /** @type {any} */ (concat([
      Buffer.from(`--b\r\nContent-Type: application/json\r\n\r\n${json}\r\n--b\r\n\r\n`),
      Buffer.from([13, 10, 0, 255]), Buffer.from('\r\n--b--'),
    ]));
    const written = await ask('/related/x', { method: 'PUT', body, headers: { 'Content-Type': 'multipart/related; boundary="b"' } });
    assert.equal(written.status, 201);
    assert.equal(db.dump().x.leaves[0].attachments['a.bin'].bytes, Buffer.from([13, 10, 0, 255]).toString('base64'));
  });
});

describe('the log', () => {
  test('tells what was asked, how often, how much, and how much at once', async () => {
    couch.latency = 20;
    couch.db('logged');
    await Promise.all([
      ask('/logged/_bulk_docs', { json: { docs: [{ _id: 'ü' }] } }), ask('/logged/_changes?limit=2'), ask('/logged'),
      ask('/logged', { method: 'OPTIONS', headers: { Origin: 'http://a', 'Access-Control-Request-Method': 'GET' } }),
    ]);
    assert.equal(couch.count(), 3);
    assert.equal(couch.count(/^GET \/logged/), 2);
    assert.equal(couch.peak(), 3);
    const [write] = couch.matching(/_bulk_docs/);
    assert.deepEqual(write.bodyJSON, { docs: [{ _id: 'ü' }] });
    assert.equal(write.bytesIn, Buffer.byteLength(JSON.stringify(write.bodyJSON)));
    assert.ok(write.bytesOut > 60);
    assert.deepEqual(couch.matching(/_changes/)[0].query, { limit: '2' });
  });

  test('preflights are answered, counted apart, and only granted for what is allowed', async () => {
    const allowed = await ask('/_up', { method: 'OPTIONS', headers: {
      Origin: 'http://app', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type',
    } });
    assert.equal(allowed.status, 204);
    const refused = await ask('/_up', { method: 'OPTIONS', headers: {
      Origin: 'http://app', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-own',
    } });
    assert.equal(refused.status, 405);
    assert.equal(couch.count(), 0);
    assert.equal(couch.preflights, 2);
    const plain = await ask('/_up', { headers: { Origin: 'http://app' } });
    assert.equal(plain.headers.get('access-control-allow-origin'), 'http://app');
  });
});
