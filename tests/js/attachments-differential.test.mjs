// Attachments against stock's, sync after sync: added, removed, replaced, kept and compressed, of
// documents that are edited, deleted and written again. With COUCH_URL, of a real CouchDB too.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { pouchesOnce } from './support/alike.mjs';
import { contents, filesOf, names, REAL, withFiles } from './support/files.mjs';
import { done, settings } from './support/pairs.mjs';
import { local } from './support/pouches.mjs';
import { replicated, rev } from './support/scene.mjs';

const { stock, fast } = pouchesOnce(9);

const edit = fc.record({
  id: fc.constantFrom('one', 'two', '_design/three', 'a/b + c'),
  what: fc.oneof(
    { weight: 4, arbitrary: fc.constant('attach') }, { weight: 2, arbitrary: fc.constant('remove') }, { weight: 2, arbitrary: fc.constant('edit') },
    fc.constant('delete'), fc.constant('delete with attachments'), fc.constant('compress'),
  ),
  files: fc.array(fc.record({ name: fc.constantFrom(...names), content: fc.nat(contents.length - 1) }), { minLength: 1, maxLength: 3 }),
  n: fc.nat(1000),
});

/** What happens between two syncs. */
const rounds = fc.array(fc.array(edit, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });

/** @param {import('./support/files.mjs').FileServer} server @param {any} given */
async function apply(server, { id, what, files, n }) {
  const old = await server.get(id).catch(() => ({ _id: id }));
  const kept = what === 'remove' ? Object.fromEntries(Object.entries(old._attachments ?? {}).slice(1)) : old._attachments;
  const added = what === 'attach' || what === 'delete with attachments' ? Object.fromEntries(files.map((/** @type {any} */ { name, content }) =>
    [name, { content_type: contents[content].type, data: contents[content].bytes.toString('base64') }])) : {};
  const isDeleted = what.startsWith('delete');
  if (isDeleted && !old._rev) return;
  const { name, content } = files[0];
  const written = await server.put({
    ...old, n, ...(isDeleted ? { _deleted: true } : {}), _attachments: what === 'delete' ? {} : { ...kept, ...added },
  });
  if (what === 'compress') await server.putCompressed(id, written, name, contents[content]);
}

/** @type {['scripted' | 'real', string, number][]} */
const places = [['scripted', 'memory', 24], ['scripted', 'leveldb', 4], ...(REAL ? /** @type {['real', string, number][]} */ ([['real', 'memory', 8]]) : [])];

for (const [which, adapter, runs] of places) {
  test(`sync after sync leaves what stock leaves: ${which} server, ${adapter}`, async (t) => {
    await fc.assert(fc.asyncProperty(rounds, fc.constantFrom({}, { batch_size: 2 }), (given, options) => withFiles(which, async (server) => {
      const dbs = [stock, fast].map((PouchDB) => place(t, PouchDB, adapter));
      for (const round of given) {
        for (const each of round) await apply(server, each);
        const [a, b] = await Promise.all(dbs.map((db) => done(db.replicate.from(server.url, { ...options }))));
        assert.equal(b.result.docs_written, a.result.docs_written);
        assert.deepEqual(await filesOf(dbs[1]), await filesOf(dbs[0]));
      }
    })), settings(runs));
  });
}

/** @param {import('node:test').TestContext} t @param {any} PouchDB @param {string} adapter */
function place(t, PouchDB, adapter) {
  if (adapter === 'memory') return local(t, PouchDB);
  const folder = mkdtempSync(join(tmpdir(), 'fast-sync-'));
  const db = new PouchDB(join(folder, 'db'));
  t.after(async () => {
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return db;
}

const file = (/** @type {string} */ text, type = 'image/png') => ({ content_type: type, data: Buffer.from(text).toString('base64') });
const [one, left, right, later] = [rev(1, 'one'), rev(2, 'a'), rev(2, 'b'), rev(3, 'c')];
/** @param {any} found @param {string} revision @param {string} [name] */
const textOf = (found, revision, name = 'f') => Buffer.from(found.doc[revision][name].bytes, 'base64').toString();

for (const which of /** @type {('scripted' | 'real')[]} */ (REAL ? ['scripted', 'real'] : ['scripted'])) {
  test(`conflicting leaves with other bytes under one name: ${which} server`, async (t) => {
    await withFiles(which, async (server) => {
      await server.replicate([replicated('doc', [one], { _attachments: { f: file('first') } })]);
      const dbs = [stock, fast].map((PouchDB) => local(t, PouchDB));
      for (const db of dbs) await done(db.replicate.from(server.url));
      await server.replicate([
        replicated('doc', [left, one], { _attachments: { f: file('of the loser') } }),
        replicated('doc', [right, one], { _attachments: { f: file('of the branch'), t: file('text '.repeat(50), 'text/plain') } }),
        replicated('doc', [later, right, one], { _attachments: { f: file('of the winner') } }),
      ]);
      for (const db of dbs) await done(db.replicate.from(server.url));
      const [a, b] = await Promise.all(dbs.map(filesOf));
      assert.equal(textOf(b, left), 'of the loser');
      assert.equal(textOf(b, later), 'of the winner');
      // What README says of stock: it names no revision where the target holds the document.
      assert.equal(textOf(a, left), 'of the winner');
      assert.equal(textOf(a, later), 'of the winner');
    });
  });
}
