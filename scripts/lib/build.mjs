// The build as one step, for the scripts that need its outcome. What is up to
// date is not built again, so this costs little before every test.
import { join } from 'node:path';
import { buildEngine } from './engine.mjs';
import { filesOf } from './files.mjs';
import { refusePaths } from './paths.mjs';
import { root } from './run.mjs';
import { needBuildTools } from './setup.mjs';
import { reportSizes } from './sizes.mjs';

/**
 * @param {{ dev?: boolean, check?: boolean }} options `dev` leaves out the
 *   optimiser of the wasm; `check` fails when a size is over its budget
 */
export async function build({ dev = false, check = false } = {}) {
  const wasmBindgen = await needBuildTools();
  await buildEngine({ wasmBindgen, dev });
  // Not before: it imports esbuild, which a fresh clone has only now.
  const { bundle } = await import('./bundle.mjs');
  const { eager } = await bundle();
  refusePaths(filesOf([join(root, 'dist')]));
  reportSizes(eager, { check });
}
