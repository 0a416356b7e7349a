// Figures of one direction, for `sync.fastSync.stats`.

export class Stats {
  constructor() {
    this.began = performance.now();
    /** @type {Record<string, number>} */
    this.requests = {};
    this.bytes = 0;
    this.writeMs = 0;
    this.failedWrites = 0;
    this.rows = 0;
    this.docsWritten = 0;
    /** @type {number | null} */
    this.pending = null;
    /** Why stock did the work, if it did. @type {string | null} */
    this.stock = null;
    /** What ended runs of the engine counted. @type {any} */
    this.engine = {};
    /** @type {() => any} */
    this.running = () => null;
  }

  /** @param {string} what @param {number} bytes below 0 where it failed */
  count(what, bytes) {
    this.requests[what] = (this.requests[what] ?? 0) + 1;
    if (bytes < 0) this.failedWrites += 1;
    else this.bytes += bytes;
  }

  /** @param {number} rows @param {number | null} pending */
  handed(rows, pending) {
    this.rows += rows;
    this.pending = pending;
  }

  /** @param {any} figures of a run */
  add(figures) {
    this.engine = sum(this.engine, figures);
    this.running = () => null;
  }

  all() {
    const engine = sum(this.engine, this.running());
    return {
      stock: this.stock,
      requests: { ...this.requests },
      requestsTotal: Object.values(this.requests).reduce((a, b) => a + b, 0),
      bytes: this.bytes,
      docsWritten: this.docsWritten,
      retries: engine.retries ?? 0,
      failures: (engine.failures ?? 0) + this.failedWrites,
      peakBufferBytes: engine.peakBufferBytes ?? 0,
      gone: engine.gone ?? 0,
      goneRevisions: engine.goneRevisions ?? [],
      singleGets: engine.singleUntil > 0,
      attachmentsOneByOne: engine.piecewiseUntil > 0,
      ms: {
        total: performance.now() - this.began,
        feed: engine.feedMs ?? 0,
        documents: engine.docsMs ?? 0,
        diff: engine.diffMs ?? 0,
        write: this.writeMs,
      },
    };
  }
}

/** @param {any} a @param {any} b */
function sum(a, b) {
  /** @type {any} */
  const out = { ...a };
  for (const [name, value] of Object.entries(b ?? {})) {
    if (typeof value === 'number' && name !== 'peakBufferBytes') out[name] = (out[name] ?? 0) + value;
    else if (Array.isArray(value)) out[name] = [...(out[name] ?? []), ...value];
    else if (typeof value === 'number') out[name] = Math.max(out[name] ?? 0, value);
    else out[name] = out[name] || value;
  }
  return out;
}
