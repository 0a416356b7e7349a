// Carries what stock's HTTP adapter asks for. It may ask early: a GET that stock
// is going to make is sent ahead, and stock's own then finds the answer.

import { toError } from './errors.js';
import { keepAlive, unlimited } from './platform.js';

/** @typedef {(url: string, init: any) => Promise<any>} Fetch */

/** So long (ms) what was being written at the end may take. */
const LAST_WRITE_MS = 5_000;

export class Transport {
  /**
   * @param {Fetch | undefined} own the `fetch` option of the user's handle
   * @param {Fetch | undefined} node PouchDB's fetch in Node, which holds its cookies
   * @param {(what: string, bytes: number) => void} count
   */
  constructor(own, node, count) {
    this.own = own;
    this.node = node;
    /** Without it, PouchDB's fetch opens a connection for every request. */
    this.agent = node && keepAlive();
    this.count = count;
    /**
     * Everything goes through the handle: its own `fetch`, or in Node PouchDB's,
     * which is loaded already, keeps the cookies, and with an agent keeps its
     * connections too.
     */
    this.through = Boolean(own ?? this.agent);
    /** @type {Map<string, Promise<any>>} */
    this.early = new Map();
    /** The next GET is going to be asked for twice. */
    this.twice = false;
    /** A checkpoint that is to be written waits for this (echo.js). @type {string | undefined} */
    this.confirming = undefined;
    /** The first URL and headers that the adapter asked with. */
    this.first = new Promise((resolve) => {
      /** @type {(seen: { url: string, headers: any }) => void} */
      this.seen = resolve;
    });
    this.fetch = this.fetch.bind(this);
    this.stopped = new AbortController();
    this.ended = new AbortController();
    unlimited(this.stopped.signal);
    unlimited(this.ended.signal);
  }

  /** A body may be Node's stream: PouchDB's own fetch in Node takes one. */
  get streams() {
    return !this.own && Boolean(this.agent);
  }

  /** Ends what is being read. A checkpoint is let through, if it is soon: it was answered for. */
  stop() {
    if (this.stopped.signal.aborted) return;
    this.stopped.abort();
    // In Node it keeps nothing running by itself.
    /** @type {any} */ (setTimeout(() => this.ended.abort(), LAST_WRITE_MS)).unref?.();
  }

  /** @type {Fetch} */
  async fetch(url, init) {
    this.seen({ url, headers: init.headers });
    if (init.raw) return this.underlying(url, init);
    const method = init.method ?? 'GET';
    const early = method === 'GET' && this.take(url);
    if (early) return early;
    const twice = this.twice && method === 'GET';
    this.twice = false;
    const answer = await this.send(url, init);
    if (!twice || !answer.ok) return answer;
    const kept = await repeatable(url, answer);
    this.early.set(url, Promise.resolve(kept));
    return kept;
  }

  /**
   * What was sent ahead, for one who asks for it now.
   * @param {string} url
   */
  take(url) {
    const early = this.early.get(url);
    this.early.delete(url);
    return early;
  }

  /**
   * Sends a GET that is going to be asked for.
   * @param {string} url
   * @param {any} headers
   * @param {boolean} read here, and counted; otherwise by who takes it
   */
  ahead(url, headers, read) {
    const sent = this.send(url, { headers, credentials: 'include' }, read);
    const answer = read ? sent.then((response) => repeatable(url, response)) : sent;
    answer.catch(() => {});
    this.early.set(url, answer);
    return answer;
  }

  /**
   * @param {string} url
   * @param {any} init
   * @param {boolean} [counted]
   * @returns {Promise<any>}
   */
  async send(url, init, counted = true) {
    const answer = await this.underlying(url, init);
    if (!this.through && this.node && (answer.status === 401 || answer.status === 403)) {
      // In Node, cookies live in PouchDB's own jar.
      this.through = true;
      return this.send(url, init, counted);
    }
    if (counted) this.count('other', Number(answer.headers?.get?.('content-length')) || 0);
    return answer;
  }

  /** @type {Fetch} */
  underlying(url, { raw, ...init }) {
    for (const [name, value] of Object.entries(raw ?? {})) init.headers.set(name, value);
    const signal = init.signal ?? (init.method === 'PUT' || this.confirming === url ? this.ended : this.stopped).signal;
    if (this.own) return this.own(url, { ...init, signal });
    // Without a body it would do nothing but force a preflight.
    if (!init.body) init.headers?.delete('content-type');
    if (this.through && this.node) return repeated(this.node, url, { ...init, signal, agent: this.agent });
    return fetch(url, { ...init, headers: new Headers([...(init.headers ?? [])]), signal });
  }
}

/**
 * A connection that was kept may turn out to be closed by the server just then:
 * what is read, or a `_local` document that is written, is repeated at once.
 * Documents are the engine's to repeat.
 * @param {Fetch} node
 * @param {string} url
 * @param {any} init
 */
function repeated(node, url, init) {
  const answer = node(url, init);
  if (!init.agent || init.method === 'POST' || init.body?.pipe) return answer;
  return answer.catch((error) => {
    if (!/^(ECONNRESET|EPIPE)$/.test(error.code) || init.signal?.aborted) throw error;
    // Others that were kept may be closed too: this one is new.
    return node(url, { ...init, agent: undefined });
  });
}

/**
 * Read at once, so that it can be given twice: JSON only, never an attachment.
 * @param {string} url
 * @param {any} answer
 */
async function repeatable(url, answer) {
  const text = await answer.text();
  const { ok, status, headers } = answer;
  const json = async () => {
    try {
      return JSON.parse(text);
    } catch {
      const failure = { code: 'fast_sync_bad_json', kind: 'bad_json', status, reason: 'the answer is no JSON' };
      throw toError(failure, 'Asking for the database', url);
    }
  };
  return { ok, status, headers, text: async () => text, json };
}
