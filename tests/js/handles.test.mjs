// How the user made the handles: credentials, headers, a fetch of their own, set-up, prefixes,
// cookies, constructors with defaults. What stock does with them is done with them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastSync from '../../dist/index.js';
import { alike, pouchesOnce, told } from './support/alike.mjs';
import { observe } from './support/observe.mjs';
import { freshPouch, local } from './support/pouches.mjs';
import { notes, scene } from './support/scene.mjs';

const users = { admin: 'secret', reader: { password: 'p@ss:w/rd', roles: ['readers'] } };
const security = { members: { names: ['reader'], roles: [] }, admins: { names: [], roles: ['_admin'] } };

/** @param {any} seen */
const outcome = ({ events, result, error, docs }) => ({
  last: events.at(-1), written: result?.docs_written, docs: docs.length, error: told(error),
});

/** @param {any} database */
const protect = (database) => { database.security = security; };

alike('name and password in the URL', async ({ db, couch, database }) => {
  protect(database);
  return outcome(await observe(db.replicate.from(couch.dbUrl('db', { user: 'reader' }))).ended);
}, { docs: 30, users, check: ({ written }) => assert.equal(written, 30) });

alike('a wrong password', async ({ db, couch, database }) => {
  protect(database);
  const url = couch.dbUrl('db', { user: 'reader' }).replace('p%40ss', 'wrong');
  return outcome(await observe(db.replicate.from(url)).ended);
}, { docs: 5, users, check: ({ error }) => assert.equal(error.name, 'unauthorized') });

alike('the option auth', async ({ PouchDB, db, url, database }) => {
  protect(database);
  const remote = new PouchDB(url, { auth: { username: 'reader', password: 'p@ss:w/rd' } });
  return outcome(await observe(db.replicate.from(remote)).ended);
}, { docs: 30, users, check: ({ written }) => assert.equal(written, 30) });

alike('auth among the options of the replication, with a URL', async ({ db, url, database }) => {
  protect(database);
  return outcome(await observe(db.replicate.from(url, { auth: { username: 'reader', password: 'p@ss:w/rd' } })).ended);
}, { docs: 30, users, check: ({ written }) => assert.equal(written, 30) });

alike('the option headers', async ({ PouchDB, db, url, database, couch }) => {
  protect(database);
  const Authorization = `Basic ${Buffer.from('reader:p@ss:w/rd').toString('base64')}`;
  const remote = new PouchDB(url, { headers: { Authorization, 'X-Tenant': '1' } });
  const seen = outcome(await observe(db.replicate.from(remote)).ended);
  for (const entry of couch.log) assert.equal(entry.headers['x-tenant'], '1', entry.url);
  return seen;
}, { docs: 30, users, check: ({ written }) => assert.equal(written, 30) });

for (const version of /** @type {const} */ ([9, 8, 7])) {
  alike(`a session cookie in PouchDB's own jar, PouchDB ${version}`, async ({ PouchDB, db, url, couch, database }) => {
    protect(database);
    const login = await PouchDB.fetch(`${couch.url}/_session`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'reader', password: 'p@ss:w/rd' }),
    });
    assert.equal(login.status, 200);
    return outcome(await observe(db.replicate.from(new PouchDB(url))).ended);
  }, { pouch: version, docs: 30, users, check: ({ written }) => assert.equal(written, 30) });
}

alike('a session that ends meanwhile', async ({ PouchDB, db, url, couch, database }) => {
  protect(database);
  const options = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'reader', password: 'p@ss:w/rd' }) };
  await PouchDB.fetch(`${couch.url}/_session`, options);
  const first = outcome(await observe(db.replicate.from(url)).ended);
  couch.auth.expireSessions();
  const second = outcome(await observe(db.replicate.from(url)).ended);
  await PouchDB.fetch(`${couch.url}/_session`, options);
  const third = outcome(await observe(db.replicate.from(url)).ended);
  return [first, second.error.name, third];
}, { docs: 3, users, check: ([, second, third]) => assert.deepEqual([second, third.written], ['unauthorized', 0]) });

test('a fetch of the user\'s sees every request', async (t) => {
  for (const PouchDB of Object.values(pouchesOnce(9))) {
    const docs = /** @type {any[]} */ (notes(120));
    docs[0]._attachments = { a: { content_type: 'image/png', data: 'AAAA' } };
    const { couch, url } = await scene(t, { docs });
    let calls = 0;
    const remote = new PouchDB(url, {
      fetch(/** @type {any} */ address, /** @type {any} */ options) {
        calls += 1;
        options.headers.set('x-through', 'mine');
        return PouchDB.fetch(address, options);
      },
    });
    const { docs_written } = await local(t, PouchDB).replicate.from(remote, { batch_size: 50 });
    assert.equal(docs_written, 120);
    assert.equal(calls, couch.log.length);
    for (const entry of couch.log) assert.equal(entry.headers['x-through'], 'mine', entry.url);
  }
});

test('a fetch of the user\'s that answers with the platform\'s own Response', async (t) => {
  const { fast } = pouchesOnce(9);
  const { url } = await scene(t, { docs: 50 });
  const remote = new fast(url, { fetch: (/** @type {any} */ address, /** @type {any} */ options) => fetch(address, options) });
  assert.equal((await local(t, fast).replicate.from(remote)).docs_written, 50);
});

