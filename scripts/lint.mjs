// npm run lint: everything that can be said about the code without running it.
// All of it is run, so that one pass shows all there is to do.
import { join } from 'node:path';
import { build } from './lib/build.mjs';
import { exitCode, say, script, Told } from './lib/run.mjs';
import { needRustLints } from './lib/setup.mjs';

const wasm = ['--target', 'wasm32-unknown-unknown'];
const strict = ['--', '-D', 'warnings'];
const strictDoc = { RUSTDOCFLAGS: '-D warnings' };
const bin = (/** @type {string} */ name) => join('node_modules', '.bin', name);

/** @type {[command: string, args: string[], env?: Record<string, string>][]} */
const checks = [
  ['cargo', ['fmt', '--check']],
  ['cargo', ['clippy', '--locked', '--all-targets', ...strict]],
  // The tests and their crates are native only.
  ['cargo', ['clippy', '--locked', '--lib', ...wasm, ...strict]],
  ['cargo', ['doc', '--locked', '--no-deps'], strictDoc],
  ['cargo', ['doc', '--locked', '--no-deps', ...wasm], strictDoc],
  [bin('eslint'), ['.']],
  // The plugin: a browser's world, strict. The scripts: Node's, strict. Tests,
  // demo and bench: loose, they hand wrong things over on purpose.
  [bin('tsc'), ['-p', 'tsconfig.json']],
  [bin('tsc'), ['-p', 'tsconfig.scripts.json']],
  [bin('tsc'), ['-p', 'tsconfig.tests.json']],
  // The API reference says what the type definitions say.
  ['node', ['scripts/docs.mjs', '--check']],
];

await script(async () => {
  // What the tests import, and the types of the engine's glue, are built.
  await build();
  await needRustLints();
  const failed = [];
  for (const [command, args, env] of checks) {
    const line = `${command} ${args.join(' ')}`.replace(/^node_modules\/.bin\//, '');
    say(`\n== ${line}`);
    if ((await exitCode(command, args, env)) !== 0) failed.push(line);
  }
  if (failed.length > 0) throw new Told(`Lint found something in:\n  ${failed.join('\n  ')}`);
  say('\nLint found nothing.');
});
