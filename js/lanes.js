// How many attachments of a source are asked for one by one at a time, and when
// such a request is repeated. Documents and streams have their pace in the engine
// (src/pace.rs); these requests are the host's own.

/** Requests for one attachment before its document is given up. */
const TRIES = 6;
/** First wait (ms) where the server names none; doubles, up to the longest. */
const WAIT_MS = 500;
const LONGEST_MS = 60_000;
/** How often (ms) somebody who waits is told that it is not for nothing. */
const TELL_MS = 400;

export class Lanes {
  /** @param {number} most */
  constructor(most) {
    this.most = most;
    this.room = most;
    this.running = 0;
    /** Nothing leaves before. */
    this.until = 0;
    /** When something moved last. */
    this.moved = 0;
    /** @type {(() => void)[]} */
    this.waiting = [];
  }

  /** A byte came, or the wait for one is the server's wish. */
  move() {
    this.moved = performance.now();
  }

  /**
   * @template T
   * @param {() => Promise<T>} request
   * @param {AbortSignal} [signal]
   */
  async run(request, signal) {
    for (let tries = 1; ; tries++) {
      await this.enter(signal);
      try {
        const answer = await request();
        this.move();
        this.room = Math.min(this.most, this.room + 1 / this.room);
        return answer;
      } catch (/** @type {any} */ error) {
        signal?.throwIfAborted();
        if (tries === TRIES || !passes(error)) throw error;
        this.hold(error, tries);
      } finally {
        this.leave();
      }
    }
  }

  leave() {
    this.running -= 1;
    for (let free = Math.floor(this.room) - this.running; free > 0; free--) this.waiting.shift()?.();
  }

  /** @param {AbortSignal} [signal] */
  async enter(signal) {
    while (this.running >= Math.floor(this.room)) await new Promise((resolve) => this.waiting.push(() => resolve(undefined)));
    this.running += 1;
    while (performance.now() < this.until && !signal?.aborted) {
      this.move();
      await new Promise((resolve) => setTimeout(resolve, Math.min(TELL_MS, this.until - performance.now())));
    }
    if (signal?.aborted) {
      this.leave();
      signal.throwIfAborted();
    }
  }

  /**
   * The server asks for less, or the network does.
   * @param {any} error
   * @param {number} tries
   */
  hold(error, tries) {
    const named = Number(error?.headers?.get?.('retry-after')) * 1000;
    const wait = named > 0 ? named : WAIT_MS * 2 ** (tries - 1) * (0.5 + Math.random());
    this.room = Math.max(1, this.room / 2);
    this.until = Math.max(this.until, performance.now() + Math.min(wait, LONGEST_MS));
  }

  /**
   * Calls `tick` as long as `work` goes on and something moves.
   * @template T
   * @param {Promise<T>} work
   * @param {() => void} tick
   */
  async watch(work, tick) {
    let seen = 0;
    const timer = setInterval(() => {
      if (this.moved > seen) tick();
      seen = this.moved;
    }, TELL_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }
}

/** Another try may have another end. @param {any} error */
function passes(error) {
  const status = error?.status ?? 0;
  return status === 0 ? !/^(AbortError|URIError)$/.test(error?.name) : status >= 500 || [408, 425, 429].includes(status);
}
