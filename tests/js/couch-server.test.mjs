// Holds the scripted server to recordings of a real CouchDB 3.5.2: every exchange is replayed in
// order, and status, body and the headers that clients read must be the same. What differs from
// run to run on the real one too (seqs, uuids, dates, sizes, boundaries) is put aside first.
// Then stock PouchDB replicates with it, as it does with the real one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { exchange } from './support/couch/exchange.mjs';
import { startCouch } from './support/couch/index.mjs';

// The packages of PouchDB's memory adapter are CommonJS only.
const require = createRequire(import.meta.url);
/** @type {typeof import('pouchdb')} */
const PouchDB = require('pouchdb');
PouchDB.plugin(require('pouchdb-adapter-memory'));

const recorded = JSON.parse(readFileSync(new URL('../fixtures/couchdb-3.5.2.json', import.meta.url), 'utf8'));

// Limits that the real server had been given for two of the exchanges.
const LIMITS = { 'document-too-large': { maxDocumentSize: 150 }, 'request-too-large': { maxRequestSize: 1000 } };
// Which shard the real server drew rows from, where the rows that it showed do not tell.
const DRAWN = { 'changes-selector': [0, 0, 0, 0, 1, 1, 1, 1] };

/** Opaque seqs lose what is behind the number. @param {string} text */
const withoutSeqs = (text) => text.replace(/"(\d+)-g1AAA[^"]*"/g, '"$1-"');

/** @param {string} text */
function withoutVolatile(text) {
  return withoutSeqs(text)
    .replace(/"instance_start_time":"\d+"/, '"instance_start_time":""')
    .replace(/"sizes":\{[^}]*\}/, '"sizes":{}');
}

