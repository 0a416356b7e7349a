// Stock and the plugin push the same generated databases to servers that hold the same: both leave
// the same database there, and say the same about it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { counts } from './support/observe.mjs';
import { done, settings, sides, standing, withLocal, withServers } from './support/pairs.mjs';
import { pouchesOnce } from './support/alike.mjs';
import { wholly } from './support/pouches.mjs';
import { compare, serverSnapshot } from './support/snapshot.mjs';

for (const [version, runs] of /** @type {const} */ ([[9, 40], [8, 6], [7, 6]])) {
  test(`a push to a server that holds nothing or something, PouchDB ${version}`, async () => {
    const { stock, fast } = pouchesOnce(version);
    await fc.assert(fc.asyncProperty(standing, async (given) => {
      const { source, target } = sides(given);
      const once = (/** @type {any} */ PouchDB) => withServers([target], ([couch]) => withLocal(PouchDB, source, async (db) => {
        if (PouchDB === stock && version === 7) wholly(db);
        const { result, docs } = await done(db.replicate.to(couch.dbUrl('db'), { ...given.options }));
        const again = await done(db.replicate.to(couch.dbUrl('db'), { ...given.options, fastSync: false }));
        const moved = [again.result.docs_read, again.result.docs_written, again.result.last_seq];
        assert.deepEqual(moved, [0, 0, result.last_seq], 'a following stock push moves nothing');
        return { counts: counts(result), docs, found: serverSnapshot(couch.db('db')) };
      }));
      const [a, b] = [await once(stock), await once(fast)];
      compare(a.found, b.found, 'the servers of stock and of the plugin');
      assert.deepEqual([b.counts, b.docs], [a.counts, a.docs]);
    }), settings(runs));
  });
}
