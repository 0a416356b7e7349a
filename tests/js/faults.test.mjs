// A server or a network that fails: once, and the sync gets through by itself; for good, and it
// ends with an error that says what and where, nothing lost, and can be gone on with.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { checkpointLags, hurt } from './support/hurt.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast } = pouchesOnce(9);
const shapes = { timeout: 60_000, concurrency: 6 };

const FEED = /_changes/;
const DOCS = /_bulk_get/;

/** @type {[name: string, path: RegExp, action: any, times?: number][]} */
const passing = [
  ['a proxy\'s page with status 502', FEED, faults.html(502)],
  ['a proxy\'s page with status 502', DOCS, faults.html(502)],
  ['a proxy\'s page with status 200', DOCS, faults.html(200)],
  ['JSON that is cut', DOCS, faults.truncate(700)],
  ['a connection that ends in the middle', FEED, faults.truncate(700, { reset: true })],
  ['a connection that ends in the middle', DOCS, faults.truncate(700, { reset: true })],
  ['a connection reset before the answer', FEED, faults.resetBefore()],
  ['a connection reset before the answer', DOCS, faults.resetBefore(), 2],
  ['a connection reset after the work', DOCS, faults.resetAfter()],
  ['429', FEED, faults.status(429, { error: 'too_many_requests', reason: 'slow down' }, { 'Retry-After': '1' })],
  ['429', DOCS, faults.status(429, { error: 'too_many_requests', reason: 'slow down' }, { 'Retry-After': '1' })],
  ['429 without advice', DOCS, faults.status(429), 2],
  ['503', FEED, faults.status(503)],
  ['503', DOCS, faults.status(503), 2],
  ['500', DOCS, faults.status(500)],
  ['413', DOCS, faults.status(413, { error: 'too_large', reason: 'the request entity is too large' })],
  ['408', DOCS, faults.status(408)],
  ['fewer results than asked', DOCS, faults.shortResults(3)],
];

test('failures that pass', shapes, async (t) => {
  await Promise.all(passing.map(([name, path, action, times = 1]) => t.test(`${name}, at ${path.source}`, async (t) => {
    /** @type {any} */
    let fault;
    const seen = await hurt(t, fast, {
      options: { batch_size: 20 },
      prepare({ couch }) { fault = couch.faults.add({ when: { path }, times, action }); },
    });
    assert.equal(fault.hits, times, 'it did fail');
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 60);
    checkpointLags(seen);
    // A feed that fails is stock's to ask again.
    if (path === DOCS) assert.ok(seen.stats.retries >= 1, 'and says so');
  })));
});

/** @type {[name: string, path: RegExp, action: any, code: string | null, inReason: RegExp][]} */
const lasting = [
  ['a proxy\'s page with status 502', DOCS, faults.html(502), 'fast_sync_status', /502/],
  ['a proxy\'s page with status 200', FEED, faults.html(200), 'fast_sync_bad_json', /status 200/],
  ['a proxy\'s page with status 200', DOCS, faults.html(200), 'fast_sync_bad_json', /status 200/],
  ['JSON that is cut', FEED, faults.truncate(700), 'fast_sync_bad_json', /200/],
  ['JSON that is cut', DOCS, faults.truncate(50), 'fast_sync_bad_json', /200/],
  ['a connection reset', DOCS, faults.resetBefore(), 'fast_sync_network', /./],
  // Without advice it would be tried for two minutes.
  ['429', DOCS, faults.status(429, undefined, { 'Retry-After': '1' }), 'fast_sync_status', /429/],
  ['503', DOCS, faults.status(503, { error: 'unavailable', reason: 'maintenance' }, { 'Retry-After': '1' }), 'fast_sync_status', /503.*maintenance/],
  ['413', DOCS, faults.status(413), 'fast_sync_status', /413/],
  ['fewer results than asked', DOCS, faults.shortResults(0), 'fast_sync_bad_shape', /results/],
  ['no results at all', DOCS, faults.mapJson(() => ({ ok: true })), 'fast_sync_bad_shape', /results/],
  ['rows without changes', FEED, faults.rowsWithoutChanges(), 'fast_sync_bad_shape', /changes/],
  ['no rows at all', FEED, faults.mapJson(() => ({ ok: true })), 'fast_sync_bad_shape', /results/],
  ['JSON that is null', FEED, faults.mapJson(() => null), 'fast_sync_bad_shape', /./],
  ['a list where an object was due', DOCS, faults.mapJson(() => []), 'fast_sync_bad_shape', /./],
  ['other documents than asked for', DOCS, faults.mapJson((json) => ({ results: json.results.map((/** @type {any} */ result) => ({ ...result, id: `not-${result.id}` })) })), 'fast_sync_bad_shape', /./],
  ['documents without history', DOCS, faults.mapJson((json) => ({ results: json.results.map((/** @type {any} */ { id, docs }) => ({ id, docs: docs.map((/** @type {any} */ { ok }) => ({ ok: { ...ok, _rev: `2-${ok._rev.slice(2)}`, _revisions: undefined } })) })) })), 'fast_sync_bad_shape', /./],
];

