// npm run www [-- --port N --notes N]: sets up, builds the page into www/dist, and serves it with an embedded server behind
// it, until Ctrl-C. What serves it (www/serve.mjs) takes these arguments.
import { build } from './lib/build.mjs';
import { exitCode, script } from './lib/run.mjs';

await script(async () => {
  await build();
  // Not before: it imports esbuild, which a fresh clone has only now.
  const { buildPage } = await import('./lib/page.mjs');
  await buildPage();
  return exitCode(process.execPath, ['www/serve.mjs', ...process.argv.slice(2)]);
});
