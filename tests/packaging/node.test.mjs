// The tarball in Node, as ES module and CommonJS, with each way to get a PouchDB.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderWithPackage, output, tarball, write } from './support/folders.mjs';
import { assertSyncedByThePlugin, startNotes, syncOnce } from './support/sync.mjs';

const memory = `{ adapter: 'memory' }`;
const pouches = {
  pouchdb: { adapter: `{ prefix: './' }`, imports: { PouchDB: 'pouchdb' }, plugins: [] },
  'pouchdb-node': { adapter: `{ prefix: './' }`, imports: { PouchDB: 'pouchdb-node' }, plugins: [] },
  'pouchdb-core with plugins': {
    adapter: memory,
    imports: { PouchDB: 'pouchdb-core', memory: 'pouchdb-adapter-memory', http: 'pouchdb-adapter-http', replication: 'pouchdb-replication' },
    plugins: ['memory', 'http', 'replication'],
  },
};
const bytes = `{ wasm: readFileSync('node_modules/pouchdb-fast-sync/dist/engine.wasm') }`;
const loaders = [
  { loader: 'an ES module', file: 'main.mjs', source: esModule },
  { loader: 'CommonJS', file: 'main.cjs', source: commonJs },
];
const entries = {
  'pouchdb-fast-sync': 'fastSync',
  'pouchdb-fast-sync/slim': `fastSync.with(${bytes})`,
};

for (const [pouch, { adapter, imports, plugins }] of Object.entries(pouches)) {
  for (const { loader, file, source } of loaders) {
    for (const [entry, plugin] of Object.entries(entries)) {
      if (entry.endsWith('slim') && pouch !== 'pouchdb') continue;
      test(`${entry} as ${loader}, ${pouch}`, async (t) => {
        const couch = await startNotes(t);
        const body = `
          for (const one of [${[...plugins, plugin]}]) PouchDB.plugin(one);
          const outcome = await (${syncOnce})(PouchDB, '${couch.url}/notes', ${adapter});
          console.log(JSON.stringify({ outcome, named: [typeof getDocs, typeof bulkGet] }));`;
        const folder = await folderWithPackage(t, { [file]: source({ ...imports, fastSync: entry }, entry, body) });
        const { outcome, named } = JSON.parse(await output(process.execPath, [file], folder));
        assertSyncedByThePlugin(outcome, couch);
        assert.deepEqual(named, ['function', 'function']);
      });
    }
  }
}

test('npm installs it beside PouchDB without a complaint, and nothing more', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'pouchdb-fast-sync-install-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await write(folder, { 'package.json': '{ "dependencies": { "pouchdb-core": "9.0.0" } }' });
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--strict-peer-deps', await tarball()];
  await output('npm', args, folder);
  const installed = await readdir(join(folder, 'node_modules'));
  assert.ok(installed.includes('pouchdb-fast-sync'));
  assert.ok(!installed.includes('pouchdb') && !installed.includes('@types'), String(installed));
});

/**
 * @param {Record<string, string>} imports
 * @param {string} entry
 * @param {string} body
 */
function esModule(imports, entry, body) {
  const lines = Object.entries(imports).map(([name, from]) => `import ${name} from '${from}';`);
  return `${lines.join('\n')}
    import { getDocs, bulkGet } from '${entry}';
    import { readFileSync } from 'node:fs';
    ${body}`;
}

/**
 * @param {Record<string, string>} imports
 * @param {string} entry
 * @param {string} body
 */
function commonJs(imports, entry, body) {
  const lines = Object.entries(imports).map(([name, from]) =>
    name === 'fastSync' ? `const fastSync = require('${from}');` : `const ${name} = require('${from}').default ?? require('${from}');`);
  return `${lines.join('\n')}
    const { getDocs, bulkGet } = require('${entry}');
    const { readFileSync } = require('node:fs');
    (async () => { ${body} })();`;
}
