// Counts what a worker asks of a server and gets back, whoever in it asks. Must be made before PouchDB is loaded, which
// keeps the `fetch` that it finds.
//
// Decides what counts: a request is what the browser's own resource timing lists (so preflights do not count), received
// is what the bodies of the answers weigh, unpacked. It changes no request and no answer.

/** @typedef {'feed' | 'documents' | 'attachments' | 'checkpoints' | 'about'} Kind */
/** @typedef {{kind: Kind, start: number, end: number}} Request in ms since the start */

export class Meter {
  received = 0;
  requests = 0;
  #url = '';
  #began = 0;
  #tell;
  #observer;

  /** @param {(requests: Request[]) => void} tell */
  constructor(tell) {
    const fetch = globalThis.fetch;
    globalThis.fetch = async (input, init) => this.#weigh(await fetch(input, init));
    this.#tell = tell;
    this.#observer = new PerformanceObserver((list) => this.#take(list.getEntries()));
  }

  /** @param {string} url of the database */
  start(url) {
    this.#url = url.replace(/\/$/, '');
    this.#began = performance.now();
    this.#observer.observe({ type: 'resource' });
  }

  ms() {
    return performance.now() - this.#began;
  }

  stop() {
    this.#take(this.#observer.takeRecords());
    this.#observer.disconnect();
  }

  /** @param {PerformanceEntryList} entries */
  #take(entries) {
    const { origin } = new URL(this.#url);
    const requests = entries
      .filter(({ name, startTime }) => name.startsWith(`${origin}/`) && startTime >= this.#began)
      .map(({ name, startTime, duration }) => {
        const start = startTime - this.#began;
        return { kind: kindOf(name, this.#url), start, end: start + duration };
      });
    this.requests += requests.length;
    if (requests.length) this.#tell(requests);
  }

  /** @param {Response} answer */
  #weigh(answer) {
    if (!answer.body) return answer;
    const scales = new TransformStream({
      transform: (chunk, out) => {
        this.received += chunk.byteLength;
        out.enqueue(chunk);
      },
    });
    return new Response(answer.body.pipeThrough(scales), answer);
  }
}

/** @param {string} name the URL of a request @param {string} db that of the database @returns {Kind} */
function kindOf(name, db) {
  const [url] = name.split('?');
  const [first, ...rest] = url.startsWith(`${db}/`) ? url.slice(db.length + 1).split('/') : [''];
  if (!first) return 'about';
  if (first === '_changes') return 'feed';
  if (first === '_local') return 'checkpoints';
  return rest.length > (first === '_design' ? 1 : 0) ? 'attachments' : 'documents';
}
