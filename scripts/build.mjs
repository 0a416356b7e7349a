// The one build door: node scripts/build.mjs [--dev] [--check]
//   --dev    leaves out the optimiser of the wasm
//   --check  fails when a size is over its budget
import { parseArgs } from 'node:util';
import { build } from './lib/build.mjs';
import { script } from './lib/run.mjs';

await script(async () => {
  const { values } = parseArgs({ options: { dev: { type: 'boolean' }, check: { type: 'boolean' } } });
  await build(values);
});
