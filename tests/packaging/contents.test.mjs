// What is in the tarball, judged without running it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderWithPackage, neighbourhood, output, tarball } from './support/folders.mjs';

const scripts = ['index.js', 'index.cjs', 'engine.js', 'engine.cjs', 'slim.js', 'slim.cjs', 'pouchdb-fast-sync.min.js'];

test('the tarball holds what is used, and what the README points to, and nothing else', async () => {
  const list = (await output('tar', ['-tzf', await tarball()], '/')).trim().split('\n');
  const files = list.map((name) => name.replace(/^package\//, ''));
  for (const name of ['LICENSE', 'README.md', 'HACKING.md', 'docs/api.md', 'docs/how-it-works.md', 'package.json', 'dist/engine.wasm', 'dist/index.d.ts', 'dist/index.d.cts',
    'dist/slim.d.ts', 'dist/slim.d.cts', ...scripts.map((script) => `dist/${script}`)]) {
    assert.ok(files.includes(name), `${name} is missing`);
  }
  const others = files.filter((name) => !/^(dist\/|docs\/|LICENSE$|README\.md$|HACKING\.md$|CHANGELOG\.md$|package\.json$)/.test(name));
  assert.deepEqual(others, []);
});

test('no script relies on a module system, host or loader that it cannot know', async (t) => {
  const folder = await folderWithPackage(t);
  for (const name of scripts) {
    const text = await readFile(join(folder, 'node_modules/pouchdb-fast-sync/dist', name), 'utf8');
    const forbidden = /import\.meta|\b(process|global|Buffer)\b\.|typeof (global|process|Buffer)\b|["']node:|\beval\(|new Function\b/;
    // The excerpt, because the whole would drown the answer.
    assert.equal(forbidden.exec(text)?.[0], undefined, name);
    if (!name.endsWith('.cjs')) assert.equal(/\brequire\(/.exec(text)?.[0], undefined, name);
  }
});

test('the slim entry carries no engine', async (t) => {
  const folder = await folderWithPackage(t);
  const engine = await readFile(join(folder, 'node_modules/pouchdb-fast-sync/dist/engine.wasm'));
  for (const name of ['slim.js', 'slim.cjs']) {
    const text = await readFile(join(folder, 'node_modules/pouchdb-fast-sync/dist', name), 'utf8');
    assert.ok(!text.includes(engine.toString('base64').slice(0, 100)), name);
  }
});

test('publint finds nothing', async () => {
  const base = await neighbourhood();
  await output(join(base, 'node_modules/.bin/publint'), ['run', await tarball(), '--strict'], base);
});

test('the types resolve to what is run', async () => {
  const base = await neighbourhood();
  const attw = join(base, 'node_modules/.bin/attw');
  // Neither a wasm file nor a script tag's has types. node10 does not know subpaths.
  const options = ['--profile', 'node16', '--exclude-entrypoints', './engine.wasm', './pouchdb-fast-sync.min.js'];
  await output(attw, [await tarball(), ...options], base);
});