for (const [what, broken] of /** @type {[string, () => any][]} */ ([
  ['throws at once', () => { throw new Error('no network today'); }],
  ['rejects', () => Promise.reject(new Error('no network today'))],
  ['throws a 401', () => { throw Object.assign(new Error('go away'), { status: 401, name: 'unauthorized' }); }],
])) {
  alike(`a fetch of the user's that ${what}`, async ({ PouchDB, db, url }) => {
    const seen = await observe(db.replicate.from(new PouchDB(url, { fetch: broken }))).ended;
    return { events: seen.events, error: told(seen.error) };
  }, { docs: 3, check: ({ error }) => assert.ok(error) });

  // One of them: the engine tries again for some seconds.
  if (what !== 'throws at once') continue;
  alike(`a fetch of the user's that ${what} at the documents`, async ({ PouchDB, db, url }) => {
    const remote = new PouchDB(url, {
      fetch: (/** @type {string} */ address, /** @type {any} */ options) => (/_bulk_get|note/.test(address) ? broken() : PouchDB.fetch(address, options)),
    });
    const seen = await observe(db.replicate.from(remote)).ended;
    return { last: seen.events.at(-1), holds: (await db.info()).doc_count };
  }, { docs: 3, check: ({ last, holds }) => assert.deepEqual([last, holds], ['error', 0]) });
}

alike('skip_setup', async ({ PouchDB, db, url, couch }) => {
  const seen = outcome(await observe(db.replicate.from(new PouchDB(url, { skip_setup: true }))).ended);
  return { ...seen, created: couch.count(/^PUT \/db\/?$/) };
}, { docs: 12, check: ({ written }) => assert.equal(written, 12) });

alike('skip_setup and no such database', async ({ PouchDB, db, couch }) => {
  const seen = outcome(await observe(db.replicate.from(new PouchDB(couch.dbUrl('nobody'), { skip_setup: true }))).ended);
  return { ...seen, exists: couch.databases.has('nobody') };
}, { check: ({ exists, error }) => assert.deepEqual([exists, error.status], [false, 404]) });

alike('a remote database that does not exist is made', async ({ db, couch }) => {
  const seen = outcome(await observe(db.replicate.from(couch.dbUrl('new'))).ended);
  return { ...seen, exists: couch.databases.has('new') };
}, { check: ({ exists, written }) => assert.deepEqual([exists, written], [true, 0]) });

alike('a remote database that one may not make', async ({ db, couch }) => {
  return outcome(await observe(db.replicate.from(couch.dbUrl('new'))).ended);
}, { users, check: ({ error }) => assert.equal(error.status, 401) });

alike('prefix', async ({ t, PouchDB, couch }) => {
  const Prefixed = PouchDB.defaults({ prefix: `${couch.url}/` });
  const db = local(t, PouchDB);
  return outcome(await observe(db.replicate.from(new Prefixed('db'))).ended);
}, { docs: 12, check: ({ written }) => assert.equal(written, 12) });

alike('a slash after the URL', async ({ db, url }) =>
  outcome(await observe(db.replicate.from(`${url}/`)).ended), { docs: 12, check: ({ written }) => assert.equal(written, 12) });

alike('a database with a slash in its name', async ({ db, couch }) => {
  couch.db('a/b').bulkDocs(notes(7));
  return outcome(await observe(db.replicate.from(couch.dbUrl('a/b'))).ended);
}, { check: ({ written }) => assert.equal(written, 7) });

test('children of PouchDB.defaults(), made before the plugin and after it', async (t) => {
  const { url } = await scene(t, { docs: 12 });
  const PouchDB = freshPouch();
  const before = PouchDB.defaults({ auto_compaction: true });
  PouchDB.plugin(fastSync);
  const after = PouchDB.defaults({ auto_compaction: true });
  for (const Child of [before, after]) {
    const db = local(t, Child);
    const replication = db.replicate.from(url);
    assert.ok(replication.fastSync, 'replicate.from is the plugin\'s');
    assert.equal((await replication).docs_written, 12);
    const sync = db.sync(url);
    assert.ok(sync.fastSync, 'sync is the plugin\'s');
    await sync;
  }
  const db = local(t, after);
  assert.equal((await after.replicate(url, db)).docs_written, 12);
});

test('installed twice, and with settings', async (t) => {
  const { url } = await scene(t, { docs: 12 });
  const PouchDB = freshPouch().plugin(fastSync).plugin(fastSync.with({ concurrency: 1 })).plugin(fastSync);
  const replication = local(t, PouchDB).replicate.from(url);
  assert.equal((await replication).docs_written, 12);
  assert.equal(replication.fastSync.stats.docsWritten, 12);
});

alike('several replications at once, of the same and of other databases', async ({ t, PouchDB, couch, url }) => {
  couch.db('other').bulkDocs(notes(40, 500));
  const remote = new PouchDB(url);
  const targets = Array.from({ length: 4 }, () => local(t, PouchDB));
  const results = await Promise.all([
    targets[0].replicate.from(url), targets[1].replicate.from(remote), targets[2].replicate.from(remote),
    targets[2].replicate.from(couch.dbUrl('other')), targets[3].sync(remote),
  ]);
  return [results.slice(0, 4).map((result) => result.docs_written), results[4].pull.docs_written, await Promise.all(targets.map(async (db) => (await db.info()).doc_count))];
}, { docs: 60, check: (seen) => assert.deepEqual(seen, [[60, 60, 60, 40], 60, [60, 60, 100, 60]]) });

alike('two replications of one pair at once', async ({ db, url }) => {
  const results = await Promise.all([db.replicate.from(url), db.replicate.from(url, { batch_size: 7 })]);
  return [results.map(({ ok }) => ok), (await db.info()).doc_count];
}, { docs: 50, check: (seen) => assert.deepEqual(seen, [[true, true], 50]) });

alike('a local source goes its own way', async ({ t, PouchDB, db }) => {
  await db.bulkDocs(notes(20));
  const other = local(t, PouchDB);
  return outcome(await observe(other.replicate.from(db)).ended);
}, { check: ({ written }) => assert.equal(written, 20) });
