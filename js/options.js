// Which options there are, of which type, and what they are when nobody says.

/**
 * @typedef {object} Options
 * @property {number} [concurrency] most requests for documents at once, 1 to 6
 * @property {number} [maxBufferBytes] most bytes of documents read ahead, from 65536 on
 * @property {number} [stallTimeout] ms without a byte after which a request is repeated, 1000 to 2147483647
 * @property {BufferSource | string | URL | WebAssembly.Module} [wasm] the engine,
 *   for the slim build; with `fastSync.with` only
 */

/** @type {Record<string, { is: (value: any) => boolean, allowed: string }>} */
const known = {
  concurrency: { is: (n) => Number.isInteger(n) && n >= 1 && n <= 6, allowed: 'a whole number from 1 to 6' },
  maxBufferBytes: { is: (n) => Number.isFinite(n) && n >= 65536, allowed: 'a number of bytes, 65536 or more' },
  // Timers know no more.
  stallTimeout: { is: (n) => Number.isFinite(n) && n >= 1000 && n <= 2147483647, allowed: 'a number of ms, from 1000 to 2147483647' },
};

const wasm = {
  is: (/** @type {any} */ value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
  allowed: 'bytes, a URL or a WebAssembly.Module',
};

/**
 * @param {any} options
 * @param {string} where they were given
 * @returns {Options}
 * @throws {TypeError} naming the option and what is allowed
 */
export function check(options, where) {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new TypeError(`${where}: expected an object of options, got ${describe(options)}`);
  }
  const allowed = where === 'fastSync.with' ? { ...known, wasm } : known;
  for (const [name, value] of Object.entries(options)) {
    const rule = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
    if (!rule) {
      throw new TypeError(`${where}: unknown option "${name}"; there are ${Object.keys(allowed).join(', ')}`);
    }
    if (value !== undefined && !rule.is(value)) {
      throw new TypeError(`${where}: "${name}" must be ${rule.allowed}, got ${describe(value)}`);
    }
  }
  return options;
}

/**
 * The settings of one replication, or `false` for stock.
 * @param {any} given `fastSync` in the replication's options
 * @param {Options} installed
 * @returns {Options | false}
 */
export function settings(given, installed) {
  if (given === undefined || given === true) return installed;
  if (given === false) return false;
  return { ...installed, ...check(given, 'fastSync') };
}

/** @param {any} value */
function describe(value) {
  return typeof value === 'string' ? JSON.stringify(value) : Array.isArray(value) ? 'an array' : String(value);
}
