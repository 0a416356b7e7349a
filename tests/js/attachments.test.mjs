// Attachments arrive with the bytes and the type that their own revision has: of every leaf, on
// empty targets and on those that hold a part, and fetched no more often than has to be.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pouchesOnce } from './support/alike.mjs';
import { faults } from './support/couch/index.mjs';
import { local } from './support/pouches.mjs';
import { notes, replicated, rev, scene } from './support/scene.mjs';
import { compare, serverSnapshot, snapshot } from './support/snapshot.mjs';

const { fast, stock } = pouchesOnce(9);

/** @param {string} text @param {number} revpos @param {string} [type] */
const file = (text, revpos, type = 'image/png') => ({ content_type: type, data: Buffer.from(text).toString('base64'), revpos });

const [one, left, right, later] = [rev(1, 'one'), rev(2, 'left'), rev(2, 'right'), rev(3, 'later')];

/** @type {[string, any[], any[]][]} what the target holds, what comes then */
const histories = [
  ['a branch that kept what the target\'s branch changed',
    [replicated('doc', [one], { _attachments: { a: file('old', 1) } }), replicated('doc', [left, one], { _attachments: { a: file('changed', 2) } })],
    [replicated('doc', [right, one], { kept: true, _attachments: { a: file('old', 1) } })]],
  ['a branch that changed what the target\'s branch kept',
    [replicated('doc', [one], { _attachments: { a: file('old', 1) } }), replicated('doc', [left, one], { _attachments: { a: file('old', 1) } })],
    [replicated('doc', [right, one], { _attachments: { a: file('changed', 2) } })]],
  ['a branch that kept what the target\'s branch removed',
    [replicated('doc', [one], { _attachments: { a: file('old', 1) } }), replicated('doc', [left, one])],
    [replicated('doc', [right, one], { _attachments: { a: file('old', 1) } })]],
  ['two leaves with other bytes, whose place in the history is not told',
    [replicated('doc', [left, one], { _attachments: { a: file('left', 0) } })],
    [replicated('doc', [right, one], { _attachments: { a: file('right', 0) } })]],
  ['an edit that changes it, whose place in the history is not told',
    [replicated('doc', [one], { _attachments: { a: file('old', 0), b: file('same', 0), t: file('text '.repeat(200), 0, 'text/plain') } })],
    [replicated('doc', [left, one], { _attachments: { a: file('new', 0), b: file('same', 0), t: file('text '.repeat(200), 0, 'text/plain') } })]],
  ['two roots', [replicated('doc', [one], { _attachments: { a: file('one', 0) } })], [replicated('doc', [rev(1, 'two')], { _attachments: { a: file('two', 0) } })]],
  ['an edit that keeps it', [replicated('doc', [one], { _attachments: { a: file('kept', 1) } })], [replicated('doc', [left, one], { edited: true, _attachments: { a: file('kept', 1) } })]],
  ['an edit that keeps a compressed one', [replicated('doc', [one], { _attachments: { a: file('text '.repeat(200), 1, 'text/plain') } })], [replicated('doc', [left, one], { edited: true, _attachments: { a: file('text '.repeat(200), 1, 'text/plain') } })]],
  ['an edit that changes it', [replicated('doc', [one], { _attachments: { a: file('old', 1) } })], [replicated('doc', [left, one], { _attachments: { a: file('new', 2) } })]],
  ['an edit that changes only its type', [replicated('doc', [one], { _attachments: { a: file('same', 1) } })], [replicated('doc', [left, one], { _attachments: { a: file('same', 2, 'image/jpeg') } })]],
  ['an edit that adds another', [replicated('doc', [one], { _attachments: { a: file('old', 1) } })], [replicated('doc', [left, one], { _attachments: { a: file('old', 1), b: file('new', 2) } })]],
  ['a deletion, and another leaf with it', [replicated('doc', [one], { _attachments: { a: file('old', 1) } })],
    [replicated('doc', [left, one], { _deleted: true }), replicated('doc', [right, one], { _attachments: { a: file('right', 2) } })]],
  ['a leaf that the target deleted', [replicated('doc', [one], { _attachments: { a: file('old', 1) } }), replicated('doc', [left, one], { _deleted: true })],
    [replicated('doc', [right, one], { _attachments: { a: file('old', 1) } })]],
  ['two edits at once', [replicated('doc', [one], { _attachments: { a: file('old', 1) } })],
    [replicated('doc', [left, one], { _attachments: { a: file('old', 1) } }), replicated('doc', [later, left, one], { _attachments: { a: file('old', 1), c: file('c', 3) } })]],
];

