// The requests of one sync, one line each, from when it was sent to when its answer was complete.
//
// Decides the height of a line: few are drawn generously, many as dense as pixels allow. One path holds all requests of a
// kind, so that ten thousand of them are no burden.
import { AXIS, element, timeAxis } from './svg.js';
import { many } from './words.js';

/** Of one line, in px, and of all together. */
const LINE = 9, HEIGHT = [54, 280];

/** Kinds of requests, in the order in which the table tells them. @type {Record<import('./meter.js').Kind, string>} */
export const KINDS = {
  feed: 'The change feed', documents: 'Documents', attachments: 'Attachments', checkpoints: 'Checkpoints', about: 'Server and database',
};

/**
 * @param {HTMLElement} place @param {import('./meter.js').Request[]} requests
 * @param {number} ms of the axis, the same for both
 */
export function drawWaterfall(place, requests, ms) {
  const width = place.clientWidth;
  if (!width) return;
  const height = Math.min(HEIGHT[1], Math.max(HEIGHT[0], requests.length * LINE));
  const line = Math.min(LINE, height / Math.max(1, requests.length));
  const x = (/** @type {number} */ at) => 1 + (at / Math.max(1, ms)) * (width - 14);
  const svg = element('svg', {
    viewBox: `0 0 ${width} ${height + AXIS}`, height: height + AXIS, role: 'img',
    'aria-label': `${many(requests.length, 'request')}; the table below counts them by kind`,
  });
  svg.append(...timeAxis({ ms, x, width, top: 0, bottom: height }));
  /** @type {Record<string, string>} */
  const paths = {};
  [...requests].sort((a, b) => a.start - b.start).forEach(({ kind, start, end }, i) => {
    const from = x(start), to = Math.max(x(end), from + 1);
    paths[kind] = `${paths[kind] ?? ''}M${from.toFixed(1)} ${((i + 0.5) * line).toFixed(1)}H${to.toFixed(1)}`;
  });
  for (const [kind, d] of Object.entries(paths)) {
    svg.append(element('path', { class: `kind ${kind}`, d, 'stroke-width': Math.max(1.5, line - (line > 4 ? 2 : 0)).toFixed(1) }));
  }
  place.replaceChildren(svg);
}
