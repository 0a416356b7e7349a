// Reading and writing what is built: several builds may run in one folder at a
// time while tests read it, so a file is replaced whole, and only when it
// changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * @param {string} path
 * @param {string | Uint8Array} content
 */
export function put(path, content) {
  // PouchDB's types, where they are loaded too, quarrel with Node's over what a Buffer is.
  const bytes = /** @type {any} */ (Buffer.from(content));
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, bytes);
  renameSync(draft, path);
}

/**
 * Every file below the given files and folders, sorted.
 * @param {string[]} paths
 * @param {string} [ending]
 * @returns {string[]}
 */
export function filesOf(paths, ending = '') {
  return paths
    .filter((path) => existsSync(path))
    .flatMap((path) =>
      statSync(path).isDirectory() ? filesOf(readdirSync(path).map((name) => join(path, name)), ending) : [path],
    )
    .filter((path) => path.endsWith(ending))
    .sort();
}

/**
 * One digest of the content of files, and of a few words beside them.
 * @param {string[]} files
 * @param {string[]} words
 */
export function digest(files, words = []) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(/** @type {any} */ (readFileSync(file))).update('\0');
  return hash.update(words.join('\0')).digest('hex');
}
