// `npm start`: one database synced three times, by stock PouchDB, by stock as an informed user sets it, and by the plugin.
//
// Decides what is shown. Without arguments it brings a server full of notes and puts it at a distance; with a URL it takes
// the database there, of which it writes nothing but what every replication writes: its checkpoints under _local/.
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { differences, inWords } from './compare.mjs';
import { corpus } from './corpus.mjs';
import { startDelay } from './delay.mjs';
import { CONTESTANTS, PLUGIN } from './pouch.mjs';
import { lookAt, RemoteError, withoutPassword } from './remote.mjs';
import { startServer } from './server.mjs';
import { count, megabytes, progressBar, seconds, table, times } from './terminal.mjs';

/** A round trip between neighbouring countries, in ms. */
const RTT = 45;
/** Documents written to the server at once. */
const FILL_BATCH = 500;
/** Memory that a database may need before a warning: it is synced into memory, three times. */
const LARGE = 500e6;
/** The share of the time for which a server computes, from which on it is what the time is spent on. */
const BOUND_FROM = 0.5;
const SHOWN_DIFFERENCES = 10;

const CONTESTANT = fileURLToPath(new URL('./contestant.mjs', import.meta.url));

/** @typedef {{url: string, total: number, skipSetup: boolean, serverBusy?: () => Promise<number>, changed?: () => Promise<boolean>, stop: () => Promise<void>}} Source */
/** @typedef {import('./contestant.mjs').Outcome & {busy?: number}} Outcome */

/** @param {string[]} argv @returns {Promise<number>} the exit code */
export async function main(argv) {
  if (argv.length > 1 || argv[0]?.startsWith('-')) {
    console.log('npm start              a server of its own, full of notes, 45 ms away\nnpm start -- URL       your database: http://user:password@host:5984/database');
    return argv[0] === '--help' || argv[0] === '-h' ? 0 : 2;
  }
  if (!existsSync(PLUGIN)) {
    console.error('The plugin is not built: run `npm run build`.');
    return 1;
  }
  /** @type {Source | undefined} */
  let source;
  try {
    source = argv[0] ? await theirs(argv[0]) : await ours();
    /** @type {Partial<Record<import('./pouch.mjs').Contestant, Outcome>>} */
    const outcomes = {};
    for (const contestant of /** @type {import('./pouch.mjs').Contestant[]} */ (Object.keys(CONTESTANTS))) {
      outcomes[contestant] = await sync(contestant, source);
    }
    return await report(outcomes, source);
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    console.error(error.message);
    return 1;
  } finally {
    await source?.stop();
  }
}

