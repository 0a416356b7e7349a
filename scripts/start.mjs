// npm start [-- URL]: sets up, builds, and runs the demo, whose arguments these are.
import { build } from './lib/build.mjs';
import { exitCode, script } from './lib/run.mjs';

await script(async () => {
  await build();
  return exitCode(process.execPath, ['demo/start.mjs', ...process.argv.slice(2)]);
});
