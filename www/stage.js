// What is shown of a race: the two tracks, the drawings, and at the end the result.
//
// Decides when things are drawn anew (at most four times a second) and what a screen reader hears while the bars move:
// quarters, not every batch.
import { inWords } from '../demo/compare.mjs';
import { drawChart } from './chart.js';
import { count, failure, many, seconds, weight } from './words.js';
import { drawWaterfall, KINDS } from './waterfall.js';

/** ms between two drawings, and between two looks at the clock. */
const REDRAW_EVERY = 250, TICK = 100;
const SHOWN_DIFFERENCES = 10;
const NAMES = { stock: 'PouchDB', fast: 'fast-sync' };
const WHO = /** @type {const} */ (['stock', 'fast']);

/** @typedef {import('./race.js').Who} Who */
/** @typedef {{line: import('./chart.js').Line, requests: import('./meter.js').Request[], outcome?: import('./race.js').Outcome, quarter: number}} Seen */

/** @type {any} */
const byId = (/** @type {string} */ id) => document.getElementById(id);

export class Stage {
  /** @type {Record<Who, Seen>} */
  seen = { stock: nothing(), fast: nothing() };
  #total = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #ticking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #drawing;

  constructor() {
    new ResizeObserver(() => this.#draw()).observe(byId('stage'));
  }

  /** @param {string} text heard, too */
  say(text) {
    if (byId('status').textContent !== text) byId('status').textContent = text;
  }

  /** @param {number} total documents that are expected */
  clear(total) {
    clearInterval(this.#ticking);
    this.seen = { stock: nothing(), fast: nothing() };
    this.#total = total;
    for (const who of WHO) this.#track(who, '–', 'waits', 0);
    byId('result').hidden = true;
    for (const id of ['over-time', 'requests']) byId(id).hidden = false;
    this.#draw();
  }

  /** @param {Who} who */
  started(who) {
    this.say(`${NAMES[who]} syncs.`);
    this.#track(who, '0.0 s', 'asks the server', 0);
    const start = performance.now();
    this.#ticking = setInterval(() => this.#clock(who, `${((performance.now() - start) / 1000).toFixed(1)} s`), TICK);
    // On a phone it is below the form.
    byId('race').scrollIntoView({ block: 'nearest' });
  }

  /** @param {Who} who @param {{docs: number, ms: number, received: number}} progress */
  progress(who, { docs, ms, received }) {
    const seen = this.seen[who];
    const last = seen.line[seen.line.length - 1];
    if (last && last[1] > docs) return; // of the two events that tell, the other was ahead
    seen.line.push([ms, docs]);
    // The total is what the server counts, without the conflicts: it may be less than what comes.
    const share = this.#total ? Math.min(0.99, docs / this.#total) : 0;
    this.#track(who, undefined, figures(docs, seen.requests.length, received), share);
    const quarter = Math.floor(share * 4);
    if (quarter > seen.quarter) {
      seen.quarter = quarter;
      this.say(`${NAMES[who]}: ${quarter * 25} % after ${seconds(ms)}.`);
    }
    this.#drawSoon();
  }

  /** @param {Who} who @param {import('./meter.js').Request[]} requests */
  requests(who, requests) {
    this.seen[who].requests.push(...requests);
    this.#drawSoon();
  }

  /** @param {Who} who @param {import('./race.js').Outcome} outcome */
  synced(who, outcome) {
    this.seen[who].outcome = outcome;
    const { ms } = outcome;
    this.#finished(who);
    this.say(`${NAMES[who]} is done after ${seconds(ms)}.`);
    this.#draw();
  }

  /** @param {Who} who @param {import('./contestant.js').Failure} why */
  failed(who, why) {
    clearInterval(this.#ticking);
    this.#track(who, 'failed', failure(why), 0);
    this.say(`${NAMES[who]} failed: ${failure(why)}.`);
  }

  /** @param {Who} who @param {number} read */
  comparing(who, read) {
    byId(who).querySelector('.figures').textContent = `${count(read)} documents read again, to compare`;
  }

  cancelled() {
    clearInterval(this.#ticking);
    for (const who of WHO) if (!this.seen[who].outcome) this.#track(who, '–', 'cancelled', 0);
  }

  /**
   * @param {import('./race.js').Comparison | undefined} comparison @param {{preflights?: Record<Who, number>, changed?: boolean}} more
   */
  result(comparison, { preflights, changed }) {
    const { stock: { outcome: stock }, fast: { outcome: fast } } = this.seen;
    if (!stock || !fast) return;
    for (const who of WHO) this.#finished(who);
    byId('result').hidden = false;
    byId('verdict').replaceChildren(...verdict(stock.ms / fast.ms, comparison));
    byId('verdict').classList.toggle('bad', Boolean(comparison?.differences.length));
    byId('aside').hidden = !fast.stoodAside;
    byId('aside').textContent = fast.stoodAside === null ? '' : aside(fast.stoodAside);
    const rate = (/** @type {import('./race.js').Outcome} */ { docs, ms }) => count(Math.round((docs / ms) * 1000));
    rows(byId('figures').tBodies[0], [
      ['Time', seconds(stock.ms), seconds(fast.ms)],
      ['Documents', count(stock.docs), count(fast.docs)],
      ['Documents a second', rate(stock), rate(fast)],
      ['Requests', count(stock.requests), count(fast.requests)],
      ...(preflights ? [['Preflights', count(preflights.stock), count(preflights.fast)]] : []),
      ['Received', weight(stock.received), weight(fast.received)],
      ...(stock.failures || fast.failures ? [['Refused by this browser', count(stock.failures), count(fast.failures)]] : []),
      ['Same database', same(comparison)],
    ]);
    byId('differences').replaceChildren(...list(comparison?.differences ?? [], changed));
    this.#draw();
    byId('result').focus({ preventScroll: true });
    byId('result').scrollIntoView({ block: 'nearest' });
  }

  #drawSoon() {
    this.#drawing ||= setTimeout(() => this.#draw(), REDRAW_EVERY);
  }

  #draw() {
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    if (byId('over-time').hidden) return;
    const { stock, fast } = this.seen;
    const ends = WHO.flatMap((who) => [...this.seen[who].line.map(([ms]) => ms), ...this.seen[who].requests.map(({ end }) => end)]);
    const done = new Set(WHO.filter((who) => this.seen[who].outcome));
    // While they run, axes that are stretched by every answer would be a restless sight.
    const ms = ends.reduce((a, b) => Math.max(a, b), done.size < 2 ? 1000 : 1);
    const docs = WHO.reduce((most, who) => Math.max(most, this.seen[who].line.at(-1)?.[1] ?? 0), this.#total);
    drawChart(byId('chart'), { stock: stock.line, fast: fast.line }, { ms, docs }, done);
    for (const who of WHO) drawWaterfall(byId(`waterfall-${who}`), this.seen[who].requests, ms);
    rows(byId('kinds').tBodies[0], Object.entries(KINDS).map(([kind, title]) => {
      const swatch = Object.assign(document.createElement('span'), { className: `swatch ${kind}` });
      return [[swatch, title], ...WHO.map((who) => count(this.seen[who].requests.filter((request) => request.kind === kind).length))];
    }));
  }

  /** @param {Who} who */
  #finished(who) {
    clearInterval(this.#ticking);
    const { ms, docs, requests, received } = /** @type {import('./race.js').Outcome} */ (this.seen[who].outcome);
    this.#track(who, seconds(ms), figures(docs, requests, received), 1);
  }

  /** @param {Who} who @param {string | undefined} clock @param {string} text @param {number} share */
  #track(who, clock, text, share) {
    if (clock !== undefined) this.#clock(who, clock);
    byId(who).querySelector('.figures').textContent = text;
    byId(who).querySelector('progress').value = share;
  }

  /** @param {Who} who @param {string} text */
  #clock(who, text) {
    byId(who).querySelector('.clock').textContent = text;
  }
}

/** @param {number} docs @param {number} requests @param {number} received */
const figures = (docs, requests, received) => `${many(docs, 'document')}, ${many(requests, 'request')}, ${weight(received)}`;

/** @returns {Seen} */
const nothing = () => ({ line: [], requests: [], quarter: 0 });

/** @param {number} factor @param {import('./race.js').Comparison} [comparison] @returns {(Node | string)[]} */
function verdict(factor, comparison) {
  if (comparison?.differences.length) return ['The two databases are not the same.'];
  const big = document.createElement('b');
  big.textContent = `${factor.toFixed(factor < 20 ? 1 : 0)}×`;
  const speed = factor >= 1.05 ? 'faster' : factor > 0.95 ? 'as fast' : 'slower, this time';
  return [big, comparison ? `${speed}, and the same database.` : `${speed}. The databases were not compared.`];
}

/** @param {import('./race.js').Comparison} [comparison] */
function same(comparison) {
  if (!comparison) return 'not compared';
  const { differences, documents, leaves } = comparison;
  if (differences.length) return `No: ${many(differences.length, 'difference')}`;
  return `Yes, equal: ${many(documents, 'document')}, ${many(leaves, 'leaf revision')}`;
}

/** @param {string} why */
function aside(why) {
  return why === 'wasm'
    ? 'Both runs are stock’s: the Content-Security-Policy of this page refuses WebAssembly, so the plugin stood aside. Its script-src needs \'wasm-unsafe-eval\'.'
    : `Both runs are stock’s: the plugin stood aside. ${why}`;
}

/** @param {import('../demo/compare.mjs').Difference[]} differences @param {boolean} [changed] */
function list(differences, changed) {
  if (!differences.length) return [];
  const lines = differences.slice(0, SHOWN_DIFFERENCES).map(inWords);
  if (differences.length > lines.length) lines.push(`and ${count(differences.length - lines.length)} more`);
  if (differences.every(({ kind, losing }) => kind === 'attachments' && losing)) lines.push('Stock is known to fetch the winner’s bytes for the attachments of a losing leaf.');
  if (changed) lines.push('The database was written to in the meantime, so that differences may be nobody’s fault.');
  const made = document.createElement('ul');
  made.append(...lines.map((text) => Object.assign(document.createElement('li'), { textContent: text })));
  return [made];
}

/** @param {HTMLTableSectionElement} body @param {any[][]} cells a last row of two reaches over both columns */
function rows(body, cells) {
  body.replaceChildren(...cells.map(([head, ...rest]) => {
    const row = document.createElement('tr');
    const title = document.createElement('th');
    title.scope = 'row';
    title.append(...[head].flat());
    row.append(title, ...rest.map((text) => {
      const cell = Object.assign(document.createElement('td'), { textContent: text });
      if (rest.length === 1) cell.colSpan = 2;
      return cell;
    }));
    return row;
  }));
}
