// Between JSON and the engine: what a server or a database answered is checked
// here, its bodies are kept, and the engine gets flat lists of ids, revisions
// and numbers. Text is divided by NUL, so that one string crosses, not thousands.
// A shape that was not asked for is an error, never a guess.

import { attachmentsOf } from './attachments.js';

const END = '\0';

/** Values under numbers that count up. */
class Kept {
  constructor() {
    /** @type {Map<number, any>} */
    this.values = new Map();
    this.next = 0;
  }

  /** @param {any} value */
  keep(value) {
    this.values.set(this.next, value);
    return this.next++;
  }

  /** @param {number} at */
  peek(at) {
    return this.values.get(at);
  }

  /** @param {number} at */
  take(at) {
    const value = this.values.get(at);
    this.values.delete(at);
    return value;
  }
}

/**
 * A string as the engine's key. JS strings may hold lone surrogates, which
 * Rust's cannot, and NUL divides: such a string goes as its JSON text, behind a
 * character that no other key begins with.
 * @param {string} text
 */
export function key(text) {
  // eslint-disable-next-line no-control-regex
  const plain = /^[^\0\x01\ud800-\udfff]*$/.test(text) || (/** @type {any} */ (text).isWellFormed?.() && !/[\0\x01]/.test(text));
  return plain ? text : `\x01${JSON.stringify(text)}`;
}

export class Flat {
  /** @param {import('./echo.js').Echo | null} [known] what the target has, without being asked */
  constructor(known = null) {
    this.known = known;
    this.rows = new Kept();
    this.docs = new Kept();
    /** Sequences: the engine sees their numbers only. */
    this.seqs = new Kept();
  }

  /**
   * A page of `_changes`: the first row's number, the rows as
   * `key, seq, count, rev…`, the last sequence, and what waits behind. A row of
   * which nothing has to be asked or fetched goes without revisions.
   * @param {any} page
   * @returns {[number, string, string, number]}
   */
  page(page) {
    const results = list(page?.results, 'a feed page without `results`');
    if (page.last_seq === undefined) throw new TypeError('a feed page without `last_seq`');
    for (const row of results) {
      if (typeof row?.id !== 'string') throw new TypeError('a feed row without id');
      const changes = list(row.changes, 'a feed row without `changes`');
      if (!changes.every((/** @type {any} */ change) => typeof change?.rev === 'string')) {
        throw new TypeError('a feed row with a change that names no revision');
      }
    }
    const fields = [];
    const first = this.rows.next;
    for (const row of results) {
      this.rows.keep(row);
      const seq = row.seq === null || row.seq === undefined ? '' : this.seq(row.seq);
      const revs = row.changes.map((/** @type {any} */ change) => change.rev);
      if (this.known?.has(row.id, revs)) revs.length = 0;
      fields.push(key(row.id), seq, revs.length, ...revs.map(key));
    }
    const last = page.last_seq === null ? 'null' : this.seq(page.last_seq);
    return [first, fields.join(END), last, typeof page.pending === 'number' ? page.pending : -1];
  }

  /** @param {any} value */
  seq(value) {
    return String(this.seqs.keep(value));
  }

  /**
   * A batch for the replicator, each row with the sequence that the engine gave it.
   * @param {Uint32Array} rows
   * @param {string} seqs numbers, one a row
   * @param {string} last
   * @param {number} pending
   * @param {boolean} end
   */
  batch(rows, seqs, last, pending, end) {
    const numbers = seqs.split(END);
    const taken = Array.from(rows, (at, index) => {
      const row = this.rows.take(at);
      row.seq = this.seqs.peek(Number(numbers[index]));
      return row;
    });
    const last_seq = this.seqs.peek(Number(last));
    // Sequences count up with the rows: none before this one is named again.
    for (const number of this.seqs.values.keys()) {
      if (number >= Number(last)) break;
      this.seqs.values.delete(number);
    }
    return { rows: taken, last_seq, pending: pending < 0 ? null : pending, end };
  }

  /**
   * The question of `_revs_diff`.
   * @param {Uint32Array} rows
   */
  revs(rows) {
    // Without a prototype: an id may be the name of anything.
    const revs = Object.create(null);
    for (const at of rows) {
      const { id, changes } = this.rows.peek(at);
      revs[id] = changes.map((/** @type {any} */ change) => change.rev);
    }
    return revs;
  }

  /**
   * Its answer: a digit for each revision asked, 1 where it is missing.
   * @param {any} answer
   * @param {Uint32Array} rows
   */
  diff(answer, rows) {
    if (!answer || typeof answer !== 'object') throw new TypeError('a diff that is no object');
    let digits = '';
    for (const at of rows) {
      const { id, changes } = this.rows.peek(at);
      const missing = Object.hasOwn(answer, id) ? list(answer[id]?.missing, 'a diff without `missing`') : [];
      for (const { rev } of changes) digits += missing.includes(rev) ? '1' : '0';
    }
    return digits;
  }

  /**
   * The question of `_bulk_get`.
   * @param {Uint32Array} rows
   * @param {string} revs
   */
  entries(rows, revs) {
    const names = revs.split(END);
    return Array.from(rows, (at, index) => ({ id: this.rows.peek(at).id, rev: unkey(names[index]) }));
  }

