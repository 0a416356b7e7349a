// Compiles and starts the WebAssembly, once.
import init, { initSync } from '../pkg/engine.js';
import { inNode } from './platform.js';
import { hasTrapped } from './trap.js';

/** @type {Promise<any> | undefined} */
let started;

/**
 * @param {any} [given] bytes, a URL or a compiled module; without it, those inlined
 * @throws where WebAssembly is refused, or the bytes are not the engine's
 */
export function ready(given) {
  started ??= start(given);
  return hasTrapped() ? Promise.reject(new Error('the engine trapped before')) : started;
}

/** @param {any} given */
async function start(given) {
  // A module of its own: the first requests leave before it is read.
  const source = given ?? (await import('../pkg/engine-bytes.js')).bytes();
  if (!source) throw new TypeError('fastSync: the slim build needs fastSync.with({ wasm })');
  // The way that takes a URL names `Response`, at which Node loads its whole fetch.
  const compiled = inNode && (source instanceof WebAssembly.Module || ArrayBuffer.isView(source));
  return compiled ? initSync({ module: await module(source) }) : init({ module_or_path: source });
}

/** @param {any} source bytes or a module */
async function module(source) {
  return source instanceof WebAssembly.Module ? source : WebAssembly.compile(source);
}
