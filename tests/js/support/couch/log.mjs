// What went over the wire: one entry a request, in order of arrival, and the questions that
// tests ask of it (how many, how many at once). Decides nothing.

/**
 * @typedef {{ id: number, method: string, path: string, url: string, query: Record<string, string>,
 *   headers: import('node:http').IncomingHttpHeaders, status: number | null, bytesIn: number,
 *   bytesOut: number, bodyJSON: any, preflight: boolean, connection: number, start: number,
 *   end: number | null, fault: string | null }} LogEntry
 * `status` stays null for a request that never got an answer; times are of performance.now()
 */

export class RequestLog {
  constructor() {
    /** @type {LogEntry[]} */
    this.entries = [];
    this.nextId = 1;
  }

  /** @param {Omit<LogEntry, 'id' | 'status' | 'bytesIn' | 'bytesOut' | 'bodyJSON' | 'end' | 'fault'>} given */
  open(given) {
    /** @type {LogEntry} */
    const entry = {
      id: this.nextId, ...given, status: null, bytesIn: 0, bytesOut: 0, bodyJSON: undefined, end: null, fault: null,
    };
    this.nextId += 1;
    this.entries.push(entry);
    return entry;
  }

  /**
   * Requests whose "METHOD /path?query" matches, preflights left out.
   * @param {RegExp} [pattern]
   */
  matching(pattern = /^/) {
    return this.entries.filter((entry) => !entry.preflight && pattern.test(`${entry.method} ${entry.url}`));
  }

  /**
   * The most requests of a kind that were open at one time.
   * @param {RegExp} [pattern]
   */
  peak(pattern) {
    const edges = this.matching(pattern).flatMap(({ start, end }) => [[start, 1], [end ?? Infinity, -1]]);
    edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let open = 0;
    return edges.reduce((most, [, step]) => Math.max(most, (open += step)), 0);
  }
}
