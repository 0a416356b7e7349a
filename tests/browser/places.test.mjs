// What only a browser has: several tabs on one database, a tab that is closed in the middle, a
// worker, cookies and preflights, a policy that refuses WebAssembly; and live replication there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { faults } from '../js/support/couch/index.mjs';
import { notes, scene } from '../js/support/scene.mjs';
import { compare, serverSnapshot } from '../js/support/snapshot.mjs';
import { inEachBrowser } from './support/browsers.mjs';
import { openSite, openTab, until } from './support/stage.mjs';

const ADAPTER = 'indexeddb';
/** In ms: a request that was still to come would have come. */
const QUIET = 300;

/** What a client adds by itself depends on the client, not on who uses it. */
const headersOf = (/** @type {any} */ { headers }) => Object.keys(headers).filter((name) => name !== 'content-length');

inEachBrowser((kind) => {
  const name = (/** @type {string} */ what) => `${kind.name}: ${what}`;

  for (const from of ['the URL', 'the option auth']) {
    test(name(`basic auth from ${from}: no header that stock does not send, no Content-Type on a GET, fewer preflights`), async (t) => {
      const users = { anna: { password: 'p@ss: wörd', roles: ['_admin'] } };
      const docs = /** @type {any[]} */ (notes(150));
      docs[0]._attachments = { 'a.txt': { content_type: 'text/plain', data: 'aGk=' } };
      const { couch, database } = await scene(t, { users, docs });
      const tab = await openTab(t, kind);
      const [url, options] = from === 'the URL' ? [couch.dbUrl('db', { user: 'anna' }), {}]
        : [couch.dbUrl('db'), { auth: { username: 'anna', password: users.anna.password } }];
      /** @type {Set<string>[]} */
      const sent = [];
      const preflights = [];
      for (const who of ['stock', 'fast']) {
        couch.clearLog();
        const { result, error } = await tab.sync(who, ADAPTER, [], 'pull', url, {}, options);
        assert.equal(result?.docs_written, 150, error);
        const log = couch.matching();
        for (const { method, url: path, headers } of log) {
          assert.ok(headers.authorization, `${method} ${path}`);
          if (who === 'fast' && method === 'GET') assert.equal(headers['content-type'], undefined, path);
        }
        sent.push(new Set(log.flatMap(headersOf)));
        preflights.push(couch.preflights);
      }
      assert.deepEqual([...sent[1]].filter((header) => !sent[0].has(header)), []);
      assert.ok(preflights[1] > 0 && preflights[1] < preflights[0], `${preflights} preflights`);
      compare(serverSnapshot(database), await tab.contents('fast'), 'the server and the plugin');
    });
  }

  test(name('a login by cookie, and one that ends'), async (t) => {
    const { couch, database, url } = await scene(t, { users: { admin: 'secret' }, docs: 80 });
    const tab = await openTab(t, kind);
    await tab.call('open', 'fast', ADAPTER);
    database.security = { ...database.security, members: { names: ['admin'], roles: [] } };
    const refused = await tab.call('run', 'fast', 'pull', url, {}, { skip_setup: true });
    assert.equal(refused.error?.status, 401);
    assert.equal(await tab.call('logIn', couch.url, 'admin', 'secret'), 200);
    const { result, error, stock } = await tab.call('run', 'fast', 'pull', url, {}, { skip_setup: true });
    assert.deepEqual([result?.docs_written, stock], [80, null], error);
    assert.ok(couch.matching(/_bulk_get/).every(({ headers }) => /AuthSession=/.test(headers.cookie ?? '') && !headers.authorization));
    compare(serverSnapshot(database), await tab.contents('fast'), 'the server and the plugin');
  });

  test(name('failures as stock tells them'), async (t) => {
    const { couch, url } = await scene(t, { users: { admin: 'secret' }, docs: 20 });
    const closed = await scene(t, { cors: false, docs: 1 });
    const tab = await openTab(t, kind);
    const wrong = url.replace('//', '//admin:wrong@');
    for (const [at, [where, fault]] of /** @type {[string, any?][]} */ ([
      [wrong], [couch.dbUrl('db', { user: 'admin' }), faults.status(500, { error: 'e', reason: 'r' })], [closed.url], ['http://127.0.0.1:9/db'],
    ]).entries()) {
      const rule = fault && couch.faults.add({ when: { path: /_changes/ }, times: Infinity, action: fault });
      const [stock, fast] = [await tab.sync(`stock${at}`, ADAPTER, [], 'pull', where), await tab.sync(`fast${at}`, ADAPTER, [], 'pull', where)];
      assert.ok(stock.error, where);
      assert.deepEqual(fast.error, stock.error);
      rule?.remove();
    }
  });

  test(name('live and retry, with a server that goes away; cancel'), async (t) => {
    const { couch, database, url } = await scene(t, { docs: 30 });
    const tab = await openTab(t, kind);
    await tab.call('open', 'fast', ADAPTER);
    await tab.call('begin', 'fast', 'sync', url, { live: true, retry: true });
    const has = (/** @type {number} */ count) => until(`${count} documents here`, async () => await tab.call('count', 'fast') >= count);
    const served = (/** @type {number} */ count) => until(`${count} documents there`, () => database.docs.size >= count);
    await has(30);
    await tab.call('write', 'fast', notes(5, 500));
    await served(35);
    const away = couch.faults.add({ when: { path: /_changes|_bulk/ }, times: Infinity, action: faults.resetBefore() });
    database.bulkDocs(notes(5, 600));
    await until('the failure', async () => (await tab.call('seen', 'fast')).events.includes('paused with error'));
    await tab.call('write', 'fast', notes(5, 700));
    away.remove();
    await has(45);
    await served(45);
    await until('a pause', async () => (await tab.call('seen', 'fast')).events.at(-1) === 'paused');
    // What was written comes back by the feed. Cancelled amid that, stock too may leave a request open.
    await sleep(QUIET);
    await tab.call('cancel', 'fast');
    const { result } = await tab.call('end', 'fast');
    assert.equal(result.status, 'cancelled');
    await sleep(QUIET);
    assert.deepEqual(couch.log.filter(({ end }) => end === null).map(({ url: path }) => path), [], 'no request is open');
    const count = couch.log.length;
    await sleep(QUIET);
    assert.equal(couch.log.length, count, 'no request is sent');
    compare(serverSnapshot(database), await tab.contents('fast'), 'the server and the plugin');
  });

  // With the indexeddb adapter, tabs number what they write without knowing of each other, and the
  // second fails, whoever replicates.
  test(name('several tabs sync the same into the same database'), async (t) => {
    const { database, url } = await scene(t, { docs: 300, latency: 10 });
    const site = await openSite(t, kind);
    const tabs = await Promise.all([site.tab(), site.tab(), site.tab()]);
    await Promise.all(tabs.map((tab) => tab.call('open', 'fast', 'idb')));
    const seen = await Promise.all(tabs.map((tab) => tab.call('run', 'fast', 'pull', url, { batch_size: 50, retry: true })));
    for (const { result, error } of seen) assert.equal(result?.status, 'complete', JSON.stringify(error));
    compare(serverSnapshot(database), await tabs[0].contents('fast'), 'the server and the tabs');
    const again = await tabs[1].call('run', 'fast', 'pull', url, { fastSync: false });
    assert.equal(again.result.docs_written, 0);
    assert.deepEqual(tabs.flatMap(({ messages }) => messages), []);
  });

  test(name('a tab is closed in the middle; another goes on from the checkpoint'), async (t) => {
    const { couch, database, url } = await scene(t, { docs: 600 });
    const site = await openSite(t, kind);
    const first = await site.tab();
    await first.call('open', 'fast', ADAPTER);
    // The documents of the first request are written; those of the second never come.
    const never = couch.faults.add({ when: { path: /_bulk_get/ }, after: 1, times: Infinity, action: faults.hang() });
    await first.call('begin', 'fast', 'pull', url, { batch_size: 50, fastSync: { concurrency: 1 } });
    await until('a checkpoint', () => couch.count(/^PUT .*_local/) > 0);
    await first.page.close();
    never.remove();
    await sleep(QUIET);
    assert.deepEqual(couch.log.filter(({ end }) => end === null), [], 'what it asked for is ended with it');

    const before = new Set([...database.locals.values()].map(({ body }) => /** @type {any} */ (body).last_seq));
    couch.clearLog();
    const second = await site.tab();
    const held = await second.call('open', 'fast', ADAPTER);
    assert.ok(held > 0 && held < 600, `${held} documents were written`);
    const { result, stock } = await second.call('run', 'fast', 'pull', url);
    assert.deepEqual([result.status, stock], ['complete', null]);
    const [since] = couch.matching(/_changes/).map(({ query }) => query.since);
    assert.ok(before.has(since), `it goes on from ${since}`);
    assert.ok(result.docs_read <= 600 - 50, 'what was written is not fetched again');
    compare(serverSnapshot(database), await second.contents('fast'), 'the server and the browser');
  });

  test(name('a worker'), async (t) => {
    const { database, url } = await scene(t, { docs: 300 });
    const tab = await openTab(t, kind);
    const inWorker = (/** @type {string} */ method, /** @type {any[]} */ ...args) => tab.call('inWorker', method, args);
    await inWorker('open', 'fast', ADAPTER);
    const { result, stock } = await inWorker('run', 'fast', 'pull', url);
    assert.deepEqual([result.docs_written, stock], [300, null]);
    const { docs, ...rest } = await inWorker('contents', 'fast');
    compare(serverSnapshot(database), { ...rest, docs: new Map(docs) }, 'the server and the worker');
  });

  test(name('a policy that refuses WebAssembly: stock, and one line for the developer'), async (t) => {
    const { couch, database, url } = await scene(t, { docs: 40 });
    const tab = await openTab(t, kind, { policy: `default-src 'none'; script-src 'self'; connect-src ${couch.url}; img-src data:` });
    const { result, stock } = await tab.sync('fast', ADAPTER, [], 'pull', url);
    assert.equal(result.docs_written, 40);
    assert.match(stock, /could not be loaded/);
    const lines = await tab.call('lines');
    assert.equal(lines.length, 1, lines.join('\n'));
    assert.match(lines[0], /stock/);
    compare(serverSnapshot(database), await tab.contents('fast'), 'the server and stock');
  });
});
