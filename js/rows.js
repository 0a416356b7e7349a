// Rows of the feed for stock's replicator: it calls the source's `_changes`, and is
// handed what the engine has read ahead. Where that failed, or where the caller wants
// another feed than the engine reads, the handle's own.
import { toError } from './errors.js';
import { request, understood } from './feed.js';
import { breathe, macrotask } from './platform.js';
import { unlessTrapped } from './trap.js';

/** @typedef {import('./link.js').Link} Link */

/** Rows after which a page gets to what waits: stock does something for each. */
const AT_ONCE = 200;

/**
 * The adapter's `_changes` for stock's replicator: the next rows.
 * @param {Link} link
 * @param {any} opts
 */
export function changes(link, opts) {
  const serves = !link.broken && understood(opts) && (!link.sourceRemote || link.sourceRemote.pristine('_changes'));
  if (!serves) {
    link.more = link.wasEmpty = false;
    link.live = Boolean(opts.continuous);
    // Stock may begin a retry twice, and would leave the first one's feed open for ever.
    link.followed?.cancel();
    const feed = link.source._changes(opts);
    link.followed = link.live ? { cancel: () => feed.cancel(), complete: opts.complete } : null;
    return feed;
  }
  const state = { cancelled: false, stock: /** @type {any} */ (undefined) };
  serve(link, opts, state).catch((error) => opts.complete(error));
  return {
    cancel: () => {
      state.cancelled = true;
      state.stock?.cancel();
    },
  };
}

/** @param {Link} link @param {any} opts @param {any} state */
async function serve(link, opts, state) {
  const { query, body } = request(opts);
  const since = JSON.stringify(opts.since ?? 0);
  let { run } = link;
  let batch;
  try {
    if (!run || run.taking || run.key !== query + body || run.next !== since) {
      link.handed = link.done = 0;
      run = link.startRun(opts, opts.since ?? 0);
    }
    run.taking = true;
    batch = await unlessTrapped(run.engine.takeRows(opts.limit));
    run.taking = false;
  } catch (/** @type {any} */ failure) {
    const broke = link.breaks(failure);
    const isOver = () => state.cancelled || (link.run !== run && !link.broken);
    if (isOver()) return;
    link.brings?.clear();
    await link.everythingDone();
    await link.settled();
    if (isOver()) return;
    link.stop();
    if (broke || link.stocksOwn(failure)) state.stock = link.source._changes(opts);
    else opts.complete(toError(failure, 'Reading the changes', link.url()));
    return;
  }
  if (batch.end) link.more = false;
  macrotask(async () => {
    try {
      // Stock that is at a batch when it meets the end writes no other checkpoint.
      if (batch.end && link.done < link.handed) await link.written();
    } catch (error) {
      if (link.run === run) opts.complete(error);
      return;
    }
    if (link.broken && !state.cancelled) state.stock = link.source._changes(opts);
    if (link.run !== run) return;
    // Rows that nobody took would be missing from what the run hands over next.
    if (state.cancelled) link.stop();
    else await hand(link, opts, batch, state);
  });
}

/** @param {Link} link @param {any} opts @param {any} batch @param {any} state */
async function hand(link, opts, batch, state) {
  const { run } = link;
  const { rows, last_seq, pending, end } = batch;
  if (end) {
    link.wasEmpty = false;
    link.idle = link.goesOn && link.handed === 0;
  } else {
    link.handed += 1;
    link.lastSeq = JSON.stringify(last_seq);
  }
  // What follows the end of a feed is another reading of it.
  if (run) run.next = end ? '' : JSON.stringify(last_seq);
  link.stats.handed(rows.length, pending);
  if (!end) link.progress('reading');
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    for (const row of rows.slice(from, from + AT_ONCE)) opts.onChange(row, pending, row.seq);
    await breathe();
    if (state.cancelled) {
      if (link.run === run) link.stop();
      return;
    }
  }
  opts.complete(null, { results: opts.return_docs === false ? [] : rows, last_seq });
}
