// Failures on demand: which requests fail, how often, after how many good ones, and how. An
// action works before the request is handled (it may answer in its place) or on the finished
// answer. Knows nothing of what CouchDB would have answered.

/**
 * @typedef {import('./http.mjs').Answer} Answer
 * @typedef {import('./log.mjs').LogEntry} LogEntry
 * @typedef {{ name: string,
 *   before?: (entry: LogEntry, signal: AbortSignal) => Answer | void | Promise<Answer | void>,
 *   after?: (answer: Answer, entry: LogEntry) => Answer }} Action
 * @typedef {((entry: LogEntry) => boolean) | { method?: string, path?: RegExp }} Condition
 *   `path` is tested against the path with its query
 * @typedef {{ when: Condition, times?: number, after?: number, action: Action }} Fault
 */

export class Faults {
  constructor() {
    /** @type {(Required<Fault> & { seen: number, hits: number })[]} */
    this.list = [];
  }

  /**
   * @param {Fault} fault `after` good requests, the next `times` matching ones fail
   */
  add({ when, times = 1, after = 0, action }) {
    const fault = { when, times, after, action, seen: 0, hits: 0 };
    this.list.push(fault);
    return {
      get hits() { return fault.hits; },
      remove: () => { this.list = this.list.filter((other) => other !== fault); },
    };
  }

  clear() {
    this.list = [];
  }

  /**
   * @param {LogEntry} entry
   * @returns {Action | null}
   */
  take(entry) {
    for (const fault of this.list) {
      if (fault.hits >= fault.times || !matches(fault.when, entry)) continue;
      fault.seen += 1;
      if (fault.seen <= fault.after) continue;
      fault.hits += 1;
      return fault.action;
    }
    return null;
  }
}

/** @param {Condition} when @param {LogEntry} entry */
function matches(when, entry) {
  if (entry.preflight) return false;
  if (typeof when === 'function') return when(entry);
  return (!when.method || when.method === entry.method) && (!when.path || when.path.test(entry.url));
}

const HTML = '<!doctype html><html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1></body></html>\n';

/**
 * @param {number} code
 * @param {object | string} [body]
 * @param {Record<string, string>} [headers] e.g. `{ 'Retry-After': '1' }`
 * @returns {Action}
 */
export const status = (code, body = { error: 'fault', reason: 'scripted' }, headers = {}) => ({
  name: `status ${code}`,
  before: () => ({ status: code, headers: { 'Content-Type': 'application/json', ...headers }, body }),
});

/**
 * A proxy's page where JSON was due.
 * @param {number} [code] 200 or 502
 * @returns {Action}
 */
export const html = (code = 502) => ({
  name: `html ${code}`,
  before: () => ({ status: code, headers: { 'Content-Type': 'text/html; charset=utf-8' }, body: HTML }),
});

/** The connection ends and nothing was done. @returns {Action} */
export const resetBefore = () => ({ name: 'reset before', before: () => ({ status: 0, headers: {}, body: '', reset: true }) });

/** The server did what it was asked, the answer never came. @returns {Action} */
export const resetAfter = () => ({ name: 'reset after', after: (answer) => ({ ...answer, reset: true }) });

/**
 * An answer cut after some bytes: well-formed HTTP around broken JSON, or a connection that ends.
 * @param {number} bytes
 * @param {{ reset?: boolean }} [options]
 * @returns {Action}
 */
export const truncate = (bytes, { reset = false } = {}) => ({
  name: `truncate ${bytes}`,
  after: (answer) => ({ ...answer, cut: bytes, cutResets: reset }),
});

/** No answer until the client gives up. @returns {Action} */
export const hang = () => ({
  name: 'hang',
  before: (_entry, signal) => new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ status: 0, headers: {}, body: '', reset: true }));
  }),
});

/** @param {number} ms @returns {Action} */
export const delay = (ms) => ({
  name: `delay ${ms}`,
  before: (_entry, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); });
  }),
});

/**
 * Changes the JSON of a good answer.
 * @param {(json: any, entry: LogEntry) => any} change
 * @param {string} [name]
 * @returns {Action}
 */
export const mapJson = (change, name = 'changed JSON') => ({
  name,
  after: (answer, entry) => ({ ...answer, map: (text) => `${JSON.stringify(change(JSON.parse(text), entry))}\n` }),
});

/** `_bulk_get` answers only its first entries. @param {number} count */
export const shortResults = (count) =>
  mapJson((json) => ({ ...json, results: json.results.slice(0, count) }), 'short results');

/** `_bulk_get` does not find some documents, whatever its quorum. @param {Iterable<string>} ids */
export const missingInResults = (ids) => {
  const gone = new Set(ids);
  return mapJson((json, entry) => ({
    ...json,
    results: json.results.map((/** @type {any} */ result, /** @type {number} */ i) => (!gone.has(result.id) ? result : {
      id: result.id,
      docs: [{ error: { rev: entry.bodyJSON.docs[i].rev, reason: 'missing', id: result.id, error: 'not_found' } }],
    })),
  }), 'missing in results');
};

/** `_bulk_get` answers, besides, a document that nobody asked for. @param {{ id?: string, first?: boolean }} [options] */
export const strangerInResults = ({ id = 'stranger', first = false } = {}) => {
  const rev = `1-${'f'.repeat(32)}`;
  const stranger = { id, docs: [{ ok: { _id: id, _rev: rev, _revisions: { start: 1, ids: ['f'.repeat(32)] } } }] };
  return mapJson((json) => ({
    ...json, results: first ? [stranger, ...json.results] : [...json.results, stranger],
  }), 'stranger in results');
};

/** Feed rows that lack `changes`. @param {(row: any, index: number) => boolean} [which] */
export const rowsWithoutChanges = (which = () => true) => mapJson((json) => ({
  ...json,
  results: json.results.map((/** @type {any} */ row, /** @type {number} */ index) => {
    if (!which(row, index)) return row;
    const { changes: _dropped, ...rest } = row;
    return rest;
  }),
}), 'rows without changes');
