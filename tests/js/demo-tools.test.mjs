// What the demo and the benchmark rest on: counts that are right, a distance that is one, and a comparison that sees.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { describe, differences, leaves } from '../../demo/compare.mjs';
import { corpus } from '../../demo/corpus.mjs';
import { startDelay } from '../../demo/delay.mjs';
import { RequestCounter } from '../../demo/http-count.mjs';
import { lookAt, withoutPassword } from '../../demo/remote.mjs';
import { startServer } from '../../demo/server.mjs';
import { countWire } from '../../demo/wire.mjs';
import { plan } from '../../bench/options.mjs';

const require = createRequire(import.meta.url);
const PouchDB = require('pouchdb').plugin(require('pouchdb-adapter-memory'));

let names = 0;
const memory = () => new PouchDB(`demo-tools-${++names}`, { adapter: 'memory' });

/** @type {import('../../demo/server.mjs').RunningServer} */
let server;
/** @type {import('../../demo/delay.mjs').Distance} */
let delay;
before(async () => {
  server = await startServer({ user: 'me', password: 'p@ss/w%rd' });
  delay = await startDelay({ port: server.port });
});
after(async () => {
  await delay.stop();
  await server.stop();
});
const far = () => server.url.replace(String(server.port), String(delay.port));

test('requests are counted however the stream is cut, and bodies that look like requests are not', () => {
  const body = fc.constantFrom('', 'x', 'GET /trap HTTP/1.1\r\n\r\n', '0\r\n\r\n', 'é€😀');
  const request = fc.record({ method: fc.constantFrom('GET', 'POST', 'OPTIONS'), path: fc.constantFrom('/', '/db', '/db/_changes?since=0'), body, chunked: fc.boolean() });
  const asBytes = (/** @type {any} */ { method, path, body, chunked }) => {
    const length = Buffer.byteLength(body);
    const chunks = length ? `${length.toString(16)};extension\r\n${body}\r\n0\r\nTrailer: x\r\n\r\n` : '0\r\n\r\n';
    return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: x\r\n${chunked ? `Transfer-Encoding: chunked\r\n\r\n${chunks}` : `Content-Length: ${length}\r\n\r\n${body}`}`);
  };
  fc.assert(fc.property(fc.array(request, { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (requests, cuts) => {
    /** @type {string[]} */
    const seen = [];
    const parse = RequestCounter.parser((method, path) => seen.push(`${method} ${path}`));
    const stream = Buffer.concat(/** @type {any[]} */ (requests.map(asBytes)));
    for (let at = 0, n = 0; at < stream.length; at += cuts[n++ % cuts.length]) parse(stream.subarray(at, at + cuts[n % cuts.length]));
    assert.deepEqual(seen, requests.map(({ method, path }) => `${method} ${path}`));
  }));
});

test('the proxy and the process count the same', async () => {
  const counted = countWire();
  delay.reset();
  await PouchDB.replicate(`${far()}counting`, memory());
  const { requests, bytes } = counted();
  const counters = await delay.counters();
  assert.equal(counters.requests, requests);
  assert.equal(counters.bytesUp + counters.bytesDown, bytes);
});

test('the distance can be changed, and is never shorter than asked', async () => {
  const ask = async () => {
    const start = performance.now();
    await (await fetch(`http://127.0.0.1:${delay.port}/_up`)).text();
    return performance.now() - start;
  };
  delay.setRtt(60);
  assert.ok(await ask() > 58);
  delay.setRtt(0);
});

test('the corpus is the same each time, and the server keeps it as it is', async () => {
  const { leaves: docs, conflicts, deleted, attachments } = await corpus({ notes: 300 });
  assert.deepEqual(await corpus({ notes: 300 }).then((again) => again.leaves), docs);
  assert.ok(conflicts && deleted && attachments);
  const [written, remote] = [memory(), new PouchDB(`${server.url}corpus`)];
  for (const db of [written, remote]) await db.bulkDocs(docs, { new_edits: false });
  assert.deepEqual(differences(await describe(written), await describe(remote)), []);
  const replicated = memory();
  await replicated.replicate.from(remote);
  assert.deepEqual(differences(await describe(written), await describe(replicated)), []);
  assert.deepEqual(await leaves(written), await leaves(replicated));
});

