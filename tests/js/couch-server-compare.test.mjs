// Runs the same random requests against the scripted server and a real CouchDB (COUCH_URL, with
// credentials; skipped without) and compares every answer. The recordings hold what was thought
// of; this looks for what was not: odd trees, stemmed histories, stubs, tombstones, recreations.
// SEED and ROUNDS repeat or widen a run.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange } from './support/couch/exchange.mjs';
import { startCouch } from './support/couch/index.mjs';

const REAL = process.env.COUCH_URL;
const SEED = Number(process.env.SEED ?? Date.now() % 100_000);
const ROUNDS = Number(process.env.ROUNDS ?? 12);
// CouchDB treats a replicated revision that it knows by name only in one way where there are
// validation functions, in another where it knows that there are none, and learns which some time
// after a design document changed. So there is one from the start, or there never is.
const PLAIN = ['a', 'b', 'c', 'ü/+'];
const DESIGNED = ['a', 'b', '_design/d', 'ü/+'];
const VALIDATION = { validate_doc_update: 'function (doc) { if (doc.v === 7) throw({forbidden: "seven"}); }' };
const STEPS = 14;

/** @param {number} seed mulberry32 */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {number} seed */
function generator(seed) {
  const next = random(seed);
  const below = (/** @type {number} */ n) => Math.floor(next() * n);
  const pick = (/** @type {any[]} */ list) => list[below(list.length)];
  const chance = (/** @type {number} */ p) => next() < p;
  // A small world: each generation has three revisions, each with one fixed parent, so that
  // paths meet, extend and stem each other.
  const hash = (/** @type {number} */ pos, /** @type {number} */ which) =>
    `${pos.toString(16)}${'abc'[which]}`.padStart(32, '0');
  const parentOf = (/** @type {number} */ pos, /** @type {number} */ which) => (pos * 7 + which * (pos % 3)) % 3;
  const path = () => {
    const start = 1 + below(7);
    const ids = [];
    let which = below(3);
    for (let pos = start, left = 1 + below(start); left > 0; pos -= 1, left -= 1) {
      ids.push(hash(pos, which));
      which = parentOf(pos, which);
    }
    return { start, ids };
  };
  const rev = () => { const pos = 1 + below(7); return `${pos}-${hash(pos, below(3))}`; };
  const atts = () => Object.fromEntries(['x.txt', 'y.bin'].filter(() => chance(0.5)).map((name) => [name, {
    content_type: name === 'x.txt' ? 'text/plain' : 'image/png',
    data: Buffer.from(`${name} ${below(3)}`).toString('base64'),
    ...(chance(0.5) ? { revpos: 1 + below(4) } : {}),
  }]));
  // What a revision holds goes with its id: never two bodies for one revision.
  const replicated = (/** @type {string} */ id) => {
    const revisions = path();
    const kind = parseInt(revisions.ids[0], 16) % 11;
    const text = { content_type: 'text/plain', data: Buffer.from(`text ${kind}`).toString('base64') };
    const image = { content_type: 'image/png', data: Buffer.from(`image ${kind}`).toString('base64'), revpos: revisions.start };
    return {
      _id: id, _rev: `${revisions.start}-${revisions.ids[0]}`, _revisions: revisions, v: kind,
      ...(kind % 4 === 0 ? { _deleted: true } : {}),
      ...(kind % 3 === 0 ? { _attachments: { 'x.txt': text, 'y.bin': image } } : {}),
    };
  };
  return { below, pick, chance, path, rev, replicated, atts };
}

/**
 * @param {string} base
 * @param {any} request
 */
async function ask(base, { method = 'GET', path, body, headers = {} }) {
  const url = new URL(base);
  const authorization = url.username ? `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}` : null;
  const answer = await exchange(url.origin, {
    method, path,
    headers: {
      accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}),
      ...(authorization ? { authorization } : {}), ...headers,
    },
    body: body && JSON.stringify(body),
  });
  return { status: answer.status, type: answer.headers['content-type'] ?? '', text: answer.body.toString() };
}

/** @param {string} path @param {{ status: number, type: string, text: string }} answer */
function comparable(path, { status, type, text }) {
  if (status === 301) return { status };
  if (!type.startsWith('application/json')) {
    const boundary = /boundary="?([^"]*)/.exec(type)?.[1] ?? '';
    const plain = text.replaceAll(boundary, 'OUTER').replace(/(boundary=--|----)[0-9a-f]{32}/g, '$1INNER');
    return { status, type: type.replace(boundary, 'OUTER'), text: plain };
  }
  const json = JSON.parse(text);
  if (!path.includes('/_changes')) return { status, type, json };
  const rows = json.results?.map(({ seq: _seq, ...row }) => row)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => (a.id < b.id ? -1 : 1));
  // The number in a seq counts updates, also such as left everything as it was: not compared.
  return { status, type, rows, pending: json.pending };
}

/**
 * An edit, sometimes in conflict. Without a `_rev` it has no attachments: a deleted document that
 * comes back with some gets a revision id from CouchDB that is nowhere described.
 * @param {ReturnType<typeof generator>} gen
 * @param {string} id
 * @param {string | undefined} leaf
 */
function edit(gen, id, leaf) {
  const rev = gen.chance(0.7) ? leaf : undefined;
  return {
    _id: id, n: gen.below(100), f: 0.5, list: [1, 2, 300, 'é', null, { deep: true }],
    ...(rev ? { _rev: rev } : {}),
    ...(gen.chance(0.3) ? { _deleted: true } : {}),
    ...(rev && gen.chance(0.4) ? { _attachments: gen.atts() } : {}),
  };
}

