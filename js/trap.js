// A trap stops the WebAssembly in the middle of what it was doing: nothing of it is of
// use any more, in no replication. Whoever waits for it, or might ask it, is told, and
// stock goes on.

/** @type {Set<(cause: any) => void>} */
const told = new Set();
/** What was thrown. @type {{ cause: any } | undefined} */
let trap;

/** @param {any} cause what was thrown */
export function trapped(cause) {
  if (trap) return;
  trap = { cause };
  for (const tell of told) tell(cause);
  told.clear();
}

export function hasTrapped() {
  return trap !== undefined;
}

/** @param {any} thrown */
export function isTrap(thrown) {
  return thrown instanceof WebAssembly.RuntimeError;
}

/**
 * @param {(cause: any) => void} tell
 * @returns {() => void} not any more
 */
export function whenTrapped(tell) {
  if (trap) tell(trap.cause);
  else told.add(tell);
  return () => told.delete(tell);
}

/**
 * A promise of the engine's, which a trap would leave open for ever.
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export function unlessTrapped(promise) {
  return new Promise((resolve, reject) => {
    const settled = whenTrapped(reject);
    promise.then(resolve, reject).finally(settled);
  });
}
