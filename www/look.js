// A database that a person names: is it there, may this page read it, and in which words is a mistake told?
//
// Decides the words. Only reads, by plain requests: a handle of PouchDB would create a database that is missing. A browser
// does not tell a page why a request failed, so that the reasons are found out one by one.

/** How long a server may take to say something, in ms. */
const PATIENCE = 15_000;

/** What a person can put right, in words for that person. */
export class Mistake extends Error {
  /** @param {string} message @param {string} [field] the input to look at */
  constructor(message, field = 'url') {
    super(message);
    this.field = field;
  }
}

/** @typedef {{username: string, password: string}} Auth */
/** @typedef {{url: string, auth?: Auth, docs: number, updateSeq: string}} Database */

/**
 * The parts of what was typed. A login in the URL is taken out of it.
 * @param {string} text
 * @returns {{url: string, auth?: Auth}}
 */
export function parse(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    // Not repeated: what cannot be parsed may hold a password anywhere.
    throw new Mistake('This is no URL. Write it as https://host:6984/database.');
  }
  if (!/^https?:$/.test(url.protocol)) throw new Mistake(`A database is reached by http or https, not by ${url.protocol}`);
  const [username, password] = [decode(url.username), decode(url.password)];
  url.username = url.password = url.hash = url.search = '';
  if (!/[^/]/.test(url.pathname)) throw new Mistake(`${url.origin} is a server. Add the name of a database, as in ${url.origin}/notes.`);
  return { url: url.href, ...(username && { auth: { username, password } }) };
}

/** @param {string} url @param {Auth} [auth] @param {AbortSignal} [signal] @returns {Promise<Database>} */
export async function lookAt(url, auth, signal) {
  const response = await ask(url, auth, signal);
  const body = await response.json().catch(() => undefined);
  const { status } = response;
  if (status === 401 || status === 403) {
    throw new Mistake(auth
      ? `The server does not let “${auth.username}” in (${status}). Are the user and the password right, and may this user read the database?`
      : `The server asks who you are (${status}). Fill in a user and a password.`, auth ? 'password' : 'user');
  }
  if (status === 404) throw new Mistake(`There is no database at ${url} (404). Nothing was created.`);
  if (!response.ok) throw new Mistake(`The server answers ${status}${body?.reason ? `: ${body.reason}` : ''}.`);
  if (!body?.db_name) throw new Mistake(`${url} answers, but not as a CouchDB database does. Is the name of the database the last part of the URL?`);
  return { url, auth, docs: (body.doc_count ?? 0) + (body.doc_del_count ?? 0), updateSeq: String(body.update_seq) };
}

/** @param {string} url @param {Auth} [auth] @param {AbortSignal} [cancelled] */
async function ask(url, auth, cancelled) {
  const patience = AbortSignal.timeout(PATIENCE);
  const signal = cancelled ? AbortSignal.any([patience, cancelled]) : patience;
  const headers = { accept: 'application/json', ...(auth && { authorization: `Basic ${base64(`${auth.username}:${auth.password}`)}` }) };
  let refused = false;
  const onRefused = () => { refused = true; };
  document.addEventListener('securitypolicyviolation', onRefused);
  try {
    return await fetch(url, { headers, signal, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    if (cancelled?.aborted) throw error;
    // The event comes as a task of its own.
    await new Promise((resolve) => setTimeout(resolve));
    if (refused) throw new Mistake(`The Content-Security-Policy of this page does not let it ask ${new URL(url).origin}: its connect-src has to name it.`);
    if (patience.aborted) throw new Mistake(`${url} did not answer within ${PATIENCE / 1000} s.`);
    throw new Mistake(await reason(url, signal));
  } finally {
    document.removeEventListener('securitypolicyviolation', onRefused);
  }
}

/** Why a request failed without an answer. @param {string} url @param {AbortSignal} signal */
async function reason(url, signal) {
  const { origin, protocol, hostname } = new URL(url);
  if (!navigator.onLine) return 'This device is offline.';
  if (location.protocol === 'https:' && protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname)) {
    return `This page came by https, and browsers do not let such a page ask ${origin}, which is plain http.`;
  }
  try {
    // An answer that may not be read is one all the same.
    await fetch(url, { mode: 'no-cors', signal, credentials: 'omit', cache: 'no-store' });
  } catch {
    return `${origin} cannot be reached. Is the server running, and the address right?`;
  }
  return `${origin} answers, but does not let pages of ${location.origin} read it (CORS). On CouchDB: enable_cors = true in [chttpd], and in [cors] `
    + `origins = ${location.origin}, credentials = true, methods = GET, PUT, POST, HEAD, DELETE, headers = accept, authorization, content-type, origin, referer.`;
}

/** @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** A stray % in a password is no reason to fail. @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
