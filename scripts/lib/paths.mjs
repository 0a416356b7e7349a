// Keeps the paths of the machine that builds out of what is published: rustc
// writes the path of every source file that can panic into the program. It does
// not know what is built.
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, relative } from 'node:path';
import { output, root, Told } from './run.mjs';

/**
 * What cargo's environment has to hold. Packages are named without the folders
 * that they lie in, so that every machine writes the same bytes.
 */
export function withoutPaths() {
  const list = output('cargo', ['metadata', '--format-version', '1', '--filter-platform', 'wasm32-unknown-unknown']);
  if (list === null) throw new Told('cargo metadata failed: does Cargo.lock fit Cargo.toml, and is the registry reachable?');
  /** @type {{ packages: { manifest_path: string }[] }} */
  const { packages } = JSON.parse(list);
  const folders = new Set(packages.map(({ manifest_path }) => dirname(dirname(manifest_path))));
  // Where several fit, rustc takes the last.
  const prefixes = [sysroot(), ...folders, root].filter((path) => path !== '');
  // Not RUSTFLAGS, which spaces divide.
  return { CARGO_ENCODED_RUSTFLAGS: prefixes.map((path) => `--remap-path-prefix=${path}=`).join('\u001f') };
}

/**
 * Fails when one of the files names a place on this machine.
 * @param {string[]} files
 */
export function refusePaths(files) {
  // A home that is / or so is no sign of anything.
  const places = [sysroot(), homedir(), root].filter((path) => path.length > 4).map((path) => `${path}/`);
  for (const file of files) {
    const content = readFileSync(file);
    const found = places.find((path) => content.includes(path));
    if (found) throw new Told(`${relative(root, file)} names a path of this machine: ${found}`);
  }
}

function sysroot() {
  return output('rustc', ['--print', 'sysroot']) ?? '';
}