/** Boundaries become their ordinal. @param {string} text latin1 */
function withoutBoundaries(text) {
  /** @type {string[]} */
  const seen = [];
  return text.replace(/[0-9a-f]{32}(?=[\r"-]|$)/g, (boundary, at) => {
    if (text.slice(at - 2, at) !== '--' && !/boundary="?-*$/.test(text.slice(0, at))) return boundary;
    if (!seen.includes(boundary)) seen.push(boundary);
    return `boundary${seen.indexOf(boundary)}`;
  });
}

/** @param {string} name @param {Buffer} body @param {string} type */
function normalBody(name, body, type) {
  if (type.startsWith('multipart/')) return withoutBoundaries(body.toString('latin1'));
  if (!type.startsWith('application/json')) return body.toString('base64');
  const text = withoutVolatile(body.toString());
  // The real one walks a hash table here; everywhere else the order of members is part of the answer.
  return name === 'revs-diff' ? JSON.parse(text) : text;
}

const CORS = ['access-control-allow-origin', 'access-control-allow-credentials', 'access-control-allow-methods',
  'access-control-allow-headers', 'access-control-max-age'];
const COMPARED = ['content-encoding', 'content-length', 'allow', 'cache-control', 'connection', 'accept-ranges',
  'content-security-policy', 'transfer-encoding', ...CORS];

/** @param {Record<string, any>} headers @param {string} name */
function normalHeaders(headers, name) {
  const kept = Object.fromEntries(COMPARED.filter((key) => headers[key] !== undefined).map((key) => [key, headers[key]]));
  // The length of an answer that holds a seq is as long as the seq.
  if (/^database-info|session-cookie-read|^welcome/.test(name)) delete kept['content-length'];
  const etag = headers.etag;
  return {
    ...kept,
    type: withoutBoundaries(headers['content-type'] ?? ''),
    location: headers.location?.replace(/^http:\/\/[^/]+/, ''),
    // An attachment's etag is its digest; a feed's or a local document's is the server's own affair.
    etag: etag && (/==?"$/.test(etag) ? etag : 'opaque'),
    cookie: headers['set-cookie']?.[0].replace(/=[^;]+/, '=').replace(/Expires=[^;]+/, 'Expires='),
  };
}

describe('the recordings of CouchDB 3.5.2', () => {
  /** @type {import('./support/couch/index.mjs').Couch} */
  let couch;
  let cookie = '';
  before(async () => {
    couch = await startCouch({ users: { admin: 'secret' }, uuid: '1'.repeat(32) });
  });
  after(() => couch.stop());

  // Seqs of the recording, and what stands for them here: replies to earlier requests.
  const seqs = new Map();

  for (const [index, { name, request, response }] of recorded.entries()) {
    test(`${index} ${name}`, async () => {
      const db = couch.databases.get('rec');
      const body = response.bodyBase64 ? Buffer.from(response.bodyBase64, 'base64') : Buffer.from(response.body);
      if (db) {
        const shown = [...body.toString().matchAll(/"seq":[^,]*,"id":"([^"]*)"/g)].map(([, id]) => db.shardOf(id));
        db.feedOrder = DRAWN[/** @type {keyof typeof DRAWN} */ (name)] ?? shown;
      }
      const limits = { ...couch.limits };
      Object.assign(couch.limits, LIMITS[/** @type {keyof typeof LIMITS} */ (name)]);
      const path = request.path.replace(/(since=)(\d+-g1AAA[^&]*)/, (/** @type {any} */ _all, /** @type {string} */ key,
        /** @type {string} */ seq) => key + encodeURIComponent(seqs.get(seq) ?? assert.fail(`unknown seq ${seq}`)));
      const headers = { ...request.headers, ...(request.headers.cookie ? { cookie } : {}) };
      const answer = await exchange(couch.url, { ...request, path, headers });
      Object.assign(couch.limits, limits);
      cookie = answer.headers['set-cookie']?.[0].split(';')[0] ?? cookie;
      learnSeqs(response.body, answer.body.toString());

      const type = response.headers['content-type'] ?? '';
      assert.equal(answer.status, response.status, answer.body.toString());
      assert.deepEqual(normalBody(name, answer.body, type), normalBody(name, body, type));
      assert.deepEqual(normalHeaders(answer.headers, name), normalHeaders(response.headers, name));
    });
  }

  /** @param {string | undefined} theirs @param {string} ours */
  function learnSeqs(theirs, ours) {
    const find = (/** @type {string} */ text) => [...text.matchAll(/"seq":"([^"]*)","id":"([^"]*)"/g)];
    const here = new Map(find(ours).map(([, seq, id]) => [id, seq]));
    for (const [, seq, id] of find(theirs ?? '')) if (here.has(id) && !seqs.has(seq)) seqs.set(seq, here.get(id));
    const last = (/** @type {string} */ text) => /"last_seq":"([^"]*)"/.exec(text)?.[1];
    if (theirs && last(theirs) && last(ours)) seqs.set(last(theirs), last(ours));
  }
});

describe('stock PouchDB', () => {
  /** @type {import('./support/couch/index.mjs').Couch} */
  let couch;
  before(async () => { couch = await startCouch({ users: { admin: 'secret', reader: { password: 'read', roles: ['r'] } } }); });
  after(() => couch.stop());

  let count = 0;
  const local = () => new PouchDB(`couch-server-${process.pid}-${count += 1}`, { adapter: 'memory' });
  const url = (/** @type {string} */ name) => couch.dbUrl(name, { user: 'admin' });

  const rev = (/** @type {number} */ pos, /** @type {string} */ letter) => `${pos}-${letter.repeat(32)}`;
  const doc = (/** @type {string} */ id, /** @type {string} */ revs, /** @type {object} */ body = {}) =>
    ({ _id: id, _rev: rev(revs.length, revs[0]), _revisions: { start: revs.length, ids: [...revs].map((one) => one.repeat(32)) }, ...body });

  /** @param {import('./support/couch/database.mjs').Database} db */
  function fill(db) {
    db.bulkDocs(Array.from({ length: 250 }, (_, i) => ({ _id: `note-${i}`, n: i })));
    db.bulkDocs([
      doc('conflicted', 'ba', { leaf: 'b' }), doc('conflicted', 'ca', { leaf: 'c' }), doc('conflicted', 'dca', { leaf: 'd' }),
      doc('gone', 'ba', { _deleted: true, why: 'kept' }), doc('loser-gone', 'ba'), doc('loser-gone', 'ca', { _deleted: true }),
      doc('ü/+ %41', 'a'), doc('_design/d', 'a', { language: 'javascript' }),
      doc('attached', 'ba', { _attachments: {
        'note.txt': { content_type: 'text/plain', data: Buffer.from('text '.repeat(500)).toString('base64') },
        'dir/ü.bin': { content_type: 'application/octet-stream', data: Buffer.from([0, 1, 255, 13, 10]).toString('base64') },
        empty: { content_type: 'application/json', data: '' },
      } }),
    ], { new_edits: false });
    db.put({ _id: 'edited', v: 1 });
    for (let v = 2; v < 6; v += 1) db.put({ ...db.get('edited'), v });
  }

  test('pulls and pushes a database on without a difference', async () => {
    const source = couch.db('source');
    fill(source);
    const target = couch.db('target');
    const middle = local();
    const pulled = await middle.replicate.from(url('source'));
    assert.equal(pulled.doc_write_failures, 0);
    assert.equal((await middle.get('conflicted', { conflicts: true }))._conflicts?.length, 1);
    const pushed = await middle.replicate.to(url('target'));
    assert.equal(pushed.doc_write_failures, 0);
    assert.deepEqual(target.dump(), source.dump());
    // The checkpoints are there: a second run reads no documents.
    couch.clearLog();
    assert.equal((await middle.replicate.from(url('source'))).docs_read, 0);
    assert.equal(couch.count(/_bulk_get|open_revs/), 0);
  });

  test('syncs live in both directions, and edits made while it runs arrive', async () => {
    const db = couch.db('live');
    fill(db);
    const here = local();
    await here.put({ _id: 'from-here' });
    const sync = here.sync(url('live'), { live: true, heartbeat: 1000 });
    const arrived = (/** @type {() => unknown} */ found) => new Promise((resolve, reject) => {
      const look = () => Promise.resolve(found()).then((yes) => (yes ? resolve(yes) : setTimeout(look, 20)), () => setTimeout(look, 20));
      sync.once('error', reject);
      look();
    });
    await arrived(() => db.get('from-here'));
    await arrived(() => here.get('edited'));
    db.put({ _id: 'later', from: 'there' });
    await here.put({ _id: 'later-too', from: 'here' });
    await arrived(() => here.get('later'));
    await arrived(() => db.get('later-too'));
    db.put({ ...db.get('later'), _deleted: true });
    await arrived(() => here.get('later').then(() => false, (/** @type {any} */ error) => error.reason === 'deleted'));
    const ended = new Promise((resolve) => { sync.on('complete', resolve); });
    sync.cancel();
    await ended;
  });

  test('is told which documents are refused, and by whom', async () => {
    const db = couch.db('guarded');
    db.put({ _id: '_design/v', validate_doc_update:
      'function (doc, old, user) { if (doc.bad) throw {forbidden: "no " + user.name}; if (doc.secret) throw {unauthorized: "log in"}; }' });
    const here = local();
    await here.bulkDocs([{ _id: 'fine' }, { _id: 'bad', bad: true }, { _id: 'secret', secret: true }]);
    /** @type {string[]} */
    const denied = [];
    const done = await here.replicate.to(url('guarded')).on('denied', (error) => denied.push(/** @type {any} */ (error).reason));
    assert.deepEqual(denied.sort(), ['log in', 'no admin']);
    assert.equal(done.docs_written, 1);
    assert.deepEqual(Object.keys(db.dump()), ['_design/v', 'fine']);
  });

  test('reads as a member, may not write where only reading is allowed', async () => {
    const db = couch.db('shared');
    db.put({ _id: 'note' });
    const asReader = couch.dbUrl('shared', { user: 'reader' });
    await assert.rejects(new PouchDB(asReader).get('note'), { status: 403 });
    db.setSecurity({ members: { roles: ['r'] } });
    db.readOnly = true;
    assert.equal((await new PouchDB(asReader).get('note'))._id, 'note');
    await assert.rejects(new PouchDB(asReader).put({ _id: '_local/x' }), { status: 403 });
    const here = local();
    assert.equal((await here.replicate.from(asReader)).docs_written, 1);
  });

  test('filters on the server', async () => {
    const db = couch.db('filtered');
    db.bulkDocs(Array.from({ length: 10 }, (_, i) => ({ _id: `n${i}`, n: i, kind: i % 2 ? 'odd' : 'even' })));
    db.put({
      _id: '_design/f',
      filters: { least: 'function (doc, req) { return doc.n >= Number(req.query.n); }' },
      views: { odd: { map: 'function (doc) { if (doc.kind === "odd") emit(doc._id); }' } },
    });
    const ids = async (/** @type {any} */ options) => {
      const here = local();
      await here.replicate.from(url('filtered'), options);
      return (await here.allDocs()).rows.map(({ id }) => id).join(' ');
    };
    assert.equal(await ids({ doc_ids: ['n1', 'n7', 'none'] }), 'n1 n7');
    assert.equal(await ids({ selector: { n: { $gt: 1, $lte: 4 }, kind: { $in: ['odd'] } } }), 'n3');
    assert.equal(await ids({ filter: 'f/least', query_params: { n: '8' } }), 'n8 n9');
    assert.equal(await ids({ filter: '_view', view: 'f/odd' }), 'n1 n3 n5 n7 n9');
  });
});