/** @returns {Promise<Source>} */
async function ours() {
  const server = await startServer();
  const delay = await startDelay({ port: server.port });
  const notes = await corpus();
  const db = `${server.origin}/notes`;
  await fetch(db, { method: 'PUT' });
  const bar = progressBar('filling the server', notes.leaves.length);
  const start = performance.now();
  for (let at = 0; at < notes.leaves.length; at += FILL_BATCH) {
    const docs = notes.leaves.slice(at, at + FILL_BATCH);
    const body = JSON.stringify({ docs, new_edits: false });
    const answer = await fetch(`${db}/_bulk_docs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    if (!answer.ok) throw new Error(`the embedded server refused the notes: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    bar.update(at + docs.length, performance.now() - start);
  }
  bar.done(performance.now() - start);
  delay.setRtt(RTT);
  console.log(`
A CouchDB-compatible server in memory holds ${count(notes.notes)} notes, made of the markdown files under node_modules:
${count(notes.edited)} edited, ${count(notes.deleted)} deleted, ${count(notes.conflicts)} in conflict, ${count(notes.attachments)} with an attachment. It is now ${RTT} ms away (round trip).
`);
  return {
    url: `http://127.0.0.1:${delay.port}/notes`, total: notes.leaves.length, skipSetup: false,
    serverBusy: server.busy,
    async stop() {
      await delay.stop();
      await server.stop();
    },
  };
}

/** @param {string} url @returns {Promise<Source>} */
async function theirs(url) {
  const remote = await lookAt(url);
  console.log(`
${remote.shown}: ${count(remote.docs)} documents${remote.bytes ? `, ${megabytes(remote.bytes)}` : ''}, synced three times into memory.
Nothing is written there but the checkpoints of the three replications (_local/ documents, which never replicate).
`);
  if (remote.bytes > LARGE) console.log('It is large: this takes a while and as much memory. Ctrl-C ends it at any time.\n');
  return {
    url, total: remote.docs, skipSetup: true,
    changed: async () => (await lookAt(url)).updateSeq !== remote.updateSeq,
    async stop() {},
  };
}

/**
 * @param {import('./pouch.mjs').Contestant} contestant @param {Source} source
 * @returns {Promise<Outcome | undefined>} nothing when it failed, which is said on the spot
 */
async function sync(contestant, { url, total, skipSetup, serverBusy }) {
  const bar = progressBar(CONTESTANTS[contestant].title, total);
  const busyBefore = await serverBusy?.();
  let busyAfter;
  const child = fork(CONTESTANT, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.send({ contestant, url, skipSetup }); // not as an argument: those are public, and the URL may hold a password
  const answer = await new Promise((resolve) => {
    child.on('message', async (/** @type {any} */ message) => {
      if ('docs' in message) bar.update(message.docs, message.ms);
      else if ('outcome' in message || 'failed' in message) resolve(message);
      if (message.synced) busyAfter = await serverBusy?.();
    });
    child.once('exit', (code, signal) => resolve({ failed: `its process ended (${signal ?? code})` }));
  });
  if (!answer.outcome) {
    bar.failed(withoutPassword(answer.failed, url));
    return undefined;
  }
  bar.done(answer.outcome.ms);
  return { ...answer.outcome, busy: busyAfter === undefined || busyBefore === undefined ? undefined : busyAfter - busyBefore };
}

/** @param {Partial<Record<import('./pouch.mjs').Contestant, Outcome>>} outcomes @param {Source} source */
async function report(outcomes, source) {
  const { stock, tuned, fast } = outcomes;
  const found = Object.fromEntries(Object.entries(outcomes).map(([name, outcome]) =>
    [name, stock && outcome ? differences(stock.description, outcome.description) : undefined]));
  const rows = Object.entries(outcomes).map(([name, outcome]) => {
    const { title } = CONTESTANTS[/** @type {import('./pouch.mjs').Contestant} */ (name)];
    if (!outcome) return [title, 'failed', '', '', '', '', ''];
    const difference = found[name];
    const same = name === 'stock' ? '(compared with)' : difference === undefined ? 'unknown' : difference.length ? `NO, ${count(difference.length)}` : 'yes';
    return [title, seconds(outcome.ms), count(outcome.requests), megabytes(outcome.bytes),
      stock ? times(stock.ms / outcome.ms) : '', tuned ? times(tuned.ms / outcome.ms) : '', same];
  });
  console.log(`\n${table(['', 'time', 'requests', 'on the wire', 'vs stock', 'vs tuned', 'same database'], rows)}\n`);
  for (const [name, list] of Object.entries(found)) {
    if (!list?.length) continue;
    console.log(`${CONTESTANTS[/** @type {import('./pouch.mjs').Contestant} */ (name)].title}, compared with stock:`);
    for (const difference of list.slice(0, SHOWN_DIFFERENCES)) console.log(`  ${inWords(difference)}`);
    if (list.length > SHOWN_DIFFERENCES) console.log(`  and ${count(list.length - SHOWN_DIFFERENCES)} more`);
    if (list.every(({ kind, losing }) => kind === 'attachments' && losing)) {
      console.log('  Stock is known to fetch the winner\'s bytes for the attachments of a losing leaf.');
    }
  }
  if (await source.changed?.()) console.log('The database was written to in the meantime, so that differences may be no fault of anybody\'s.');
  if (fast?.busy !== undefined) {
    const bound = fast.busy > fast.ms * BOUND_FROM ? ', on its one thread: that bounds this run' : '';
    console.log(`Of the plugin's ${seconds(fast.ms)} the embedded server was computing for ${seconds(fast.busy)}${bound}.\nA database of your own: npm start -- URL`);
  }
  const complete = Object.values(outcomes).every(Boolean);
  return complete && Object.values(found).every((list) => list && !list.length) ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
