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
  const { body } = response;
  return body?.getReader?.() ?? streamed(body) ?? whole(response);
}

/** @param {any} body */
export function streamed(body) {
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

/** Text of a feed page, some 100 rows of it, that is worth being handed over before the rest came. */
const WORTH = 24_000;
/** After so many ms, whatever came is: a filter may let a row through every few seconds. */
const PATIENCE_MS = 300;

/**
 * The text of a feed page without the rows that went to `early` as they came: CouchDB
 * sends each on a line of its own. Only up to one that has a sequence, since a repeat
 * goes on there. A page that looks otherwise comes whole.
 * @param {any} response
 * @param {() => void} tick called as bytes arrive
 * @param {(rows: any[], length: number) => void} early
 */
export async function readPage(response, tick, early) {
  const { body } = response;
  const reader = body?.getReader?.() ?? streamed(body);
  if (!reader) return response.text();
  const decoder = new TextDecoder();
  let text = '';
  /** Where that begins which was not handed over. */
  let from = 0;
  let handed = performance.now();
  let isLined = true;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    tick();
    text += decoder.decode(value, { stream: true });
    if (!isLined || (text.length - from < WORTH && performance.now() - handed < PATIENCE_MS)) continue;
    const begin = from || (/^\s*\{"results":\[/.exec(text)?.[0].length ?? text.length);
    const ends = [...text.slice(begin).matchAll(/,\r?\n/g)];
    const last = ends.at(-1);
    if (!last) continue;
    try {
      const rows = JSON.parse(`[${text.slice(begin, begin + last.index)}]`);
      if (ends.length !== rows.length) throw new Error('rows of several lines');
      const count = rows.findLastIndex((/** @type {any} */ row) => row.seq !== null && row.seq !== undefined) + 1;
      const end = ends[count - 1];
      const length = end ? end.index + end[0].length : 0;
      if (end) early(rows.slice(0, count), length);
      from = begin + length;
      handed = performance.now();
    } catch {
      isLined = false;
    }
  }
  text += decoder.decode();
  await breathe();
  return from > 0 ? `{"results":[${text.slice(from)}` : text;
}
