// What an error of CouchDB looks like on the wire: a status, an `error` word and a `reason`.
// Knows nothing of HTTP plumbing; whoever throws one decides only the three fields.

export class CouchError extends Error {
  /**
   * @param {number} status
   * @param {string} error
   * @param {string} reason
   * @param {object} [extra] members added to the JSON body
   */
  constructor(status, error, reason, extra = {}) {
    super(`${error}: ${reason}`);
    this.status = status;
    this.error = error;
    this.reason = reason;
    this.extra = extra;
    /** @type {Record<string, string>} */
    this.headers = {};
  }

  toJSON() {
    return { error: this.error, reason: this.reason, ...this.extra };
  }
}

/** @param {string} reason */
export const badRequest = (reason) => new CouchError(400, 'bad_request', reason);
/** @param {string} reason */
export const notFound = (reason) => new CouchError(404, 'not_found', reason);
export const conflict = () => new CouchError(409, 'conflict', 'Document update conflict.');
export const databaseMissing = () => notFound('Database does not exist.');
/** @param {string} reason */
export const forbidden = (reason) => new CouchError(403, 'forbidden', reason);
/** @param {string} reason */
export const unauthorized = (reason) => new CouchError(401, 'unauthorized', reason);
export const tooLarge = () => new CouchError(413, 'too_large', 'the request entity is too large');

/** @param {string} allowed comma-separated methods */
export function methodNotAllowed(allowed) {
  const error = new CouchError(405, 'method_not_allowed', `Only ${allowed} allowed`);
  error.headers.Allow = allowed;
  return error;
}
