// `node bench/soak.mjs`: one attachment that is larger than anything else, with small documents around it.
//
// Decides nothing about speed: it shows that such a document arrives whole, what memory that takes beside stock, and when
// the small documents behind it had come. Not in the everyday suite: it moves hundreds of MB. Each contestant runs in a
// process of its own, as in the benchmark. COUCH_URL names the CouchDB; what is created there is deleted again.
import { createHash } from 'node:crypto';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CONTESTANTS, loadPouchDB } from '../demo/pouch.mjs';
import { Place } from './place.mjs';

const HERE = fileURLToPath(import.meta.url);
/** Small documents before the large one, and as many behind it. */
const AROUND = 500;
const ID = 'large', FILE = 'large.bin';

/** Bytes that do not compress, and are not held in memory together. @param {number} mb */
async function* noise(mb) {
  for (let at = 0; at < mb; at++) yield createHash('shake256', { outputLength: 1e6 }).update(String(at)).digest();
}

/** @param {number} mb */
async function digestOf(mb) {
  const hash = createHash('md5');
  for await (const piece of noise(mb)) hash.update(/** @type {any} */ (piece));
  return `md5-${hash.digest('base64')}`;
}

/** @param {Place} place @param {number} mb */
async function filled(place, mb) {
  const db = await place.create();
  const some = (/** @type {string} */ name) => JSON.stringify({ docs: Array.from({ length: AROUND }, (_, at) => ({ _id: `${name}-${at}`, at })) });
  await place.ask('POST', `/${db}/_bulk_docs`, some('before'));
  const body = /** @type {any} */ (ReadableStream).from(noise(mb));
  const answer = await fetch(`${place.url.origin}/${db}/${ID}/${FILE}`, /** @type {any} */ ({
    method: 'PUT', body, duplex: 'half', headers: { ...place.headers, 'content-type': 'application/octet-stream' },
  }));
  if (!answer.ok) throw new Error(`the attachment was answered ${answer.status}: ${await answer.text()}`);
  await place.ask('POST', `/${db}/_bulk_docs`, some('behind'));
  return db;
}

/** In a process of its own. @param {{ contestant: any, url: string, folder: string, fastOptions?: object }} job */
async function run({ contestant, url, folder, fastOptions }) {
  const PouchDB = await loadPouchDB(contestant);
  const db = new PouchDB(path.join(folder, 'local'));
  await db.info();
  try { writeFileSync('/proc/self/clear_refs', '5'); } catch { /* elsewhere the mark is the process's whole life's */ }
  const start = performance.now();
  const replication = db.replicate.from(url, { ...CONTESTANTS[/** @type {'fast'} */ (contestant)].options, ...(fastOptions ? { fastSync: fastOptions } : {}) });
  const { docs_written: docs } = await replication;
  const ms = performance.now() - start, peak = process.resourceUsage().maxRSS * 1024;
  const { _attachments } = await db.get(ID);
  await new Promise((sent) => process.send?.({ ms, peak, docs, digest: _attachments[FILE].digest}, sent));
  process.exit(0);
}

async function main() {
  const { values } = parseArgs({ options: {
    mb: { type: 'string', default: '200' }, only: { type: 'string', default: 'stock,fast' }, 'fast-options': { type: 'string' },
  } });
  const mb = Number(values.mb);
  if (!process.env.COUCH_URL) throw new Error('COUCH_URL has to name a CouchDB: the embedded server holds attachments in memory');
  const place = await Place.open();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'fast-sync-soak-'));
  try {
    const url = place.urlOf(await filled(place, mb), true);
    const digest = await digestOf(mb);
    let failed = 0;
    for (const contestant of values.only.split(',')) {
      const child = fork(HERE, ['--run'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      child.send({ contestant, url, folder: await mkdtemp(path.join(folder, contestant)), fastOptions: values['fast-options'] && JSON.parse(values['fast-options']) });
      const [said] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])]);
      const whole = said?.digest === digest && said.docs === 2 * AROUND + 1;
      failed += whole ? 0 : 1;
      console.log(said ? `${contestant.padEnd(6)} ${(said.ms / 1000).toFixed(1)} s, ${Math.round(said.peak / 1e6)} MB of memory, ${said.docs} documents, ${whole ? 'whole' : 'NOT WHOLE'}` : `${contestant} ended without an answer`);
    }
    return failed;
  } finally {
    await place.close();
    await rm(folder, { recursive: true, force: true });
  }
}

if (process.argv[2] === '--run') process.once('message', run);
else process.exitCode = await main();
