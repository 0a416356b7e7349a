// npm run bench: sets up, builds, and runs the benchmark, whose arguments these are.
import { build } from './lib/build.mjs';
import { exitCode, script } from './lib/run.mjs';

await script(async () => {
  await build();
  return exitCode(process.execPath, ['bench/index.mjs', ...process.argv.slice(2)]);
});
