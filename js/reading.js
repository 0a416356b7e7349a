// Reading many things, a few at a time, and answers as they arrive, by structure:
// a handle's `fetch` need not answer with the platform's own Response.

import { breathe } from './platform.js';

/**
 * @template T
 * @param {T[]} list
 * @param {number} atOnce
 * @param {(item: T) => Promise<any>} read
 */
export async function each(list, atOnce, read) {
  const results = new Array(list.length);
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(atOnce, list.length) }, async () => {
    while (next < list.length) {
      const at = next++;
      results[at] = await read(list[at]);
    }
  }));
  return results;
}

/**
 * The body in chunks: a web stream, Node's stream, or whole.
 * @param {any} response
 * @returns {{ read: () => Promise<{ done?: boolean, value?: any }> }}
 */
export function chunks(response) {
  return streamOf(response) ?? whole(response);
}

/** Nothing where the body does not come in pieces. @param {any} response */
function streamOf({ body }) {
  if (body?.getReader) return body.getReader();
  const iterator = body?.[Symbol.asyncIterator]?.();
  return iterator && { read: () => iterator.next() };
}

/** @param {any} response */
function whole(response) {
  let bytes = response.arrayBuffer();
  return {
    async read() {
      const value = bytes && new Uint8Array(await bytes);
      bytes = undefined;
      return { done: !value, value };
    },
  };
}

/** @param {any} reader */
export async function nextChunk(reader) {
  return (await reader.read()).value;
}

/**
 * The text of a response.
 * @param {any} response
 * @param {() => void} tick called as bytes arrive
 */
export async function readText(response, tick) {
  const reader = streamOf(response);
  if (!reader) return response.text();
  /** @type {Uint8Array[]} */
  const pieces = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
    tick();
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  // What follows, a page's thread does in one go.
  await breathe();
  return new TextDecoder().decode(bytes);
}

/**
 * The text of a feed page without the rows that went to `early` as they came. Only up
 * to one that has a sequence, since a repeat goes on there.
 * @param {any} response
 * @param {() => void} tick called as bytes arrive
 * @param {(rows: any[], length: number) => void} early
 */
export async function readPage(response, tick, early) {
  const reader = streamOf(response);
  if (!reader) return response.text();
  const decoder = new TextDecoder();
  const page = new Page(early);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    tick();
    page.add(decoder.decode(value, { stream: true }));
  }
  page.text += decoder.decode();
  await breathe();
  return page.rest();
}

/** Text of a feed page, some 100 rows of it, that is worth being looked at before the rest came. */
const WORTH = 24_000;
/** After so many ms, whatever came is: a filter may let a row through every few seconds. */
const PATIENCE_MS = 300;

/** A feed page as it comes: CouchDB sends each row on a line of its own. Another layout stays whole. */
class Page {
  /** @param {(rows: any[], length: number) => void} early */
  constructor(early) {
    this.early = early;
    this.text = '';
    this.isLined = true;
    this.looked = performance.now();
    /** Where that begins which was not read, and which was not handed over. */
    this.read = 0;
    this.handed = 0;
    /** Rows that wait for one that has a sequence, and where each ends. @type {{ row: any, end: number }[]} */
    this.waiting = [];
  }

  /** @param {string} text */
  add(text) {
    this.text += text;
    const due = this.text.length - this.read >= WORTH || performance.now() - this.looked >= PATIENCE_MS;
    if (!this.isLined || !due) return;
    this.looked = performance.now();
    try {
      this.look();
    } catch {
      this.isLined = false;
    }
  }

  look() {
    const begin = this.read || /^\s*\{"results":\[/.exec(this.text)?.[0].length;
    const lines = this.text.slice(begin);
    const ends = [...lines.matchAll(/,\r?\n/g)];
    const last = ends.at(-1);
    if (!begin || !last) return;
    const rows = JSON.parse(`[${lines.slice(0, last.index)}]`);
    if (ends.length !== rows.length) throw new Error('rows of several lines');
    for (const [at, { index, 0: { length } }] of ends.entries()) {
      this.waiting.push({ row: rows[at], end: begin + index + length });
    }
    this.read = begin + last.index + last[0].length;
    this.hand(this.handed || begin);
  }

  /** @param {number} from */
  hand(from) {
    let count = this.waiting.length;
    while (count > 0 && (this.waiting[count - 1].row.seq ?? null) === null) count -= 1;
    if (count === 0) return;
    const { end } = this.waiting[count - 1];
    this.early(this.waiting.splice(0, count).map(({ row }) => row), end - from);
    this.handed = end;
  }

  rest() {
    return this.handed > 0 ? `{"results":[${this.text.slice(this.handed)}` : this.text;
  }
}
