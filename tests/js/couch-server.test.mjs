// Holds the scripted server to recordings of a real CouchDB 3.5.2: every exchange is replayed in
// order, and status, body and the headers that clients read must be the same. What differs from
// run to run on the real one too (seqs, uuids, dates, sizes, boundaries) is put aside first.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { exchange } from './support/couch/exchange.mjs';
import { startCouch } from './support/couch/index.mjs';

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
  return text.replace(/[0-9a-f]{32}(?=[\r"\-]|$)/g, (boundary, at) => {
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
        db.feedOrder = DRAWN[/** @type {keyof DRAWN} */ (name)] ?? shown;
      }
      const limits = { ...couch.limits };
      Object.assign(couch.limits, LIMITS[/** @type {keyof LIMITS} */ (name)]);
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
