// `getDocs` and `bulkGet`, which work without the plugin being installed: the first with the
// contract of PouchDB's internal function, the second with that of `db.bulkGet`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bulkGet, getDocs } from '../../dist/index.js';
import { pouchesOnce, told } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { stock } = pouchesOnce(9);
const png = (/** @type {string} */ data) => ({ a: { content_type: 'image/png', data } });

/** Two conflicting leaves with other bytes under one name, a deleted document, and notes. */
async function filled(/** @type {import('node:test').TestContext} */ t, count = 30) {
  const stage = await scene(t, { docs: notes(count) });
  stage.database.bulkDocs([
    replicated('forked', [rev(2, 'a'), rev(1, 'f')], { which: 'a', _attachments: png('AAAA') }),
    replicated('forked', [rev(2, 'b'), rev(1, 'f')], { which: 'b', _attachments: png('BBBB') }),
    replicated('gone', [rev(2, 'g'), rev(1, 'g')], { _deleted: true }),
    replicated('text', [rev(1, 't')], { _attachments: { 't.txt': { content_type: 'text/plain', data: Buffer.from('hello '.repeat(99)).toString('base64') } } }),
  ], { new_edits: false });
  return { ...stage, remote: new stock(stage.url) };
}

/** @param {any} database @returns {Record<string, { missing: string[] }>} */
const everything = (database) => Object.fromEntries([...database.docs.keys()].map((id) => [id, { missing: database.leaves(id).map((/** @type {any} */ leaf) => leaf.rev) }]));

test('getDocs: all that is missing, ready to be written', async (t) => {
  const { remote, database } = await filled(t, 300);
  const db = local(t, stock);
  const diffs = everything(database);
  const before = structuredClone(diffs);
  const { ok, docs } = await getDocs(remote, db, diffs, {});
  assert.equal(ok, true);
  assert.deepEqual(diffs, before, 'what was handed in is not changed');
  assert.deepEqual(docs.map((doc) => [doc._id, doc._rev]), Object.entries(diffs).flatMap(([id, { missing }]) => missing.map((each) => [id, each])));
  for (const doc of docs) assert.equal(doc._revisions?.ids[0], doc._rev.replace(/^\d+-/, ''));
  await db.bulkDocs({ docs: /** @type {any[]} */ (docs), new_edits: false });
  compare(serverSnapshot(database), await snapshot(db));
});

test('getDocs: attachments as the platform\'s adapters want them, no stub left', async (t) => {
  const { remote } = await filled(t);
  const { docs } = await getDocs(remote, local(t, stock), { forked: { missing: [rev(2, 'a'), rev(2, 'b')] }, text: { missing: [rev(1, 't')] } }, {});
  const all = /** @type {any[]} */ (docs).map(({ _attachments }) => Object.values(_attachments)[0]);
  for (const attachment of all) {
    assert.ok(Buffer.isBuffer(attachment.data));
    assert.equal(attachment.stub, undefined);
    assert.equal(attachment.length, undefined);
  }
  assert.deepEqual(all.map(({ data }) => data.toString('base64').slice(0, 8)), ['AAAA', 'BBBB', 'aGVsbG8g']);
});

test('getDocs: nothing to ask costs nothing', async (t) => {
  const { remote, couch } = await filled(t);
  await remote.info();
  couch.clearLog();
  assert.deepEqual(await getDocs(remote, local(t, stock), {}, {}), { ok: true, docs: [] });
  assert.deepEqual(await getDocs(remote, local(t, stock), { 'note-00001': { missing: [] } }, {}), { ok: true, docs: [] });
  assert.equal(couch.count(), 0);
});

test('getDocs: ok is false where a revision was not to be had, and the rest is there', async (t) => {
  const { remote, database } = await filled(t);
  const diffs = { ...everything(database), nobody: { missing: [rev(1, 'n')] } };
  const { ok, docs } = await getDocs(remote, local(t, stock), diffs, {});
  assert.equal(ok, false);
  assert.equal(docs.length, 34);
});

test('getDocs: cancelled meanwhile', async (t) => {
  const { remote, couch } = await filled(t);
  couch.faults.add({ when: { path: /_bulk_get/ }, action: faults.delay(50) });
  const state = { cancelled: false };
  const asked = getDocs(remote, local(t, stock), { 'note-00001': { missing: [rev(1, 'z')] } }, state);
  setTimeout(() => { state.cancelled = true; }, 20);
  await assert.rejects(asked, /^Error: cancelled$/);
});

test('getDocs: a failure rejects, with a code and without a password', async (t) => {
  const { couch, database } = await scene(t, { docs: 3, users: { admin: 'geheim' } });
  const remote = new stock(couch.dbUrl('db', { user: 'admin' }));
  couch.faults.add({ when: { path: /_bulk_get/ }, times: Infinity, action: faults.html(200) });
  await assert.rejects(getDocs(remote, local(t, stock), everything(database), {}), (/** @type {any} */ error) => {
    assert.equal(error.code, 'fast_sync_bad_json');
    assert.ok(!`${error.message} ${JSON.stringify(error)}`.includes('geheim'));
    return true;
  });
});

