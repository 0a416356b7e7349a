// From src/ to pkg/: the wasm, its JavaScript glue, and the bytes as a module.
// It does not know who imports them (js/) or how they are bundled (bundle.mjs).
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { digest, filesOf, put } from './files.mjs';
import { withoutPaths } from './paths.mjs';
import { output, root, run, say, Told } from './run.mjs';

const pkg = join(root, 'pkg');
const wasm = join(root, 'target', 'wasm32-unknown-unknown', 'release', 'pouchdb_fast_sync.wasm');

/** Functions with one caller stay apart: all in one is smaller, but compresses worse by 4 kB. */
const optimise = ['-Oz', '--one-caller-inline-max-function-size=10', '--strip-debug', '--strip-producers'];
/** Names that cross, with hashes in them, are 3 kB of what is loaded, gzipped. Prints the short ones. */
const shorten = '--minify-imports-and-exports-and-modules';

/**
 * Builds the engine unless pkg/ was made from the very same input.
 * @param {{ wasmBindgen: string, dev?: boolean }} options `dev` leaves out the
 *   optimiser: larger, but seconds faster to come by
 */
export async function buildEngine({ wasmBindgen, dev = false }) {
  const stampFile = join(pkg, 'stamp');
  const stamp = stampOf(dev);
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  say('Building the engine: cargo, wasm-bindgen' + (dev ? '' : ', wasm-opt'));
  await run('cargo', ['build', '--release', '--lib', '--target', 'wasm32-unknown-unknown'], withoutPaths());
  const draft = mkdtempSync(join(root, 'target', 'pkg-'));
  try {
    // One glue file without import.meta, which CommonJS, classic workers and
    // several bundlers cannot have; the bytes are handed in.
    const web = ['--target', 'web', '--omit-default-module-path', '--out-name', 'engine'];
    await run(wasmBindgen, [...web, '--out-dir', draft, wasm]);
    const bytes = join(draft, 'engine_bg.wasm');
    const glue = trapsTold(withoutEval(readFileSync(join(draft, 'engine.js'), 'utf8')));
    put(join(pkg, 'engine.js'), dev ? glue : optimised(bytes, glue));
    put(join(pkg, 'engine.wasm'), readFileSync(bytes));
    put(join(pkg, 'engine.d.ts'), readFileSync(join(draft, 'engine.d.ts')));
    put(join(pkg, 'engine-bytes.js'), bytesModule(readFileSync(bytes)));
    put(join(pkg, 'engine-bytes.d.ts'), 'export function bytes(): Uint8Array<ArrayBuffer>;\n');
    put(stampFile, stamp);
  } finally {
    rmSync(draft, { recursive: true });
  }
}

/** @param {boolean} dev */
function stampOf(dev) {
  const inputs = ['src', 'Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml', 'scripts/lib/engine.mjs', 'scripts/lib/paths.mjs'];
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', 'binaryen', 'package.json'), 'utf8'));
  const tools = [output('rustc', ['--version']) ?? '', version, dev ? 'dev' : 'release'];
  return digest(filesOf(inputs.map((path) => join(root, path))), tools);
}

/**
 * @param {string} file the wasm, changed in place
 * @param {string} glue
 * @returns {string} the glue with the same names
 */
function optimised(file, glue) {
  const wasmOpt = join(root, 'node_modules', 'binaryen', 'bin', 'wasm-opt');
  // The features that rustc used are read from the file's own section.
  const printed = output(process.execPath, [wasmOpt, ...optimise, shorten, file, '-o', file]);
  if (printed === null) throw new Told('failed: wasm-opt');
  /** @type {{ imports: [string, string, string][], exports: [string, string][] }} */
  const renamed = JSON.parse(printed);
  const imports = new Map(renamed.imports.map(([, name, short]) => [name, short]));
  const exports = new Map(renamed.exports);
  let found = 0;
  const shortened = glue
    .replace(/^( +)(\w+)(?=: function)/gm, (whole, indent, name) => {
      found += Number(imports.has(name));
      return indent + (imports.get(name) ?? name);
    })
    // All modules that are imported become one of this name.
    .replace(/^( +)"\.\/engine_bg\.js"(?=: )/gm, '$1"a"')
    .replace(/\bwasm\.(\w+)/g, (whole, name) => `wasm.${exports.get(name) ?? name}`);
  if (found !== imports.size) throw new Told("wasm-bindgen's glue is not of the form that engine.mjs knows");
  return shortened;
}

/**
 * Where a promise, a timer or the collector calls the engine, nobody of ours is there to
 * catch: in Node a trap would end the process.
 * @param {string} glue
 */
function trapsTold(glue) {
  const call = /try \{\n +return f\(a, state\.b, \.\.\.args\);\n +\} finally \{[^}]*\}/g;
  const registry = /(?<=new FinalizationRegistry\()(\w+) => (.*)(?=\);)/g;
  if (!call.test(glue) || !registry.test(glue)) throw new Told("wasm-bindgen's glue is not of the form that engine.mjs knows");
  const told = '} catch (error) { trapped(error); }';
  return `import { trapped } from '../js/trap.js';\n${glue.replace(call, `try { $& ${told}`).replace(registry, `$1 => { try { $2; ${told} }`)}`;
}

/**
 * js-sys knows a last resort for the global object, `new Function('return this')`,
 * where there is no globalThis. It is never reached, but a strict policy's tools
 * and a store's reviewers find it.
 * @param {string} glue
 */
function withoutEval(glue) {
  return glue.replaceAll(/new Function\(getStringFromWasm0\(\w+, \w+\)\)/g, '() => globalThis');
}

/**
 * Base64 in a string is what every bundler, <script> and file:// can carry;
 * a URL of a .wasm beside the script is not.
 * @param {Buffer} wasmBytes
 */
function bytesModule(wasmBytes) {
  return `// Written by scripts/build.mjs.
const base64 = '${wasmBytes.toString('base64')}';
export function bytes() {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
`;
}
