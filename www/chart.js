// Documents over time, one line each, drawn anew as they grow.
//
// Decides that both begin at zero and share their axes; what a screen reader is told is the end of each line.
import { AXIS, element, ticks, timeAxis } from './svg.js';
import { count, seconds } from './words.js';

/** Room above for the words at the end of a line, and height, in px. */
const TOP = 40, HEIGHT = 240;
/** What the words at a line's end need, in px. */
const WORDS = 150;

/** @typedef {[ms: number, docs: number][]} Line */

/**
 * @param {HTMLElement} place
 * @param {Record<'stock' | 'fast', Line>} lines
 * @param {{ms: number, docs: number}} extent of the axes
 * @param {Set<string>} done whose line has come to its end
 */
export function drawChart(place, lines, extent, done) {
  const width = place.clientWidth;
  if (!width) return;
  const max = Math.max(1, extent.docs), bottom = HEIGHT - AXIS;
  const marks = ticks(max, 5).slice(1);
  const left = 10 + 7 * Math.max(...marks.map((n) => count(n).length), 1);
  const x = (/** @type {number} */ ms) => left + (ms / Math.max(1, extent.ms)) * (width - left - 8);
  const y = (/** @type {number} */ docs) => bottom - (docs / max) * (bottom - TOP);
  const told = [];
  const svg = element('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: 'img' });
  svg.append(...timeAxis({ ms: extent.ms, x, width: width - left, top: TOP, bottom }));
  for (const docs of marks) {
    svg.append(element('path', { class: 'grid', d: `M${left} ${y(docs)}H${width}` }),
      element('text', { x: left - 6, y: y(docs) + 4, 'text-anchor': 'end' }, count(docs)));
  }
  svg.append(element('path', { class: 'grid', d: `M${left} ${bottom}H${width}` }));
  for (const who of /** @type {const} */ (['stock', 'fast'])) {
    const points = lines[who];
    if (!points.length) continue;
    const [ms, docs] = points[points.length - 1];
    svg.append(element('path', { class: `line ${who}`, d: path(points, x, y) }), element('circle', { class: who, cx: x(ms), cy: y(docs), r: 4 }));
    const name = who === 'stock' ? 'PouchDB' : 'fast-sync';
    if (done.has(who)) {
      const atLeft = x(ms) + WORDS / 2 > width;
      // One above the other, so that two ends that are close do not hide each other.
      svg.append(element('text', { class: who, x: atLeft ? width : Math.max(left, x(ms) - WORDS / 2), y: TOP - (who === 'stock' ? 10 : 28), 'text-anchor': atLeft ? 'end' : 'start' }, `${name} ${seconds(ms)}`));
    }
    told.push(`${name}: ${count(docs)} documents after ${seconds(ms)}`);
  }
  svg.setAttribute('aria-label', told.join('; ') || 'no documents yet');
  place.replaceChildren(svg);
}

/**
 * Documents come in batches: what is there stays the same until the next one.
 * @param {Line} points @param {(ms: number) => number} x @param {(docs: number) => number} y
 */
function path(points, x, y) {
  const steps = points.map(([ms, docs]) => `L${x(ms).toFixed(1)} ${y(docs).toFixed(1)}`);
  return `M${x(0).toFixed(1)} ${y(0)}${steps.join('')}`;
}
