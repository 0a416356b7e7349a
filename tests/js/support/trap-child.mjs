// A program of its own: replications in which the engine stops at one of the calls into it, as
// at a trap, and at every later one. Called with the direction and the number of the call, 0 for
// none; every other one is done before it stops. Tells how many there were, and what came of it.

import { freshPouch, local } from './pouches.mjs';
import fastSync from '../../../dist/index.js';
import { notes, replicated, rev, scene } from './scene.mjs';
import { compare, serverSnapshot, snapshot } from './snapshot.mjs';

const [, , direction, number] = process.argv;
const at = Number(number);
let calls = 0;
/** Calls that another one makes, by way of what it imports, stop with that. */
let depth = 0;
const { Instance } = WebAssembly;
/** @param {(...args: any[]) => any} call @returns {(...args: any[]) => any} */
const stopping = (call) => (...args) => {
  if (depth > 0) return call(...args);
  calls += 1;
  const stops = at > 0 && calls >= at;
  depth += 1;
  try {
    const answer = calls === at && at % 2 === 0 || !stops ? call(...args) : undefined;
    if (stops) throw new WebAssembly.RuntimeError('unreachable');
    return answer;
  } finally {
    depth -= 1;
  }
};
/** @type {any} */ (WebAssembly).Instance = function (/** @type {any} */ module, /** @type {any} */ imports) {
  const { exports } = new Instance(module, imports);
  return { exports: Object.fromEntries(Object.entries(exports).map(([name, value]) =>
    [name, typeof value === 'function' ? stopping(/** @type {any} */ (value)) : value])) };
};

/** @type {(() => unknown)[]} */
const ends = [];
const t = /** @type {any} */ ({ after: (/** @type {() => unknown} */ end) => ends.push(end) });
const PouchDB = freshPouch().plugin(fastSync);
const picture = { 'a.txt': { content_type: 'text/plain', data: 'aGVsbG8=' } };
const docs = [
  ...notes(300).map(({ _id, text }, at) => replicated(_id, [rev(1, _id)], { text, ...(at % 40 === 0 && { _attachments: picture }) })),
  replicated('forked', [rev(2, 'a'), rev(1, 'f')], { which: 'a' }), replicated('forked', [rev(2, 'b'), rev(1, 'f')], { which: 'b' }),
];
const { database, url } = await scene(t);
const db = local(t, PouchDB);
const pushes = direction !== 'pull';
if (pushes) await db.bulkDocs(docs.slice(direction === 'sync' ? 150 : 0).map((doc) => structuredClone(doc)), { new_edits: false });
if (direction !== 'push') database.bulkDocs(docs.slice(0, direction === 'sync' ? 200 : docs.length), { new_edits: false });

const options = { batch_size: 50 };
const first = direction === 'sync' ? db.sync(url, options) : pushes ? db.replicate.to(url, options) : db.replicate.from(url, options);
await first;
const during = calls;
const { stats } = first.fastSync;
const stock = stats.stock ?? stats.pull?.stock ?? null;
compare(serverSnapshot(database), await snapshot(db));
// The engine is of no more use, the plugin is.
const again = await (pushes ? db.replicate.to(url) : db.replicate.from(url));
for (const end of ends.reverse()) await end();
console.log(JSON.stringify({ calls: during, stock, again: again.docs_written }));
