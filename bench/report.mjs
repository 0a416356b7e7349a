// What is made of the runs: medians, ratios, a Markdown table.
//
// Decides which figure of several runs stands in the table: the median of those that ended well and equal. A runner with a
// failed or unequal run is marked, whatever its other runs took.

/** @typedef {import('./measure.mjs').Result} Result */
/** @typedef {import('./measure.mjs').Measured} Measured */

const CONTESTANTS = ['stock', 'tuned', 'fast'];
/** The share of the time for which a server computes, from which on it is what bounds the run. */
const BOUND_FROM = 0.5;

/** @param {Result} result */
export function summary({ row, runs }) {
  const of = (/** @type {string} */ runner) => {
    const all = runs.filter((run) => run.runner === runner);
    const timed = all.filter(({ round, error }) => round > 0 && !error);
    const counted = all.filter(({ counters }) => counters);
    const middle = (/** @type {Measured[]} */ list, /** @type {(run: any) => number | undefined} */ value) => median(list.map(value).filter((n) => n !== undefined));
    return all.length ? {
      ms: middle(timed, ({ ms }) => ms),
      requests: middle(counted, ({ counters }) => counters.requests),
      preflights: middle(counted, ({ counters }) => counters.preflights),
      bytes: middle(counted, ({ counters }) => counters.bytesUp + counters.bytesDown),
      connections: middle(counted, ({ counters }) => counters.connections),
      peak: middle(timed, ({ peak }) => peak),
      longTasks: middle(timed, ({ longTasks }) => longTasks),
      longest: timed.some(({ longest }) => longest !== undefined) ? Math.max(...timed.map(({ longest }) => longest ?? 0)) : undefined,
      serverBusy: middle(timed, ({ serverBusy }) => serverBusy),
      equal: all.every(({ equal, error }) => equal && !error),
      error: all.find(({ error }) => error)?.error,
    } : undefined;
  };
  const by = Object.fromEntries(['stock', 'tuned', 'fast', 'floor', 'floor1000'].map((runner) => [runner, of(runner)]));
  const ratio = (/** @type {string} */ other) => (by[other]?.ms && by.fast?.ms ? by[other].ms / by.fast.ms : undefined);
  return { row, by, vsStock: ratio('stock'), vsTuned: ratio('tuned') };
}

/** @param {Result[]} results @returns {string} */
export function markdown(results) {
  const head = ['', 'stock', 'tuned', 'fast', 'fast vs stock', 'vs tuned', 'floor, by 1,000', 'requests', 'of them preflights', 'MB', 'peak MB', 'long tasks (longest, ms)', 'equal'];
  const summaries = results.map(summary);
  const lines = summaries.map(({ row, by, vsStock, vsTuned }) => {
    const each = (/** @type {(entry: any) => string} */ cell) => {
      const cells = CONTESTANTS.filter((name) => by[name]).map((name) => cell(by[name]));
      return cells.some((text) => text !== '–') ? cells.join(' / ') : '';
    };
    const whole = (/** @type {number | undefined} */ n) => (n === undefined ? '–' : Math.round(n).toLocaleString('en-US'));
    return [
      `${row.dir} ${row.docs.toLocaleString('en-US')} ${row.set}, ${row.rtt} ms, ${row.on}`,
      ...CONTESTANTS.map((name) => (by[name]?.error ? `failed` : seconds(by[name]?.ms))),
      times(vsStock), times(vsTuned),
      [by.floor, by.floor1000].filter(Boolean).map((entry) => seconds(entry?.ms)).join(' / '),
      each(({ requests }) => whole(requests)), row.on.startsWith('chromium') ? each(({ preflights }) => whole(preflights)) : '',
      each(({ bytes }) => (bytes === undefined ? '–' : (bytes / 1e6).toFixed(1))),
      each(({ peak }) => whole(peak && peak / 1e6)),
      each(({ longTasks, longest }) => (longTasks === undefined ? '–' : `${whole(longTasks)} (${whole(longest)})`)),
      each(({ equal }) => (equal ? 'yes' : 'NO')),
    ];
  });
  // A column that no row fills is left out.
  const kept = head.map((_, i) => i).filter((i) => i === 0 || lines.some((line) => line[i]));
  const format = (/** @type {string[]} */ cells) => `| ${kept.map((i) => cells[i]).join(' | ')} |`;
  const notes = summaries.flatMap(({ row, by }) => CONTESTANTS.filter((name) => by[name]?.error)
    .map((name) => `- ${row.dir} ${row.set}, ${row.rtt} ms, ${row.on}: ${name} failed: ${by[name]?.error}`));
  const bound = summaries.filter(({ by }) => by.fast?.serverBusy && by.fast.serverBusy > by.fast.ms * BOUND_FROM)
    .map(({ row, by }) => `- ${row.dir} ${row.docs.toLocaleString('en-US')} ${row.set}, ${row.rtt} ms, ${row.on}: bounded by the embedded server, which computed for ${seconds(by.fast?.serverBusy)} of fast's ${seconds(by.fast?.ms)}`);
  return [format(head), `|${kept.map((i) => (i ? '---:' : '---')).join('|')}|`, ...lines.map(format), ...(notes.length || bound.length ? ['', ...notes, ...bound] : [])].join('\n');
}

/** @param {Measured} run @returns {string} */
export function inALine({ runner, round, ms, docs, error, equal, counters, longest, peak, serverBusy }) {
  const parts = error ? [`failed: ${error}`] : [
    `${seconds(ms)}, ${docs.toLocaleString('en-US')} documents`,
    counters && `${counters.requests} requests, ${(1e-6 * (counters.bytesUp + counters.bytesDown)).toFixed(1)} MB`,
    peak && `${Math.round(peak / 1e6)} MB of memory`,
    longest !== undefined && `longest task ${Math.round(longest)} ms`,
    serverBusy !== undefined && `server computing ${seconds(serverBusy)}`,
    equal ? undefined : 'NOT EQUAL',
  ];
  return `  ${round ? `round ${round}` : 'counted'}  ${runner.padEnd(10)} ${parts.filter(Boolean).join(', ')}`;
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.filter((n) => !Number.isNaN(n)).sort((a, b) => a - b);
  if (!sorted.length) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {number | undefined} ms */
const seconds = (ms) => (ms === undefined ? '' : `${(ms / 1000).toFixed(2)} s`);
/** @param {number | undefined} ratio */
const times = (ratio) => (ratio === undefined ? '' : `${ratio.toFixed(1)}x`);