test('failures that last', shapes, async (t) => {
  await Promise.all(lasting.map(([name, path, action, code, reason]) => t.test(`${name}, at ${path.source}`, async (t) => {
    // One request brings at most 500 documents: the second and all others fail.
    const isPartial = name === '503';
    const seen = await hurt(t, fast, {
      docs: isPartial ? 600 : 60,
      options: { batch_size: isPartial ? 100 : 20 },
      prepare({ couch }) { couch.faults.add({ when: { path }, after: isPartial ? 1 : 0, times: Infinity, action }); },
    });
    assert.ok(seen.error, 'it ends with an error');
    assert.equal(seen.events.at(-1), 'error');
    assert.equal(seen.error.code, code, String(seen.error.message));
    assert.match(seen.error.message, reason);
    assert.match(seen.error.url, /^http:\/\/127\.0\.0\.1:\d+\/db/);
    assert.ok(seen.error.message.includes(seen.error.url));
    assert.ok(seen.requests < 200, `${seen.requests} requests`);
    checkpointLags(seen);
  })));
});

test('failures that pass with the replication\'s own retry', shapes, async (t) => {
  for (const [name, path, action, times] of /** @type {[string, RegExp, any, number][]} */ ([
    ['a proxy\'s page with status 200', FEED, faults.html(200), 2],
    ['JSON that is cut', FEED, faults.truncate(700), 1],
    ['rows without changes', FEED, faults.rowsWithoutChanges((_row, at) => at === 4), 1],
    ['documents for good, or so it seems', DOCS, faults.html(200), 8],
  ])) {
    await t.test(name, async (t) => {
      const { couch, database, url } = await scene(t, { docs: 60 });
      const db = local(t, fast);
      couch.faults.add({ when: { path }, times, action });
      const replication = db.replicate.from(url, { live: true, retry: true, batch_size: 20, back_off_function: () => 10 });
      while ((await db.info()).doc_count < 60) await new Promise((resolve) => setTimeout(resolve, 20));
      replication.cancel();
      await replication;
      compare(serverSnapshot(database), await snapshot(db));
    });
  }
});

for (const [name, action] of /** @type {[string, any][]} */ ([
  ['401', faults.status(401, { error: 'unauthorized', reason: '_writer access is required' })],
  ['403', faults.status(403, { error: 'forbidden', reason: '_writer access is required' })],
  ['404', faults.status(404, { error: 'not_found', reason: 'missing' })],
  ['405', faults.status(405, { error: 'method_not_allowed', reason: 'Only GET' })],
  ['501', faults.status(501, { error: 'not_implemented', reason: 'no' })],
])) {
  test(`a server without _bulk_get for this user (${name}) is asked for one document at a time`, async (t) => {
    const docs = /** @type {any[]} */ (notes(30));
    docs[3]._attachments = { a: { content_type: 'image/png', data: 'AAAA' } };
    const seen = await hurt(t, fast, {
      docs,
      prepare({ couch, database }) {
        database.bulkDocs([replicated('note-00001', [rev(1, 'x')]), replicated('note-00002', [rev(3, 'y'), rev(2, 'y'), rev(1, 'y')], { _deleted: true })], { new_edits: false });
        couch.faults.add({ when: { path: DOCS }, times: Infinity, action });
      },
    });
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 32);
    assert.equal(seen.stats.singleGets, true);
    checkpointLags(seen);
  });
}

