// Brings a fresh clone to where it can build: tells what it installs and why,
// or what is missing and how to get it. It installs nothing that is there, and
// does not know what is built with the tools. Only Node's own modules are used.
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { output, root, run, say, Told } from './run.mjs';

const wasmTarget = 'wasm32-unknown-unknown';

export function needNode() {
  if (olderThan(process.versions.node, '20.11')) {
    throw new Told(`Node 20.11 or later is needed; this is ${process.versions.node}. See https://nodejs.org`);
  }
}

/** The npm packages that package-lock.json names, at its versions. */
export async function needPackages() {
  if (packagesAreCurrent()) return;
  say('Installing the npm packages of package-lock.json into node_modules (they build, test and serve the demo)');
  // Install scripts would fetch or compile things that nothing here needs.
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
}

/**
 * Compared by content, because a checkout gives every file a new time.
 */
function packagesAreCurrent() {
  const installedFile = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const installed = packagesOf(installedFile);
  // Optional ones are for other platforms.
  return Object.entries(wanted).every(
    ([path, entry]) => path === '' || entry.optional || installed[path]?.version === entry.version,
  );
}

/**
 * @param {string} file
 * @returns {Record<string, { version?: string, optional?: boolean }>}
 */
function packagesOf(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages;
}

/** cargo, a linker and the wasm target. */
export async function needRust() {
  if (output('cargo', ['--version']) === null) {
    if (output('rustup', ['--version']) === null) {
      throw new Told('Rust is missing. Install rustup from https://rustup.rs (or your system\'s packages), then run this again.');
    }
    // Whoever switched off rustup's own installing of toolchains wants to be asked.
    if (process.env.RUSTUP_AUTO_INSTALL === '0') {
      throw new Told('rustup has no stable toolchain. `rustup toolchain install stable` brings it.');
    }
    say('Installing the stable Rust toolchain with rustup (the engine is written in Rust)');
    await run('rustup', ['toolchain', 'install', 'stable', '--profile', 'minimal']);
  }
  const minimum = /^rust-version = "(.+)"/m.exec(read('Cargo.toml'))?.[1] ?? '0';
  const version = /\d+\.\d+\.\d+/.exec(output('rustc', ['--version']) ?? '')?.[0] ?? '0';
  if (olderThan(version, minimum)) {
    throw new Told(`Rust ${minimum} or later is needed; this is ${version}. \`rustup update stable\` brings it.`);
  }
  if (output('cc', ['--version']) === null) {
    await needDebian('a C linker (cc), which cargo needs for build scripts', ['gcc', 'libc6-dev']);
  }
  const libdir = output('rustc', ['--print', 'target-libdir', '--target', wasmTarget]);
  if (!libdir || !existsSync(libdir)) {
    if (output('rustup', ['--version']) === null) {
      throw new Told(`Rust's standard library for ${wasmTarget} is missing, and so is rustup, which would add it. Install it from your system's packages or install rustup from https://rustup.rs.`);
    }
    say(`Adding Rust's ${wasmTarget} target (the engine runs as WebAssembly)`);
    await run('rustup', ['target', 'add', wasmTarget]);
  }
}

/** rustfmt and clippy, which a minimal toolchain lacks. */
export async function needRustLints() {
  for (const [program, component] of [['cargo-fmt', 'rustfmt'], ['cargo-clippy', 'clippy']]) {
    if (output(program, ['--version']) !== null) continue;
    say(`Adding Rust's ${component} (lint)`);
    await run('rustup', ['component', 'add', component]);
  }
}

/**
 * The wasm-bindgen program of exactly the crate's version: the two speak a
 * format of their own that changes between versions.
 * @returns {Promise<string>} how to start it
 */
export async function needWasmBindgen() {
  const version = /name = "wasm-bindgen"\nversion = "(.+)"/.exec(read('Cargo.lock'))?.[1];
  if (!version) throw new Told('Cargo.lock names no version of wasm-bindgen');
  const own = join(root, '.tools', 'bin', 'wasm-bindgen');
  const found = ['wasm-bindgen', own].find((path) => output(path, ['--version']) === `wasm-bindgen ${version}`);
  if (found) return found;
  say(`Installing wasm-bindgen-cli ${version} into .tools with cargo (it writes the JavaScript glue of the engine; this takes some minutes, once)`);
  await run('cargo', ['install', 'wasm-bindgen-cli', '--version', version, '--locked', '--root', join(root, '.tools')]);
  return own;
}

/** What a build needs; the answer is how to start wasm-bindgen. */
export async function needBuildTools() {
  needNode();
  await needRust();
  await needPackages();
  return needWasmBindgen();
}

/**
 * A Chromium for the tests, or null and a word on how to get one.
 * `CHROMIUM` names another than those on PATH.
 */
export async function findChromium() {
  const find = () => process.env.CHROMIUM ?? onPath(['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']);
  if (find()) return find();
  try {
    await needDebian('Chromium, for the browser tests', ['chromium']);
  } catch (error) {
    if (!(error instanceof Told)) throw error;
    say(`${error.message}\nOr name one you have: CHROMIUM=/path/to/chromium npm test`);
  }
  return find() ?? null;
}

/**
 * @param {string} what for the person who reads along
 * @param {string[]} packages Debian's names
 */
export async function needDebian(what, packages) {
  const isRoot = process.getuid?.() === 0;
  const command = `apt-get install ${packages.join(' ')}`;
  if (!isRoot || output('apt-get', ['--version']) === null) {
    throw new Told(`Missing: ${what}. On Debian or Ubuntu: sudo ${command}`);
  }
  say(`Installing ${what}: ${command}`);
  const quiet = { DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-qq'], quiet);
  await run('apt-get', ['install', '-qq', '-y', '--no-install-recommends', ...packages], quiet);
}

/** @param {string[]} names */
function onPath(names) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

/** @param {string} file */
function read(file) {
  return readFileSync(join(root, file), 'utf8');
}

/**
 * @param {string} version
 * @param {string} minimum
 */
function olderThan(version, minimum) {
  const [a, b] = [version, minimum].map((text) => text.split('.').map(Number));
  return a[0] !== b[0] ? a[0] < b[0] : (a[1] ?? 0) < (b[1] ?? 0);
}
