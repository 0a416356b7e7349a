// The little of node:assert that shared helpers use, on a page.

/** @param {unknown} actual @param {unknown} expected @param {string} message */
function equal(actual, expected, message) {
  ok(Object.is(actual, expected), `${message}: ${actual} instead of ${expected}`);
}

/** @param {unknown} actual @param {unknown} expected @param {string} message */
function deepEqual(actual, expected, message) {
  equal(JSON.stringify(actual), JSON.stringify(expected), message);
}

/** @param {unknown} value @param {string} message */
function ok(value, message) {
  if (!value) throw new Error(message);
}

export default { equal, deepEqual, ok };
