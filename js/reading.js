// Reading many things, a few at a time, and answers as they arrive, by structure:
// a handle's `fetch` need not answer with the platform's own Response.

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
