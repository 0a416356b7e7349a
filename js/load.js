// Loads the larger part of the package when it is first needed, once.

/** @type {Promise<typeof import('./engine.js')> | undefined} */
let code;

/**
 * What the first replication needs. The engine compiles meanwhile: what is
 * exported waits until it is ready, and rejects where WebAssembly is refused.
 * That is remembered, since a page's policy does not change.
 */
export async function load() {
  const engine = await load.code();
  engine.ready(load.bytes).catch(() => {});
  return engine;
}

/** The JavaScript alone. A chunk that could not be fetched may be there the next time. */
load.code = () => {
  code ??= import('./engine.js').catch((error) => {
    code = undefined;
    throw error;
  });
  return code;
};

/**
 * What `fastSync.with({ wasm })` brought: bytes, a URL or a compiled module.
 * @type {any}
 */
load.bytes = undefined;
