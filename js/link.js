// One direction of a replication: a run of the engine, which reads ahead, and how far
// stock's replicator is with what it was handed. What it asks for is answered in
// rows.js, documents.js and writer.js.
import { Engine } from '../pkg/engine.js';
import { canInflate } from './bytes.js';
import { isFailure } from './errors.js';
import { expected, path, request } from './feed.js';
import { Flat } from './flat.js';
import { host } from './host.js';
import { Lanes } from './lanes.js';
import { inNode } from './platform.js';
import { isEmpty } from './remote.js';
import { isTrap, trapped } from './trap.js';
import { write } from './writer.js';

/** Rows of the first page (src/planner/feed.rs). */
const FIRST_PAGE = 1000;

/** Failures that stock meets the same way: it is asked itself, and shows them in its own words. */
const stocksOwn = new Set(['network', 'status', 'absent']);

export class Link {
  /**
   * @param {object} given
   * @param {any} given.source handle
   * @param {any} given.target handle
   * @param {import('./remote.js').Remote | null} given.sourceRemote
   * @param {import('./remote.js').Remote | null} given.targetRemote
   * @param {any} given.opts of the replication
   * @param {import('./options.js').Options} given.chosen
   * @param {number} given.batchSize when the caller did not say
   * @param {import('./stats.js').Stats} given.stats
   * @param {'push' | 'pull'} [given.direction] where both run
   */
  constructor({ source, target, sourceRemote, targetRemote, opts, chosen, batchSize, stats, direction }) {
    this.direction = direction;
    this.source = source;
    this.target = target;
    this.sourceRemote = sourceRemote;
    this.targetRemote = targetRemote;
    this.opts = opts;
    this.chosen = chosen;
    this.batchSize = opts.batch_size || batchSize;
    this.stats = stats;
    /** What a local source is asked with. @type {any} */
    this.feedOptions = {};
    /** @type {{ engine: Engine, flat: Flat, key: string, next: string, taking: boolean } | null} */
    this.run = null;
    /** More rows are to come. */
    this.more = true;
    /** Rows that stock was handed and has not begun with; it takes several batches ahead. */
    this.waiting = 0;
    /** Stock follows the feed by itself. */
    this.live = false;
    /** The feed that stock follows by itself. @type {{ cancel: () => void, complete: (error: any) => void } | null} */
    this.followed = null;
    this.targetEmpty = false;
    this.handed = 0;
    this.done = 0;
    /** Of the batch that was handed over last, as JSON. */
    this.lastSeq = '';
    /** @type {(() => void)[]} */
    this.whenDone = [];
    /** The target held nothing when the replication began, and the feed's end was not reached since. */
    this.wasEmpty = false;
    /** Options of the feed that is sure to be asked for. @type {any} */
    this.wanted = undefined;
    /** Stock gets its rows from somebody else. */
    this.elsewhere = false;
    /** @type {Promise<any>} */
    this.preparing = Promise.resolve();
    /** Attachments that are asked for one by one. */
    this.lanes = new Lanes(limits(chosen).maxConcurrency);
    /** An attachment that the target has may stay a stub. */
    this.keepsStubs = true;
    /** What the last write to a local target took. @type {number | undefined} */
    this.msPerDoc = undefined;
    /** @type {(phase: string) => void} */
    this.progress = () => {};
    /** The engine trapped, and cannot be used any more. */
    this.broken = false;
    /** The feed is followed when it has been read. */
    this.goesOn = Boolean(opts.live || opts.continuous);
    /** Until checkpoints are written, or could not be. @type {() => Promise<void>} */
    this.settled = async () => {};
    /** Until its own are written; rejects where one could not be. @type {() => Promise<void>} */
    this.written = async () => {};
    /** Called when it stops. @type {Set<() => void>} */
    this.whenStopped = new Set();
    /** The caller cancelled the replication. */
    this.cancelled = false;
    /** Where the other half of a sync learns what came from the source. @type {import('./echo.js').Echo | null} */
    this.brings = null;
    /** What the other half brought from the target. @type {import('./echo.js').Echo | null} */
    this.knows = null;
    /** The batch that stock is at brings nothing new, and the feed goes on. */
    this.idle = false;
  }

  /**
   * Asks at once what can be asked, while the engine compiles: where the target
   * is empty, the feed's beginning is sure to be wanted.
   * @param {Promise<any>} reached both ends
   */
  async prepare(reached) {
    this.targetEmpty = this.wasEmpty = await isEmpty(this.targetRemote ?? this.target);
    const asked = expected(this.opts);
    if (!asked || !this.targetEmpty) return;
    this.wanted = asked;
    const { query, body } = request(asked);
    await reached;
    if (!body) this.sourceRemote?.ahead(path(query, 0, Math.max(FIRST_PAGE, this.batchSize), 0));
    if (limits(this.chosen).maxConcurrency > 1) this.sourceRemote?.open();
  }

  /** Begins to read what {@link prepare} found to be wanted. */
  async begin() {
    await this.preparing;
    try {
      if (this.wanted && !this.run && !this.elsewhere) this.startRun(this.wanted, 0);
    } catch (error) {
      this.breaks(error);
    }
  }

  /** Nobody is going to take rows, or to say where they end. */
  readElsewhere() {
    if (this.elsewhere) return; // Later readings begin while documents are fetched.
    this.elsewhere = true;
    this.more = this.wasEmpty = false;
    if (this.run) this.endRun(this.run.engine);
  }

