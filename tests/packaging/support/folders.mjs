// Clean folders with the package in them as npm would have put it: the files of
// the real tarball. What stands beside it (PouchDB, bundlers, TypeScript) is
// installed once, in a folder above all others, and found by walking up; none of
// it is below the project, so nothing of the project's own is found by accident.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));
const project = fileURLToPath(new URL('../../../', import.meta.url));

// A registry that is slow to answer must not look like a broken package.
const installLimitMs = 8 * 60_000;

/** @type {Promise<string> | undefined} */
let neighbours;
/** @type {Promise<string> | undefined} */
let packed;

/**
 * A program's output; its failure tells all that it printed.
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<string>}
 */
export async function output(command, args, cwd, timeout = 120_000) {
  try {
    // The outer test runner's settings are not for a program that is tested here.
    const { NODE_OPTIONS, NODE_TEST_CONTEXT, ...env } = process.env;
    const { stdout } = await run(command, args, { cwd, env, timeout, maxBuffer: 64e6 });
    return stdout;
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

/** The tarball that would be published. */
export function tarball() {
  packed ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pouchdb-fast-sync-tarball-'));
    process.on('exit', () => rm(folder, { recursive: true, force: true }).catch(() => {}));
    // dist/ was built before the tests; building it again here would hide a stale one.
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
    const [{ filename }] = JSON.parse(await output('npm', args, project));
    return join(folder, filename);
  })();
  return packed;
}

/** The folder above all others, with everything of fixtures/package.json installed. */
export function neighbourhood() {
  neighbours ??= (async () => {
    const lock = await readFile(join(fixtures, 'package-lock.json'), 'utf8');
    const name = createHash('sha256').update(lock).digest('hex').slice(0, 12);
    const folder = join(tmpdir(), `pouchdb-fast-sync-packaging-${userInfo().uid}`, name);
    if (existsSync(folder)) return folder;
    await mkdir(dirname(folder), { recursive: true });
    const draft = await mkdtemp(`${folder}-`);
    for (const file of ['package.json', 'package-lock.json']) await cp(join(fixtures, file), join(draft, file));
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    await output('npm', args, draft, installLimitMs);
    // Another run may have been quicker; its folder is as good.
    await rename(draft, folder).catch(() => rm(draft, { recursive: true }));
    return folder;
  })();
  return neighbours;
}

/**
 * A clean folder that has the package installed, and the given files.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [files] content by name
 */
export async function folderWithPackage(t, files = {}) {
  const folder = await mkdtemp(join(await neighbourhood(), 'case-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const home = join(folder, 'node_modules', 'pouchdb-fast-sync');
  await mkdir(home, { recursive: true });
  await output('tar', ['-xzf', await tarball(), '-C', home, '--strip-components=1'], folder);
  await write(folder, { 'package.json': '{ "type": "module" }', ...files });
  return folder;
}

/**
 * @param {string} folder
 * @param {Record<string, string>} files
 */
export async function write(folder, files) {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
}

/**
 * A file of a package that stands beside ours.
 * @param {string} path
 */
export async function neighbour(path) {
  return readFile(join(await neighbourhood(), 'node_modules', path), 'utf8');
}
