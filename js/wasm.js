// Compiles and starts the WebAssembly, once.
import init from '../pkg/engine.js';

/** @type {Promise<any> | undefined} */
let started;

/**
 * @param {any} [given] bytes, a URL or a compiled module; without it, those inlined
 * @throws where WebAssembly is refused, or the bytes are not the engine's
 */
export function ready(given) {
  started ??= start(given);
  return started;
}

/** @param {any} given */
async function start(given) {
  // A module of its own: the first requests leave before it is read.
  const source = given ?? (await import('../pkg/engine-bytes.js')).bytes();
  if (!source) throw new TypeError('fastSync: the slim build needs fastSync.with({ wasm })');
  return init({ module_or_path: source });
}