  /**
   * @param {any} opts of `changes()`
   * @param {any} since
   * @param {boolean} [readAhead] without: for documents on demand only
   */
  startRun(opts, since, readAhead = true) {
    if (this.run) this.endRun(this.run.engine);
    const { query, body, filtered } = request(opts);
    this.feedOptions = opts;
    const config = {
      batchSize: this.batchSize,
      batchFixed: Boolean(this.opts.batch_size),
      targetEmpty: this.targetEmpty,
      targetRemote: Boolean(this.targetRemote),
      sourceLocal: !this.sourceRemote,
      filtered,
      readAhead,
      ...limits(this.chosen),
      ...this.sourceRemote?.lacks,
      ...(!canInflate && { piecewiseUntil: Number.MAX_SAFE_INTEGER }),
      seed: Math.ceil(Math.random() * 2 ** 31),
      source: this.sourceRemote?.end() ?? null,
      target: this.targetRemote?.end() ?? null,
      feedBody: body,
    };
    const flat = new Flat(this.knows);
    this.brings?.begin();
    const engine = new Engine(config, /** @type {any} */ (host(this, flat, query)), flat.seq(since));
    // Only the first run of an empty target can know that everything is missing.
    this.targetEmpty = false;
    const run = { engine, flat, key: query + body, next: JSON.stringify(since), taking: false };
    this.run = run;
    this.stats.running = () => engine.stats();
    this.more = readAhead;
    this.inform(run.engine).catch((error) => this.breaks(error));
    if (readAhead) engine.start();
    return run;
  }

  /** @param {Engine} engine */
  async inform(engine) {
    const { sourceRemote } = this;
    if (!sourceRemote) return;
    const sized = sourceRemote.info().catch(() => ({})).then((/** @type {any} */ info) => {
      const docs = (info.doc_count ?? 0) + (info.doc_del_count ?? 0);
      if (info.sizes?.external > 0 && docs > 0) engine.expect(info.sizes.external / docs);
    });
    await Promise.all([sized, sourceRemote.isCouch().then((isCouch) => engine.identity(isCouch))]);
  }

  /** Another checkpoint follows this one. */
  mayLag() {
    return this.more || this.waiting > 0 || this.idle;
  }

  /**
   * A checkpoint could not be written: stock is told by the feed that it follows.
   * @param {any} error
   */
  fail(error) {
    const { followed } = this;
    this.followed = null;
    followed?.cancel();
    followed?.complete(error);
    return Boolean(followed);
  }

  /** Nothing has to be fetched any more. */
  nearEnd() {
    return Boolean(this.run?.engine.hasEverything());
  }

  /**
   * Stock is through with fewer batches than it was handed: it is going to write
   * the sequence of the last one, unless that is there.
   * @param {any} seq
   */
  putFollows(seq) {
    return this.done < this.handed && JSON.stringify(seq) !== this.lastSeq;
  }

  /** Stock wrote a batch and its checkpoints. */
  batchDone() {
    this.done += 1;
    if (this.done < this.handed) return;
    for (const call of this.whenDone.splice(0)) call();
  }

  /** Until stock is through with all that it was handed. */
  everythingDone() {
    if (this.done >= this.handed) return Promise.resolve();
    return new Promise((resolve) => this.whenDone.push(() => resolve(undefined)));
  }

  /** @param {any} req @param {any[]} rest */
  async bulkDocs(req, ...rest) {
    const results = await write(this, req, rest);
    try {
      this.run?.engine.written();
    } catch (error) {
      this.breaks(error);
    }
    return results;
  }

  /**
   * What the engine threw is no failure of its own: it trapped, and stock goes on.
   * @param {any} thrown
   */
  breaks(thrown) {
    if (isFailure(thrown)) return false;
    this.broken = true;
    this.stats.stock = `the engine trapped: ${thrown?.message ?? thrown}`;
    this.stats.running = () => null;
    this.run = null;
    if (isTrap(thrown)) trapped(thrown);
    return true;
  }

  /** @param {any} failure */
  stocksOwn(failure) {
    return stocksOwn.has(failure?.kind);
  }

  /** The engine, for what needs no feed. */
  engine() {
    return (this.run ?? this.startRun({}, 0, false)).engine;
  }

  /** A database, for messages. */
  url() {
    return this.sourceRemote?.base ?? this.source.name;
  }

  /** @param {Engine} engine */
  endRun(engine) {
    this.run = null;
    try {
      const figures = engine.stats();
      this.sourceRemote?.learn(figures);
      this.stats.add(figures);
      engine.cancel();
    } catch (error) {
      this.breaks(error);
    }
  }

  /** Nothing more is asked for; a later call starts anew. */
  stop() {
    for (const call of this.whenStopped) call();
    if (this.run) this.endRun(this.run.engine);
    for (const call of this.whenDone.splice(0)) call();
  }
}

/**
 * What the engine does not get keeps its own default.
 * @param {import('./options.js').Options} chosen
 */
function limits({ concurrency, maxBufferBytes, stallTimeout }) {
  // HTTP/1.1 gives a browser six connections to an origin, of which the feed,
  // checkpoints and other databases need some.
  const most = concurrency ?? (inNode ? 6 : 4);
  return {
    maxConcurrency: most,
    ...(maxBufferBytes && { maxBufferBytes }),
    ...(stallTimeout && { stallMs: stallTimeout }),
  };
}
