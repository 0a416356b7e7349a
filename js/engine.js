// The part that is loaded with the first replication: the WebAssembly, and what
// drives it. Everything behind `load()` is reached from here.
import init from '../pkg/engine.js';
import { bytes } from '../pkg/engine-bytes.js';

export { open } from './links.js';
export { bulkGet, getDocs } from './get-docs.js';

/** @type {Promise<any> | undefined} */
let started;

/**
 * Compiles and starts the engine, once.
 * @param {any} [given] bytes, a URL or a compiled module; without it, those inlined
 * @throws where WebAssembly is refused, or the bytes are not the engine's
 */
export function ready(given) {
  const source = given ?? bytes();
  if (!source) throw new TypeError('fastSync: the slim build needs fastSync.with({ wasm })');
  started ??= init({ module_or_path: source });
  return started;
}
