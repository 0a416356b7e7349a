// A pull from a server that misbehaves: what came of it, whether the checkpoint stayed behind what
// was written, whether a password got out, and whether a later pull sets everything right.

import assert from 'node:assert/strict';
import { format, inspect } from 'node:util';
import { counter } from './alike.mjs';
import { observe } from './observe.mjs';
import { local } from './pouches.mjs';
import { scene } from './scene.mjs';
import { compare, serverSnapshot, snapshot } from './snapshot.mjs';

const PASSWORD = 'hunter2-geheim';
const secrets = [PASSWORD, Buffer.from(`admin:${PASSWORD}`).toString('base64')];

/** What anybody writes to the console, which goes on to it. */
let printed = '';
for (const name of /** @type {const} */ (['log', 'info', 'warn', 'error', 'debug'])) {
  const print = console[name];
  console[name] = (...args) => {
    printed += `${format(...args)}\n`;
    print(...args);
  };
}

/**
 * @typedef {{ docs?: number | any[], options?: any, prepare: (stage: { couch: any, database: any, db: any }) => any,
 *   heal?: (stage: { couch: any, database: any }) => void, equalAfterwards?: boolean }} Hurt
 */

/**
 * @param {import('node:test').TestContext} t
 * @param {any} PouchDB
 * @param {Hurt} given `prepare` breaks the server, `heal` mends what is no fault of its list
 */
export async function hurt(t, PouchDB, { docs = 60, options = {}, prepare, heal, equalAfterwards = true }) {
  const { couch, database } = await scene(t, { docs, users: { admin: PASSWORD } });
  const url = couch.dbUrl('db', { user: 'admin' });
  const db = local(t, PouchDB);
  await prepare({ couch, database, db });
  const order = [...database.docs.keys()];
  let reached = 0;
  let debugged = '';
  // Stock's own messages name databases by their whole URL.
  const debug = (/** @type {any[]} */ args) => { if (args[0] === 'fast-sync') debugged += `${format(...args)}\n`; };
  PouchDB.on('debug', debug);
  const replication = db.replicate.from(url, { ...options });
  replication.on('checkpoint', (/** @type {any} */ { checkpoint }) => { reached = Math.max(reached, counter(checkpoint) || 0); });
  const seen = await observe(replication).ended;
  const stats = replication.fastSync?.stats;
  const { rows } = await db.allDocs({ keys: order });
  const written = new Set(rows.filter((/** @type {any} */ row) => row.value).map((/** @type {any} */ row) => row.id));
  const atServer = [...database.locals.values()].map(({ body }) => counter(/** @type {any} */ (body).last_seq));
  PouchDB.removeListener('debug', debug);
  const told = `${printed} ${debugged} ${inspect(seen.error)} ${seen.error?.stack} ${JSON.stringify(seen.error)} ${seen.error?.message} ${JSON.stringify(stats)}`;
  for (const secret of secrets) assert.ok(!told.includes(secret), 'no password gets out');
  const requests = couch.log.length;

  couch.faults.clear();
  heal?.({ couch, database });
  const again = await observe(db.replicate.from(url, { ...options })).ended;
  assert.equal(again.error, undefined, 'a following sync completes');
  if (equalAfterwards) compare(serverSnapshot(database), await snapshot(db), 'the server and the target');
  return { ...seen, stats, reached, atServer, written, order, requests, couch, database, db, url };
}

/**
 * Everything up to the checkpoint is there. The feed of a scripted server is in the order of its
 * documents, so that a seq's counter is a position.
 * @param {{ reached: number, atServer: number[], written: Set<string>, order: string[] }} seen
 */
export function checkpointLags({ reached, atServer, written, order }) {
  for (const seq of [reached, ...atServer]) {
    const lost = order.slice(0, seq).filter((id) => !written.has(id));
    assert.deepEqual(lost, [], `written up to the checkpoint at ${seq}`);
  }
}
