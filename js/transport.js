// Carries what stock's HTTP adapter asks for. It may ask early: a GET that stock
// is going to make is sent ahead, and stock's own then finds the answer.

/** @typedef {(url: string, init: any) => Promise<any>} Fetch */

export class Transport {
  /**
   * @param {Fetch | undefined} own the `fetch` option of the user's handle
   * @param {Fetch | undefined} jar PouchDB's fetch, where only that holds the cookies
   * @param {(what: string, bytes: number) => void} count
   */
  constructor(own, jar, count) {
    this.own = own;
    this.jar = jar;
    this.count = count;
    /** Everything goes through the handle: its own `fetch`, or its cookies. */
    this.through = Boolean(own);
    /** @type {Map<string, Promise<any>>} */
    this.early = new Map();
    /** The next GET is going to be asked for twice. */
    this.twice = false;
    /** The first URL and headers that the adapter asked with. */
    this.first = new Promise((resolve) => {
      /** @type {(seen: { url: string, headers: [string, string][] }) => void} */
      this.seen = resolve;
    });
    this.fetch = this.fetch.bind(this);
    this.stopped = new AbortController();
  }

  /** Ends what is being read. What is being written is let through: it was answered for. */
  stop() {
    this.stopped.abort();
  }

  /** @type {Fetch} */
  async fetch(url, init) {
    this.seen({ url, headers: [...(init.headers ?? [])] });
    const method = init.method ?? 'GET';
    const early = method === 'GET' && this.early.get(url);
    if (early) {
      this.early.delete(url);
      return early;
    }
    const twice = this.twice && method === 'GET';
    this.twice = false;
    const answer = await this.send(url, init);
    if (!twice || !answer.ok) return answer;
    const kept = await repeatable(answer);
    this.early.set(url, Promise.resolve(kept));
    return kept;
  }

  /**
   * Sends a GET that is going to be asked for.
   * @param {string} url
   * @param {[string, string][]} headers
   */
  ahead(url, headers) {
    const answer = this.send(url, { headers: new Headers(headers), credentials: 'include' }).then(repeatable);
    answer.catch(() => {});
    this.early.set(url, answer);
    return answer;
  }

  /** @type {Fetch} */
  async send(url, init) {
    const answer = await this.underlying(url, init);
    if (!this.through && this.jar && (answer.status === 401 || answer.status === 403)) {
      // In Node, cookies live in PouchDB's own jar.
      this.through = true;
      return this.send(url, init);
    }
    this.count('other', Number(answer.headers?.get?.('content-length')) || 0);
    return answer;
  }

  /** @type {Fetch} */
  underlying(url, init) {
    const through = this.own ?? (this.through ? this.jar : undefined);
    const signal = init.signal ?? (init.method === 'PUT' ? undefined : this.stopped.signal);
    if (through) return through(url, { ...init, signal });
    const headers = new Headers([...(init.headers ?? [])]);
    // Without a body it would do nothing but force a preflight.
    if (!init.body) headers.delete('content-type');
    return fetch(url, { ...init, headers, signal });
  }
}

/**
 * Read at once, so that it can be given twice: JSON only, never an attachment.
 * @param {any} answer
 */
async function repeatable(answer) {
  const text = await answer.text();
  const { ok, status, headers } = answer;
  return { ok, status, headers, text: async () => text, json: async () => JSON.parse(text) };
}
