// What the engine's failures look like to the user: errors with a stable `code`,
// the HTTP status and the URL, and never a password.

/**
 * @typedef {object} Failure as the engine rejects
 * @property {string} code
 * @property {string} kind
 * @property {number} status 0 where there was no answer
 * @property {string} reason
 */

/** @param {any} thrown */
export function isFailure(thrown) {
  return typeof thrown?.code === 'string' && thrown.code.startsWith('fast_sync_') && !(thrown instanceof Error);
}

/**
 * PouchDB copies an error's own properties, and tells by `name` whether asking
 * again is of use.
 * @param {Failure} failure
 * @param {string} doing what was being done
 * @param {string} url
 */
export function toError({ code, status, reason }, doing, url) {
  const at = withoutPassword(url);
  const message = `${doing} at ${at}${status ? ` (status ${status})` : ''}: ${reason}`;
  const error = new Error(message);
  const name = status === 401 ? 'unauthorized' : status === 403 ? 'forbidden' : 'fast_sync_error';
  return Object.assign(error, { name, message, code, status: status || 500, reason: message, url: at, error: true });
}

/** @param {string} url */
export function withoutPassword(url) {
  return url.replace(/\/\/[^/@]*@/, '//');
}
