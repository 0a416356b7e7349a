// Loads the larger part of the package when it is first needed, once.

/** @type {Promise<typeof import('./engine.js')> | undefined} */
let loading;

/**
 * The engine, ready to run. Rejects where WebAssembly is refused; that is
 * remembered, since a page's policy does not change.
 */
export function load() {
  loading ??= import('./engine.js').then((engine) => engine.ready(load.bytes).then(() => engine));
  return loading;
}

/**
 * What `fastSync.with({ wasm })` brought: bytes, a URL or a compiled module.
 * @type {any}
 */
load.bytes = undefined;
