// Counts the HTTP/1.1 requests in a stream of bytes.
//
// Decides where a request begins, by its head and the length of its body (or its chunks); keeps no body and changes
// nothing. It trusts its clients to be well-formed, as HTTP libraries are: a stream that makes no sense is no longer read.

/** A head that grows beyond this is no head. */
const HEAD_MAX = 256 * 1024;

export class RequestCounter {
  #requests = 0;
  #preflights = 0;
  /** @type {Record<string, number>} */
  #byPath = {};

  /** @param {string} method @param {string} path */
  add(method, path) {
    this.#requests++;
    if (method === 'OPTIONS') this.#preflights++;
    const key = `${method} ${kindOfPath(path)}`;
    this.#byPath[key] = (this.#byPath[key] ?? 0) + 1;
  }

  result() {
    return { requests: this.#requests, preflights: this.#preflights, byPath: this.#byPath };
  }

  /**
   * A function that takes the chunks of one connection, client to server.
   * @param {(method: string, path: string) => void} onRequest
   */
  static parser(onRequest) {
    /** @type {'head' | 'body' | 'chunk size' | 'trailer' | 'lost'} */
    let state = 'head';
    let text = '';   // what of a head or a chunk's size line has come so far
    let left = 0;    // bytes of a body or chunk still to come
    let chunked = false;

    /** Takes one line's or head's worth out of `text`; undefined while it is incomplete. */
    const until = (/** @type {string} */ mark) => {
      const at = text.indexOf(mark);
      if (at < 0) return undefined;
      const taken = text.slice(0, at);
      text = text.slice(at + mark.length);
      return taken;
    };
    const headDone = (/** @type {string} */ head) => {
      const [, method, path] = /^([A-Z]+) (\S+) HTTP\/1/.exec(head.trimStart()) ?? [];
      if (!method) { state = 'lost'; return; }
      onRequest(method, path);
      chunked = /^transfer-encoding:.*chunked/im.test(head);
      left = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      state = chunked ? 'chunk size' : left ? 'body' : 'head';
    };

    return (/** @type {Buffer} */ chunk) => {
      for (let at = 0; state !== 'lost' && (at < chunk.length || text);) {
        if (state === 'body') {
          const taken = Math.min(left, text.length || chunk.length - at);
          if (text) text = text.slice(taken); else at += taken;
          left -= taken;
          if (!left) state = chunked ? 'chunk size' : 'head';
          else if (at >= chunk.length && !text) return;
          continue;
        }
        text += chunk.toString('latin1', at); // one character a byte, so lengths stay right
        at = chunk.length;
        if (state === 'head') {
          const head = until('\r\n\r\n');
          if (head === undefined) {
            if (text.length > HEAD_MAX) state = 'lost';
            return;
          }
          headDone(head);
        } else {
          const line = until('\r\n');
          if (line === undefined) return;
          if (state === 'trailer') state = line === '' ? 'head' : 'trailer';
          else if (line === '') continue; // the line end behind a chunk
          else {
            left = parseInt(line, 16);
            state = left ? 'body' : 'trailer';
          }
        }
      }
    };
  }
}

/** `/db/_changes?since=…` is `/db/_changes`, `/db/_local/x` is `_local`, and so on; what is left over is a document. */
function kindOfPath(/** @type {string} */ url) {
  const [, db, first, second] = url.split('?')[0].split('/');
  if (!db || db.startsWith('_')) return `/${db}`;
  if (!first) return '/db';
  if (first === '_design' || !first.startsWith('_')) return second && first !== '_design' ? 'attachment' : 'document';
  return first;
}
