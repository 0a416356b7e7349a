// Cross-origin rules as CouchDB applies them: the preflight's answer and the headers of the rest.
// CouchDB refuses a preflight by not treating it as one: it then falls through to a 405.

const SUPPORTED_HEADERS = ['accept', 'accept-language', 'authorization', 'content-length', 'content-range',
  'content-type', 'destination', 'expires', 'if-match', 'last-modified', 'origin', 'pragma',
  'x-couch-full-commit', 'x-couch-id', 'x-couch-persist', 'x-couchdb-www-authenticate',
  'x-http-method-override', 'x-requested-with', 'x-couchdb-vhost-path'];
const EXPOSED = 'content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, '
  + 'x-couch-update-newrev, x-couchdb-body-time';

/**
 * @typedef {{ origins?: string[], credentials?: boolean, methods?: string, headers?: string[],
 *   maxAge?: number }} Cors
 */

/** @type {Required<Cors>} */
export const DEFAULT_CORS = {
  origins: ['*'],
  credentials: true,
  methods: 'GET, PUT, POST, HEAD, DELETE, COPY',
  headers: SUPPORTED_HEADERS,
  maxAge: 600,
};

/** @param {Required<Cors>} cors @param {string | undefined} origin */
const isAllowed = (cors, origin) =>
  origin !== undefined && (cors.origins.includes('*') || cors.origins.includes(origin));

/**
 * @param {Required<Cors> | null} cors
 * @param {import('node:http').IncomingHttpHeaders} headers
 * @returns {Record<string, string>}
 */
export function corsHeaders(cors, { origin }) {
  if (!cors || !isAllowed(cors, origin)) return {};
  return {
    'Access-Control-Allow-Origin': /** @type {string} */ (origin),
    ...(cors.credentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
    'Access-Control-Expose-Headers': EXPOSED,
  };
}

/**
 * @param {Required<Cors> | null} cors
 * @param {import('node:http').IncomingHttpHeaders} headers
 * @returns {import('./http.mjs').Answer | null} null: this is no preflight that CouchDB would grant
 */
export function preflight(cors, headers) {
  const method = headers['access-control-request-method'];
  if (!cors || !method || !isAllowed(cors, headers.origin)) return null;
  const asked = headers['access-control-request-headers'] ?? '';
  const names = asked.split(',').map((name) => name.trim().toLowerCase()).filter(Boolean);
  if (!cors.methods.split(/,\s*/).includes(method)) return null;
  if (names.some((name) => !cors.headers.includes(name))) return null;
  return {
    status: 204,
    headers: {
      'Access-Control-Allow-Origin': /** @type {string} */ (headers.origin),
      'Access-Control-Allow-Methods': cors.methods,
      'Access-Control-Allow-Headers': asked,
      'Access-Control-Max-Age': String(cors.maxAge),
      ...(cors.credentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
    },
    body: '',
  };
}