for (const [name, held, coming] of histories) {
  test(`the target holds a part: ${name}`, async (t) => {
    const { couch, database, url } = await scene(t);
    // By a sync, as it happens.
    for (const doc of held) database.bulkDocs([doc], { new_edits: false });
    const db = local(t, fast);
    await db.replicate.from(url);
    compare(serverSnapshot(database), await snapshot(db), 'before');
    for (const doc of coming) database.bulkDocs([doc], { new_edits: false });
    couch.clearLog();
    await db.replicate.from(url);
    compare(serverSnapshot(database), await snapshot(db), 'after');
  });
}

test('an attachment that the target holds is not fetched again', async (t) => {
  const { couch, database, url } = await scene(t);
  const big = { a: file('x'.repeat(50_000), 1) };
  database.bulkDocs([replicated('doc', [one], { _attachments: big })], { new_edits: false });
  const db = local(t, fast);
  await db.replicate.from(url);
  database.bulkDocs([replicated('doc', [left, one], { edited: true, _attachments: big })], { new_edits: false });
  couch.clearLog();
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
  assert.ok(couch.log.reduce((sum, { bytesOut }) => sum + bytesOut, 0) < 20_000);
});

test('attachments cost no request each', async (t) => {
  const docs = notes(100).map((doc, at) => ({ ...doc, _attachments: { [`file ${at}`]: file(`bytes of ${at}`, 0, at % 2 ? 'text/plain' : 'image/png') } }));
  const { couch, database, url } = await scene(t, { docs });
  const db = local(t, fast);
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
  assert.ok(couch.count() < 25, `${couch.count()} requests`);
});

test('names that need care in a URL, many on one document, and empty ones', async (t) => {
  const names = ['a+b.pdf', 'dir/x.txt', '100%.txt', 'ü ñ.png', 'q?r=1', '#hash', '"quoted"', 'a b', '🍏', 'constructor', '%2F'];
  const _attachments = Object.fromEntries(names.map((name, at) => [name, file('z'.repeat(at), 1, at % 2 ? 'text/plain' : 'image/png')]));
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`n${at}`, file(String(at), 1)]));
  const { database, url } = await scene(t, { docs: [{ _id: 'p+q %41/ü', _attachments }, { _id: '_design/d', _attachments }, { _id: 'many', _attachments: many }] });
  const db = local(t, fast);
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
});

test('a large one, and one beyond the buffer', async (t) => {
  const { database, url } = await scene(t, { docs: [...notes(5), { _id: 'large', _attachments: { a: file('0123456789'.repeat(30_000), 1), b: file('t'.repeat(200_000), 1, 'text/plain') } }] });
  const db = local(t, fast);
  await db.replicate.from(url, { fastSync: { maxBufferBytes: 65536 } });
  compare(serverSnapshot(database), await snapshot(db));
});

for (const [what, action, times] of /** @type {[string, any, number][]} */ ([
  ['cut in the middle', faults.truncate(2000), 1],
  ['whose connection is lost', faults.truncate(2000, { reset: true }), 1],
  ['that is a proxy\'s page', faults.html(200), 1],
])) {
  test(`a stream of attachments ${what}`, async (t) => {
    const docs = notes(20).map((doc, at) => ({ ...doc, _attachments: { a: file(`bytes of ${at} `.repeat(30), 0) } }));
    const { couch, database, url } = await scene(t, { docs });
    const db = local(t, fast);
    const fault = couch.faults.add({ when: { path: /attachments=true/ }, times, action });
    await db.replicate.from(url);
    assert.equal(fault.hits, times);
    compare(serverSnapshot(database), await snapshot(db));
  });
}

test('a server that answers JSON where a stream was asked for', async (t) => {
  const docs = notes(20).map((doc, at) => ({ ...doc, _attachments: { a: file(`bytes of ${at}`, 0) } }));
  const { couch, database, url } = await scene(t, { docs });
  // As if it did not know multipart: the accept header is lost on the way.
  const { handle } = couch;
  couch.handle = (request, ...rest) => {
    if (/_bulk_get/.test(request.url)) request.headers = { ...request.headers, accept: 'application/json' };
    return handle.call(couch, request, ...rest);
  };
  const db = local(t, fast);
  await db.replicate.from(url);
  compare(serverSnapshot(database), await snapshot(db));
});

test('stock goes on with attachments that the plugin wrote, and the other way round', async (t) => {
  const docs = notes(20).map((doc, at) => ({ ...doc, _attachments: { a: file(`bytes of ${at}`, 0, 'text/plain') } }));
  const { database, url } = await scene(t, { docs });
  for (const orders of [[fast, stock], [stock, fast]]) {
    const name = `interchange-${Math.random()}`;
    for (const PouchDB of orders) {
      const db = new PouchDB(name, { adapter: 'memory' });
      await db.replicate.from(url);
      compare(serverSnapshot(database), await snapshot(db));
      database.put({ ...database.get('note-00003'), edit: Math.random(), _attachments: { a: { stub: true, content_type: 'text/plain' }, b: file('more', 2) } });
      await db.close();
    }
  }
});