test('getDocs: a source of this process, and one whose bulkGet was replaced', async (t) => {
  const { remote, database } = await filled(t);
  const source = local(t, stock);
  await source.replicate.from(remote);
  const db = local(t, stock);
  const { ok, docs } = await getDocs(source, db, everything(database), {});
  assert.equal(ok, true);
  await db.bulkDocs({ docs: /** @type {any[]} */ (docs), new_edits: false });
  compare(serverSnapshot(database), await snapshot(db));

  let own = false;
  const { bulkGet: original } = remote;
  remote.bulkGet = async function (/** @type {any} */ options) {
    own = this === remote && options.revs && options.latest;
    return original.call(this, options);
  };
  const again = await getDocs(remote, local(t, stock), { 'note-00002': { missing: [database.leaves('note-00002')[0].rev] } }, {});
  assert.deepEqual([again.ok, again.docs.length, own], [true, 1, true]);
});

/** @type {[string, (database: any) => any][]} */
const questions = [
  ['revisions, with history', (database) => ({ docs: leaves(database), revs: true })],
  ['revisions, without history', (database) => ({ docs: leaves(database) })],
  ['attachments in base64', (database) => ({ docs: leaves(database), attachments: true })],
  ['attachments as binary', (database) => ({ docs: leaves(database), attachments: true, binary: true, revs: true })],
  ['without revisions: all leaves', (database) => ({ docs: [...database.docs.keys()].map((id) => ({ id })), revs: true })],
  ['an inner revision', () => ({ docs: [{ id: 'edited', rev: rev(1, 'e') }], revs: true })],
  ['an inner revision and its newest leaves', () => ({ docs: [{ id: 'edited', rev: rev(1, 'e') }], revs: true, latest: true })],
  ['a fork and its leaves', () => ({ docs: [{ id: 'forked', rev: rev(1, 'f') }], latest: true })],
  ['what is not there', () => ({ docs: [{ id: 'nobody', rev: rev(1, 'n') }, { id: 'note-00001', rev: rev(4, 'n') }, { id: 'nobody' }], revs: true })],
  ['the same twice', (database) => ({ docs: [...leaves(database).slice(0, 3), ...leaves(database).slice(0, 3)] })],
  ['nothing', () => ({ docs: [] })],
];

/** @param {any} database */
const leaves = (database) => [...database.docs.keys()].flatMap((id) => database.leaves(id).map((/** @type {any} */ leaf) => ({ id, rev: leaf.rev })));

for (const [what, question] of questions) {
  test(`bulkGet answers as db.bulkGet: ${what}`, async (t) => {
    const { remote, database, url } = await filled(t, 600);
    database.bulkDocs([replicated('edited', [rev(1, 'e')], { n: 1 })], { new_edits: false });
    database.bulkDocs([replicated('edited', [rev(2, 'e'), rev(1, 'e')], { n: 2 })], { new_edits: false });
    const expected = await new stock(url).bulkGet(question(database));
    assert.deepEqual(await bulkGet(remote, question(database)), expected);

    // A database of this process never answers to nothing.
    if (what === 'nothing') return;
    const db = local(t, stock);
    await db.replicate.from(remote);
    assert.deepEqual(await bulkGet(db, question(database)), await db.bulkGet(question(database)), 'of a database of this process');
  });
}

test('bulkGet: many documents in several requests at once, in the order asked', async (t) => {
  const { remote, couch, database } = await filled(t, 1500);
  couch.latency = 20;
  const docs = leaves(database).toReversed();
  const { results } = await bulkGet(remote, { docs, revs: true });
  assert.deepEqual(results.map(({ id }) => id), docs.map(({ id }) => id));
  assert.ok(couch.peak(/_bulk_get/) > 1 && couch.peak(/_bulk_get/) <= 6, String(couch.peak(/_bulk_get/)));
});

test('bulkGet: a failure is the one of db.bulkGet', async (t) => {
  for (const ask of [(/** @type {any} */ db, /** @type {any} */ options) => db.bulkGet(options), bulkGet]) {
    const { remote, couch, database } = await filled(t);
    await remote.bulkGet({ docs: [{ id: 'note-00001' }] }); // it knows that there is one
    couch.faults.add({ when: { path: /./ }, times: Infinity, action: faults.status(401, { error: 'unauthorized', reason: 'no' }) });
    const error = await ask(remote, { docs: leaves(database) }).then(() => null, (/** @type {any} */ thrown) => thrown);
    assert.deepEqual([told(error)?.status, told(error)?.name], [401, 'unauthorized']);
  }
});

test('bulkGet: a method that was replaced is called', async (t) => {
  const { remote } = await filled(t);
  remote.bulkGet = async function () { return { results: [], own: this === remote }; };
  assert.deepEqual(await bulkGet(remote, { docs: [{ id: 'note-00001' }] }), { results: [], own: true });
});