  /**
   * Its answer. CouchDB answers in the order asked; others gather what belongs
   * to one document, so an answer out of place is looked for by id and revision.
   * @param {any} answer
   * @param {{ id: string, rev: string }[]} entries
   * @param {{ latest: boolean, revs: boolean, stream: boolean }} asked
   * @returns {[number, Int32Array, Float64Array, string]} the first document's
   *   number; of each entry how many documents came, 0 for missing, -1 for an
   *   error, -2 for attachments that could not be had; of each document the bytes
   *   left out, -1 for none; the errors
   */
  results(answer, entries, asked) {
    let results = list(answer?.results, 'an answer without `results`');
    // A stream does not tell which leaves answer for one revision; that one was
    // asked for alone, so they all do.
    if (asked.stream && asked.latest && results.length > 1) {
      results = [{ id: results[0].id, docs: results.flatMap((/** @type {any} */ result) => result.docs) }];
    }
    if (results.length !== entries.length) {
      throw new TypeError(`${results.length} results for ${entries.length} asked`);
    }
    const left = [...results];
    const found = entries.map((entry, at) => {
      // An error in a stream names its revision only.
      const fits = (/** @type {any} */ result) =>
        result && (result.id ?? entry.id) === entry.id && belongs(result.docs, entry, asked.latest);
      const from = fits(left[at]) ? at : left.findIndex(fits);
      if (from < 0) throw new TypeError(`no result for ${entry.id} at ${entry.rev}`);
      const { docs } = left[from];
      left[from] = undefined;
      return outcome(docs, entry, asked);
    });
    const first = this.docs.next;
    const stubs = [];
    for (const { docs } of found) {
      for (const doc of docs) {
        this.docs.keep(doc);
        stubs.push(asked.stream && attachmentsOf(doc).length > 0 ? 0 : leftOut(doc));
      }
    }
    const counts = found.map(({ docs, error, isBroken }) => (error === undefined ? docs.length : isBroken ? -2 : -1));
    const errors = found.flatMap(({ error }) => error ?? []).map((error) => error.replaceAll(END, ' '));
    return [first, Int32Array.from(counts), Float64Array.from(stubs), errors.join(END)];
  }
}

/** @param {any} value @param {string} otherwise @returns {any[]} */
function list(value, otherwise) {
  if (!Array.isArray(value)) throw new TypeError(otherwise);
  return value;
}

/** @param {string} name */
function unkey(name) {
  return name.startsWith('\x01') ? JSON.parse(name.slice(1)) : name;
}

/**
 * What a result names is the revision asked for, or (with `latest`) leaves below it.
 * @param {any} docs
 * @param {{ rev: string }} entry
 * @param {boolean} latest
 */
function belongs(docs, { rev }, latest) {
  return Array.isArray(docs) && docs.every((doc) => {
    const named = doc?.ok?._rev ?? doc?.missing ?? doc?.error?.rev;
    return named === undefined || latest || named === rev;
  });
}

/**
 * CouchDB says `{ error: { id, rev, error, reason } }`; PouchDB `{ missing }`,
 * `{ error }` with its own, or `{}`. What became `{ broken }` here lacks attachments.
 * @param {any[]} docs
 * @param {{ id: string, rev: string }} entry
 * @param {{ revs: boolean }} asked
 * @returns {{ docs: any[], error?: string, isBroken?: boolean }}
 */
function outcome(docs, entry, asked) {
  const found = [];
  for (const { ok, error, broken } of docs) {
    if (broken) return { docs: [], error: broken, isBroken: true };
    if (ok !== undefined) {
      if (ok?._id !== entry.id) throw new TypeError(`another document than ${entry.id}`);
      withHistory(ok, entry, asked.revs);
      found.push(ok);
    } else if (error) {
      const name = typeof error === 'string' ? error : error.error ?? error.name ?? 'unknown error';
      const missing = name === 'not_found' && ['missing', 'deleted', undefined].includes(error.reason);
      if (!missing) return { docs: [], error: `${name}: ${error.reason ?? ''}` };
    }
  }
  return { docs: found };
}

/**
 * Every document is written with its history. That of generation 1 is the
 * revision itself, and was not asked for.
 * @param {any} doc
 * @param {{ id: string, rev: string }} entry
 * @param {boolean} asked
 */
function withHistory(doc, { id, rev }, asked) {
  if (doc._revisions) return;
  if (asked || !doc._rev?.startsWith('1-')) throw new TypeError(`${id} at ${rev} came without its history`);
  doc._revisions = { start: 1, ids: [doc._rev.slice(2)] };
}

/**
 * The bytes of the attachments that an answer left out, as far as it tells.
 * @param {any} doc
 */
function leftOut(doc) {
  const stubs = attachmentsOf(doc).map(([, attachment]) => attachment).filter(({ data }) => data === undefined);
  return stubs.length === 0 ? -1 : stubs.reduce((sum, { length }) => sum + (length ?? 0), 0);
}

/**
 * The question of stock's `revsDiff`, flat.
 * @param {Record<string, string[]>} diff
 */
export function asked(diff) {
  const fields = Object.entries(diff).flatMap(([id, revs]) => [key(id), revs.length, ...revs.map(key)]);
  return fields.join(END);
}

/**
 * The engine's answer to it: what the target lacks, and what it has to be asked.
 * @param {Record<string, string[]>} diff
 * @param {string} digits
 */
export function told(diff, digits) {
  /** @type {Record<string, { missing: string[] }>} */
  const known = {};
  /** @type {Record<string, string[]>} */
  const unknown = {};
  let at = 0;
  for (const [id, revs] of Object.entries(diff)) {
    const own = digits.slice(at, (at += revs.length));
    if (own.includes('2')) unknown[id] = revs;
    else if (own.includes('1')) known[id] = { missing: revs.filter((_, index) => own[index] === '1') };
  }
  return { known, unknown };
}