test('a server whose connections are closed while idle', async (t) => {
  const { couch, database, url } = await scene(t, { docs: 30, idleTimeout: 20 });
  const db = local(t, fast);
  for (let round = 1; round <= 4; round += 1) {
    await db.replicate.from(url);
    database.bulkDocs(notes(10, round * 100));
    await new Promise((resolve) => setTimeout(resolve, 15 * round));
    if (round === 3) couch.closeIdleConnections();
  }
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
});

test('failures in stock\'s own words, where stock meets them too', shapes, async (t) => {
  for (const [name, action, status] of /** @type {[string, any, number][]} */ ([
    ['500', faults.status(500, { error: 'internal', reason: 'broken' }), 500],
    ['404', faults.status(404, { error: 'not_found', reason: 'Database does not exist.' }), 404],
    ['401', faults.status(401, { error: 'unauthorized', reason: 'no' }), 401],
  ])) {
    await t.test(name, async (t) => {
      const seen = await hurt(t, fast, { prepare({ couch }) { couch.faults.add({ when: { path: FEED }, times: Infinity, action }); } });
      assert.equal(seen.error.status, status);
      checkpointLags(seen);
    });
  }
});

test('a failing checkpoint', shapes, async (t) => {
  const PUT = { method: 'PUT', path: /_local/ };
  const GET = { method: 'GET', path: /_local/ };
  /** @type {[string, any, any, boolean][]} */
  const cases = [
    ['reset after it was written', PUT, faults.resetAfter(), false],
    ['reset before it was written', PUT, faults.resetBefore(), false],
    ['500', PUT, faults.status(500), false],
    ['409', PUT, faults.status(409, { error: 'conflict', reason: 'Document update conflict.' }), true],
    ['reading it: 500', GET, faults.status(500), false],
    ['reading it: a page', GET, faults.html(200), false],
  ];
  for (const [name, when, action, completes] of cases) {
    await t.test(name, async (t) => {
      const seen = await hurt(t, fast, { options: { batch_size: 20 }, prepare({ couch }) { couch.faults.add({ when, action }); } });
      if (completes) assert.equal(seen.error, undefined);
      checkpointLags(seen);
    });
  }
});

test('a request that hangs is given up and repeated', { timeout: 60_000 }, async (t) => {
  for (const path of [FEED, DOCS]) {
    const seen = await hurt(t, fast, {
      options: { fastSync: { stallTimeout: 1000 }, batch_size: 20 },
      prepare({ couch }) { couch.faults.add({ when: { path }, action: faults.hang() }); },
    });
    assert.equal(seen.error, undefined);
    assert.equal(seen.result.docs_written, 60);
  }
});

for (const [path, docs] of /** @type {const} */ ([[FEED, 3], [DOCS, 3], [DOCS, 60]])) {
  test(`a request that always hangs ends with an error: ${path}, ${docs} documents`, { timeout: 60_000 }, async (t) => {
    const seen = await hurt(t, fast, {
      options: { fastSync: { stallTimeout: 1000 } }, docs,
      prepare({ couch }) { couch.faults.add({ when: { path }, times: Infinity, action: faults.hang() }); },
    });
    assert.equal(seen.error.code, 'fast_sync_stalled');
  });
}

test('a 413 for many documents at once: smaller requests pass', async (t) => {
  const seen = await hurt(t, fast, {
    docs: notes(200),
    prepare({ couch }) {
      couch.faults.add({ when: (/** @type {any} */ { url, bytesIn }) => DOCS.test(url) && bytesIn > 2000, times: Infinity, action: faults.status(413) });
    },
  });
  assert.equal(seen.error, undefined);
  assert.equal(seen.result.docs_written, 200);
});

test('a server that is overloaded is asked less', async (t) => {
  const seen = await hurt(t, fast, {
    docs: notes(1500),
    prepare({ couch }) { couch.faults.add({ when: { path: DOCS }, after: 2, times: 3, action: faults.status(429, undefined, { 'Retry-After': '1' }) }); },
  });
  assert.equal(seen.error, undefined);
  assert.equal(seen.result.docs_written, 1500);
});
