// The type definitions, compiled by the TypeScript of today and of the last
// JavaScript-written line, as a program that uses them sees them.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderWithPackage, neighbourhood, output } from './support/folders.mjs';

const compilers = { 'TypeScript 7': 'typescript/bin/tsc', 'TypeScript 5': 'typescript5/bin/tsc' };
const resolutions = {
  node16: { module: 'node16', moduleResolution: 'node16' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

/** @param {string} entry */
const asModule = (entry) => `
  import PouchDB from 'pouchdb';
  import fastSync, { getDocs, bulkGet } from '${entry}';
  ${use}`;

/** @param {string} entry */
const asCommonJs = (entry) => `
  import PouchDB = require('pouchdb');
  import fastSync = require('${entry}');
  import { getDocs, bulkGet } from '${entry}';
  PouchDB.plugin(fastSync.default);
  ${use}`;

const use = `
  PouchDB.plugin(fastSync);
  PouchDB.plugin(fastSync.with({ concurrency: 2, wasm: new Uint8Array() }));
  interface Note { text: string }
  const db = new PouchDB<Note>('notes');
  const pull = db.replicate.from('http://couch/notes', { live: true, fastSync: { maxBufferBytes: 8e6 } });
  const both = db.sync('http://couch/notes', { fastSync: false });
  const plain = PouchDB.replicate('http://couch/notes', db, { batch_size: 7, fastSync: {} });
  pull.on('progress', (progress) => { const n: number = progress.docs_written; n.toFixed(); });
  pull.on('change', (change) => { const n: number = change.docs_written; n.toFixed(); });
  const bytes: number | undefined = pull.fastSync?.stats.bytes;
  const found: Promise<{ ok: boolean; docs: object[] }> = getDocs(db, db, { a: { missing: ['1-x'] } }, { cancelled: false });
  bulkGet(db, { docs: [{ id: 'a', rev: '1-x' }], revs: true }).then(({ results }) => results[0].docs);
  // @ts-expect-error there is no such option
  db.replicate.from('http://couch/notes', { fastSync: { cuncurrency: 2 } });
  // @ts-expect-error not of this type
  fastSync.with({ concurrency: 'all' });
  both.cancel(); plain.cancel(); bytes?.toFixed(); found.then(() => {});
`;

for (const [compiler, bin] of Object.entries(compilers)) {
  for (const [resolution, options] of Object.entries(resolutions)) {
    test(`${compiler}, moduleResolution ${resolution}`, async (t) => {
      const entries = ['pouchdb-fast-sync', 'pouchdb-fast-sync/slim'];
      const files = Object.fromEntries(entries.flatMap((entry, n) => [
        [`module${n}.mts`, asModule(entry)],
        // A bundler's resolution knows no CommonJS of its own.
        ...(resolution === 'node16' ? [[`common${n}.cts`, asCommonJs(entry)]] : []),
      ]));
      // The definitions of PouchDB and Node contradict each other in some versions; ours are looked at below.
      const compilerOptions = { ...options, strict: true, noEmit: true, skipLibCheck: true, esModuleInterop: true, target: 'es2022', types: [] };
      const config = { compilerOptions, files: Object.keys(files) };
      const folder = await folderWithPackage(t, { ...files, 'tsconfig.json': JSON.stringify(config) });
      await output(process.execPath, [join(await neighbourhood(), 'node_modules', bin), '-p', '.'], folder);
    });
  }
}

test('the definitions themselves hold no mistake', async (t) => {
  const folder = await folderWithPackage(t, {
    'all.mts': `import 'pouchdb-fast-sync'; import 'pouchdb-fast-sync/slim';`,
    'all.cts': `import a = require('pouchdb-fast-sync'); import b = require('pouchdb-fast-sync/slim'); a; b;`,
  });
  const tsc = join(await neighbourhood(), 'node_modules', compilers['TypeScript 7']);
  const args = ['--noEmit', '--strict', '--module', 'node16', '--pretty', 'false', 'all.mts', 'all.cts'];
  const said = await output(process.execPath, [tsc, ...args], folder).catch((error) => String(error));
  assert.deepEqual(said.split('\n').filter((line) => line.includes('pouchdb-fast-sync/')), []);
});
