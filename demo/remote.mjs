// A database that a person names by its URL: is it there, and what can be said about it without showing the password?
//
// Decides in which words a mistake is told. Only reads: a handle of PouchDB would create a database that is missing, so
// this looks first, with plain requests.

/** How long a server may take to say something, in ms. */
const PATIENCE = 15_000;

export class RemoteError extends Error {}

/** @typedef {{url: string, shown: string, docs: number, bytes: number, updateSeq: string}} Remote */

/** @param {string} text @returns {Promise<Remote>} */
export async function lookAt(text) {
  const { plain, shown, headers, loggedIn } = parse(text);
  let response;
  try {
    response = await fetch(plain, { headers, signal: AbortSignal.timeout(PATIENCE) });
  } catch (error) {
    throw new RemoteError(`${shown} cannot be reached: ${reason(/** @type {any} */ (error))}`);
  }
  const body = await response.json().catch(() => undefined);
  if (response.status === 401 || response.status === 403) {
    throw new RemoteError(loggedIn
      ? `${shown} does not let this user in (${response.status}): is the password right, and percent-encoded where it has @, /, : or %?`
      : `${shown} asks who you are (${response.status}): give a user and a password, as in http://user:password@host/database`);
  }
  if (response.status === 404) throw new RemoteError(`${shown} is not there (404). Nothing was created.`);
  if (!response.ok) throw new RemoteError(`${shown} answers ${response.status}${body?.reason ? `: ${body.reason}` : ''}`);
  if (!body?.db_name) throw new RemoteError(`${shown} does not answer as a CouchDB database does`);
  return {
    url: text, shown,
    docs: (body.doc_count ?? 0) + (body.doc_del_count ?? 0),
    bytes: body.sizes?.external ?? 0,
    updateSeq: String(body.update_seq),
  };
}

/** The text with every form of the URL's password taken out. @param {string} text @param {string} url */
export function withoutPassword(text, url) {
  const { password } = new URL(url);
  if (!password) return text;
  return [password, decode(password)].reduce((clean, secret) => clean.replaceAll(secret, '…'), text);
}

/** @param {string} text */
function parse(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    // Not repeated: what cannot be parsed may hold a password anywhere.
    throw new RemoteError('that is no URL: write it as http://user:password@host:5984/database');
  }
  if (!/^https?:$/.test(url.protocol)) throw new RemoteError(`a database is reached by http or https, not by ${url.protocol}`);
  const { username, password } = url;
  url.username = url.password = '';
  if (!/[^/]/.test(url.pathname)) throw new RemoteError(`${url.origin} is a server: add the name of a database, as in ${url.origin}/notes`);
  const login = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
  return {
    plain: url.href, shown: url.href, loggedIn: Boolean(username),
    headers: { accept: 'application/json', ...(username ? { authorization: `Basic ${login}` } : {}) },
  };
}

/** A stray % in a password is no reason to fail. @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {any} error @returns {string} */
function reason(error) {
  if (error.name === 'TimeoutError') return `no answer within ${PATIENCE / 1000} s`;
  /** @type {Record<string, string>} */
  const words = {
    ECONNREFUSED: 'nothing listens there', ENOTFOUND: 'no such host', EAI_AGAIN: 'the name could not be looked up',
    ECONNRESET: 'the connection was closed', UND_ERR_SOCKET: 'the connection was closed', ETIMEDOUT: 'no answer', EHOSTUNREACH: 'no way to that host',
  };
  const { code, message } = error.cause ?? error;
  return code ? `${words[code] ?? message} (${code})` : message;
}
