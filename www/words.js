// How numbers and distances are put into words on the page.

/** @param {number} n */
export const count = (n) => n.toLocaleString('en');
/** @param {number} ms */
export const seconds = (ms) => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
/** @param {number} bytes */
export const weight = (bytes) => (bytes < 1e6 ? `${count(Math.round(bytes / 1000))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
/** @param {number} n @param {string} what in the singular */
export const many = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

/** Round trips from here, roughly, up to so many ms. @type {[number, string][]} */
const DISTANCES = [
  [0, 'this very machine'], [10, 'the same city'], [30, 'the same country'], [70, 'a neighbouring country'],
  [120, 'across a continent'], [220, 'across an ocean'], [Infinity, 'the other side of the world'],
];

/** @param {number} rtt */
export const distance = (rtt) => /** @type {[number, string]} */ (DISTANCES.find(([upTo]) => rtt <= upTo))[1];

/**
 * What ended a sync that had begun.
 * @param {import('./contestant.js').Failure} failure
 */
export function failure({ status, message }) {
  if (status === 401 || status === 403) return `the server refused it in the middle (${status}): ${message}`;
  if (status === 404) return 'the database is gone (404)';
  if (/fetch|network/i.test(message)) return 'the connection broke off, and the server cannot be reached now';
  if (/quota/i.test(message)) return 'this browser gives the page no more room for data';
  return message;
}
