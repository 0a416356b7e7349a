// From one server to another: the same database as stock leaves there, with a user of its own on
// each side, and checkpoints that are never ahead of what the target holds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { alike, counter, pouchesOnce, told } from './support/alike.mjs';
import { faults, startCouch } from './support/couch/index.mjs';
import { counts, observe } from './support/observe.mjs';
import { done, settings, sides, standing, withServers } from './support/pairs.mjs';
import { wholly } from './support/pouches.mjs';
import { notes } from './support/scene.mjs';
import { compare, serverSnapshot } from './support/snapshot.mjs';

for (const [version, runs] of /** @type {const} */ ([[9, 30], [8, 4], [7, 4]])) {
  test(`between servers that hold nothing or something, PouchDB ${version}`, async () => {
    const { stock, fast } = pouchesOnce(version);
    await fc.assert(fc.asyncProperty(standing, async (given) => {
      const { source, target } = sides(given);
      const once = (/** @type {any} */ PouchDB) => withServers([source, target], async ([from, to]) => {
        const url = from.dbUrl('db');
        const here = PouchDB === stock && version === 7 ? wholly(new PouchDB(url)) : url;
        const replicate = (/** @type {any} */ options) => done(PouchDB.replicate(here, to.dbUrl('db'), options));
        const { result, docs } = await replicate({ ...given.options });
        const again = await replicate({ ...given.options, fastSync: false });
        const moved = [again.result.docs_read, again.result.docs_written, again.result.last_seq];
        assert.deepEqual(moved, [0, 0, result.last_seq], 'a following stock replication moves nothing');
        return { counts: counts(result), docs, found: serverSnapshot(to.db('db')) };
      });
      const [a, b] = [await once(stock), await once(fast)];
      compare(a.found, b.found, 'the targets of stock and of the plugin');
      assert.deepEqual([b.counts, b.docs], [a.counts, a.docs]);
    }), settings(runs));
  });
}

/** A second server. @param {import('node:test').TestContext} t @param {any} [options] */
async function another(t, options) {
  const couch = await startCouch(options);
  t.after(() => couch.stop());
  couch.db('db');
  return couch;
}

alike('each server has users of its own', async ({ t, PouchDB, couch, database }) => {
  const other = await another(t, { users: { bob: { password: 'b:/?#@', roles: ['_admin'] } } });
  const replication = PouchDB.replicate(couch.dbUrl('db', { user: 'anna' }), other.dbUrl('db', { user: 'bob' }));
  const { events, result, error } = await observe(replication).ended;
  compare(serverSnapshot(database), serverSnapshot(other.db('db')));
  return { events, result: result && counts(result), error: told(error) };
}, {
  docs: 30, users: { anna: { password: 'ä%', roles: ['_admin'] } },
  check({ result }) { assert.equal(result.docs_written, 30); },
});

for (const side of /** @type {const} */ (['source', 'target'])) {
  alike(`a wrong password for the ${side}`, async ({ t, PouchDB, couch }) => {
    const other = await another(t, { users: { bob: { password: 'right', roles: ['_admin'] } } });
    const wrong = (/** @type {string} */ url) => url.replace(/:[^:@]*@/, ':wrong@');
    const [from, to] = [couch.dbUrl('db', { user: 'anna' }), other.dbUrl('db', { user: 'bob' })];
    const replication = PouchDB.replicate(side === 'source' ? wrong(from) : from, side === 'target' ? wrong(to) : to);
    const { events, error } = await observe(replication).ended;
    return { events, error: told(error), written: other.db('db').docs.size };
  }, {
    docs: 5, users: { anna: { password: 'right', roles: ['_admin'] } },
    check({ error, written }) { assert.deepEqual([error.status, written], [401, 0]); },
  });
}

test('checkpoints of both servers are behind what is written, whenever one of them is', async (t) => {
  const { fast } = pouchesOnce(9);
  const [from, to] = [await another(t), await another(t)];
  from.db('db').bulkDocs(notes(600));
  /** @type {{ where: string, seq: number, held: number }[]} */
  const seen = [];
  for (const [where, couch] of /** @type {const} */ ([['source', from], ['target', to]])) {
    couch.db('db').onRequest = (entry) => {
      if (entry.method !== 'PUT' || !/_local/.test(entry.path)) return;
      seen.push({ where, seq: counter(entry.bodyJSON.last_seq), held: to.db('db').docs.size });
    };
  }
  to.faults.add({ when: { path: /_bulk_docs/ }, times: Infinity, action: faults.delay(150) });
  await fast.replicate(from.dbUrl('db'), to.dbUrl('db'), { batch_size: 50 });
  assert.equal(to.db('db').docs.size, 600);
  for (const { where, seq, held } of seen) assert.ok(seq <= held, `${where}: ${seq} while ${held} were held`);
  for (const where of ['source', 'target']) {
    const own = seen.filter((each) => each.where === where);
    assert.ok(own.length >= 2 && own.length < 12, `${own.length} checkpoints of the ${where} in 12 batches`);
    assert.equal(own.at(-1)?.seq, 600);
  }
});

for (const where of /** @type {const} */ (['source', 'target'])) {
  alike(`the ${where}'s checkpoint cannot be written`, async ({ t, PouchDB, couch }) => {
    const other = await another(t);
    const refusing = where === 'source' ? couch : other;
    const broken = refusing.faults.add({ when: { method: 'PUT', path: /_local/ }, times: Infinity, action: faults.status(500) });
    const replicate = () => observe(PouchDB.replicate(couch.dbUrl('db'), other.dbUrl('db'), { batch_size: 10 })).ended;
    const failed = await replicate();
    broken.remove();
    const { result } = await replicate();
    compare(serverSnapshot(couch.db('db')), serverSnapshot(other.db('db')));
    // How far it came before it learned of it differs: the plugin writes behind.
    return { error: failed.error?.status, end: counter(result.last_seq) };
  }, { docs: 40, check({ error, end }) { assert.deepEqual([error, end], [500, 40]); } });
}
