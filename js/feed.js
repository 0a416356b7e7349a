// How stock would ask for a feed: the query and body of `_changes`, as its HTTP
// adapter builds them (pouchdb-adapter-http, `_changes`).

/**
 * The options with which stock's replicator is going to ask of an empty target.
 * `undefined` where there is a filter: what passes none may leave the target empty
 * for good, though it has a checkpoint, and a filter is dear to begin from nothing.
 * @param {any} opts of the replication
 */
export function expected(opts) {
  if (opts.filter || opts.view || opts.doc_ids || opts.selector || opts.since !== undefined) return undefined;
  const asked = /** @type {any} */ ({ style: opts.style || 'all_docs', query_params: opts.query_params });
  for (const name of ['heartbeat', 'timeout']) if (name in opts) asked[name] = opts[name];
  return asked;
}

/**
 * @param {any} opts of `changes()`
 * @returns {{ query: string, body: string | null, filtered: boolean }}
 */
export function request(opts) {
  /** @type {Record<string, any>} */
  const params = {};
  if (opts.timeout) params.timeout = opts.timeout;
  if (opts.style) params.style = opts.style;
  if (opts.heartbeat) params.heartbeat = opts.heartbeat;
  if (typeof opts.filter === 'string') params.filter = opts.filter;
  if (typeof opts.view === 'string') Object.assign(params, { filter: '_view', view: opts.view });
  Object.assign(params, opts.query_params);
  let body = null;
  if (opts.doc_ids) {
    params.filter = '_doc_ids';
    body = JSON.stringify({ doc_ids: opts.doc_ids });
  } else if (opts.selector) {
    params.filter = '_selector';
    body = JSON.stringify({ selector: opts.selector });
  }
  const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  return { query, body, filtered: 'filter' in params };
}

/**
 * @param {string} query
 * @param {any} since
 * @param {number} limit
 * @param {number} interval of sequences; 0 for every one
 */
export function path(query, since, limit, interval) {
  const after = typeof since === 'object' ? JSON.stringify(since) : since;
  const own = `since=${encodeURIComponent(after)}&limit=${limit}${interval ? `&seq_interval=${interval}` : ''}`;
  return `_changes?${query}${query && '&'}${own}`;
}

/**
 * The engine reads a normal feed, ascending, without bodies.
 * @param {any} opts of `changes()`
 */
export function understood(opts) {
  return !opts.continuous && !opts.live && !opts.descending && !opts.include_docs && !opts.attachments
    && !opts.conflicts && typeof opts.filter !== 'function' && opts.limit > 0;
}