/** @param {string} db @param {string} id */
const urlOf = (db, id) => `/${db}/${encodeURIComponent(id).replace('_design%2F', '_design/')}`;

/**
 * @param {ReturnType<typeof generator>} gen
 * @param {string} db
 * @param {Map<string, string>} known a leaf of each document
 * @param {string[]} ids
 * @param {boolean} isStemming a low `_revs_limit`: what CouchDB keeps of stemmed branches that a
 *   replicated path joins depends on the order of its repairs, so only edits are made then
 */
function step(gen, db, known, ids, isStemming) {
  const id = gen.pick(ids);
  const url = urlOf(db, id);
  const kinds = [
    () => ({ method: 'POST', path: `/${db}/_bulk_docs`, body: { new_edits: false, docs: [gen.replicated(id)] } }),
    () => ({ method: 'POST', path: `/${db}/_bulk_docs`, body: { new_edits: false, docs: ids.flatMap((each) => (gen.chance(0.5) ? [gen.replicated(each), gen.replicated(each)] : [])) } }),
    () => ({ method: 'POST', path: `/${db}/_bulk_docs`, body: { docs: [edit(gen, id, known.get(id))] } }),
    () => ({ method: 'PUT', path: url + (gen.chance(0.5) && known.has(id) ? `?rev=${known.get(id)}` : ''), body: { edited: gen.below(9) } }),
    () => ({ method: 'PUT', path: `${url}?new_edits=false`, body: gen.replicated(id) }),
    () => ({ method: 'DELETE', path: url + (known.has(id) ? `?rev=${known.get(id)}` : '') }),
    () => ({ method: 'GET', path: `${url}?conflicts=true&deleted_conflicts=true&revs=true` }),
    () => ({ method: 'GET', path: `${url}?rev=${gen.rev()}&revs=true` }),
    () => ({ method: 'GET', path: `${url}?open_revs=${encodeURIComponent(JSON.stringify([gen.rev()]))}&revs=true${gen.pick(['', '&latest=true'])}` }),
    () => ({ method: 'POST', path: `/${db}/_revs_diff`, body: Object.fromEntries(ids.map((each) => [each, [gen.rev(), gen.rev()]])) }),
    () => ({ method: 'POST', path: `/${db}/_bulk_get?revs=true${gen.pick(['', '&latest=true', '&attachments=true'])}`, body: { docs: ids.map((each) => ({ id: each, ...(gen.chance(0.7) ? { rev: gen.rev() } : {}), ...(gen.chance(0.3) ? { atts_since: [gen.rev()] } : {}) })) }, headers: gen.chance(0.4) ? { accept: 'multipart/mixed' } : {} }),
    () => ({ method: 'GET', path: `/${db}/_changes?style=${gen.pick(['all_docs', 'main_only'])}&include_docs=${gen.chance(0.5)}&conflicts=true` }),
    () => ({ method: 'GET', path: `${url}/x.txt` }),
  ];
  const replications = [kinds[0], kinds[1], kinds[4]];
  if (isStemming) return gen.pick(kinds.filter((kind) => !replications.includes(kind)))();
  return gen.pick([...kinds, kinds[0], kinds[0], kinds[1]])();
}

test('the same requests get the same answers from a real CouchDB', { skip: !REAL, timeout: 120_000 }, async () => {
  const couch = await startCouch({ users: { admin: 'secret' } });
  try {
    for (let round = 0; round < ROUNDS; round += 1) await compareRound(couch, SEED + round);
  } finally {
    await couch.stop();
  }
});

/** @param {import('./support/couch/index.mjs').Couch} couch @param {number} seed */
async function compareRound(couch, seed) {
  const gen = generator(seed);
  const db = `compare-${seed}-${Date.now()}`;
  const bases = [`${REAL}`, `http://admin:secret@127.0.0.1:${couch.port}`];
  const both = async (/** @type {any} */ request) => Promise.all(bases.map((base) => ask(base, request)));
  await both({ method: 'PUT', path: `/${db}` });
  try {
    await compareSteps(couch, seed, db, gen, both);
  } finally {
    await both({ method: 'DELETE', path: `/${db}` });
  }
}

/**
 * @param {import('./support/couch/index.mjs').Couch} couch
 * @param {number} seed
 * @param {string} db
 * @param {ReturnType<typeof generator>} gen
 * @param {(request: any) => Promise<any[]>} both
 */
async function compareSteps(couch, seed, db, gen, both) {
  const isStemming = gen.chance(0.3);
  if (isStemming) await both({ method: 'PUT', path: `/${db}/_revs_limit`, body: 2 + gen.below(4) });
  const ids = gen.chance(0.5) ? PLAIN : DESIGNED;
  if (ids === DESIGNED) await both({ method: 'PUT', path: `/${db}/_design/v`, body: VALIDATION });
  /** @type {Map<string, string>} */
  const known = new Map();
  /** @type {any[]} */
  const history = [];
  /** @param {any} request */
  const check = async (request) => {
    history.push(request);
    const [real, ours] = await both(request);
    const context = `seed ${seed}, after\n${history.map((each) => JSON.stringify(each)).join('\n')}`;
    assert.deepEqual(comparable(request.path, ours), comparable(request.path, real), context);
  };
  for (let i = 0; i < STEPS; i += 1) {
    await check(step(gen, db, known, ids, isStemming));
    for (const id of ids) {
      const leaves = couch.db(db).leaves(id);
      if (leaves.length > 0) known.set(id, gen.pick(leaves).rev);
    }
  }
  for (const id of ids) await check({ path: `${urlOf(db, id)}?open_revs=all&revs=true` });
  await check({ path: `/${db}/_changes?style=all_docs&include_docs=true` });
}
