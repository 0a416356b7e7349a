// Loads the larger part of the package when it is first needed, once.

/** @type {Promise<typeof import('./engine.js')> | undefined} */
let loading;

/**
 * The engine, which compiles meanwhile: what it exports waits until it is ready,
 * and rejects where WebAssembly is refused. That is remembered, since a page's
 * policy does not change.
 */
export function load() {
  loading ??= import('./engine.js').then((engine) => {
    engine.ready(load.bytes).catch(() => {});
    return engine;
  });
  return loading;
}

/**
 * What `fastSync.with({ wasm })` brought: bytes, a URL or a compiled module.
 * @type {any}
 */
load.bytes = undefined;