test('every kind of difference is seen', async () => {
  const doc = (/** @type {string} */ id, /** @type {number} */ generation, /** @type {object} */ rest = {}) => {
    const ids = Array.from({ length: generation }, (_, i) => `${generation - i}`.padStart(32, 'a'));
    return { _id: id, _rev: `${generation}-${ids[0]}`, _revisions: { start: generation, ids }, ...rest };
  };
  const file = (/** @type {string} */ data) => ({ _attachments: { f: { content_type: 'text/plain', data } } });
  const [expected, found] = [memory(), memory()];
  await expected.bulkDocs([doc('constructor', 1), doc('body', 1, { x: 1 }), doc('leaves', 2), doc('file', 1, file('YQ==')), doc('same', 3, file('YQ=='))], { new_edits: false });
  await found.bulkDocs([doc('extra', 1), doc('body', 1, { x: 2 }), doc('leaves', 3), doc('file', 1, file('Yg==')), doc('same', 3, file('YQ=='))], { new_edits: false });
  const sent = JSON.parse(JSON.stringify(await describe(found))); // as from another process: with a prototype
  const kinds = differences(await describe(expected), sent).map(({ id, kind }) => `${id} ${kind}`);
  assert.deepEqual(kinds.sort(), ['body body', 'constructor missing', 'extra extra', 'file attachments', 'leaves leaves', 'leaves winner']);
});

test('the embedded server answers for a revision that it does not have', async () => {
  const db = new PouchDB(`${server.url}missing`);
  const { rev } = await db.put({ _id: 'a' });
  const docs = [{ id: 'a', rev: '7-unknown' }, { id: 'b', rev: '1-x' }, { id: 'a', rev }];
  for (const latest of [true, false]) {
    const { results } = await db.bulkGet({ docs, revs: true, latest });
    assert.deepEqual(results.map((/** @type {any} */ { docs: [one] }) => one.ok?._rev ?? one.error.error ?? one.error.name), ['not_found', 'not_found', rev]);
  }
});

test('a mistyped database is told in words, is not created, and its password is not shown', async () => {
  const { origin, url } = server;
  /** @type {[string, RegExp][]} */
  const cases = [
    ['notes', /no URL/], ['ftp://h/x', /http or https/], [origin, /name of a database/], [`${origin}/x`, /asks who you are/],
    [url.replace('me:', 'you:') + 'x', /does not let this user in/], [`${url}nowhere`, /is not there.*Nothing was created/],
    ['http://me:secret@127.0.0.1:9/x', /cannot be reached/],
  ];
  for (const [given, expected] of cases) {
    await assert.rejects(lookAt(given), (/** @type {Error} */ error) => {
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /p@ss|p%40ss|secret/);
      return true;
    });
  }
  await assert.rejects(lookAt(`${url}nowhere`), /404/);
  assert.equal(withoutPassword('p@ss/w%rd and p%40ss%2Fw%25rd', `${url}x`), '… and …');
});

test('the benchmark refuses what it does not know', () => {
  assert.throws(() => plan(['--dir', 'sideways']), /"sideways" is none of pull/);
  assert.throws(() => plan(['--rtt', '1.5']), /no whole number/);
  assert.throws(() => plan(['--quickly']), /quickly/);
  assert.deepEqual(plan(['--dir', 'pull,push', '--rtt', '0,45', '--docs', '10'])?.rows.map(({ dir, rtt, docs }) => [dir, rtt, docs]),
    [['pull', 0, 10], ['pull', 45, 10], ['push', 0, 10], ['push', 45, 10]]);
});
