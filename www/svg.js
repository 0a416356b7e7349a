// What both drawings share: making SVG elements, and an axis of time.

/** Room for the figures under an axis, in px. */
export const AXIS = 20;

/**
 * @param {string} name @param {Record<string, string | number>} attributes @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/**
 * Round figures from 0 up to `max`, about `wanted` of them.
 * @param {number} max @param {number} wanted
 */
export function ticks(max, wanted) {
  const rough = max / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (/** @type {number} */ ([1, 2, 5, 10].find((m) => m * power >= rough)));
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => i * step);
}

/**
 * Lines and figures of time.
 * @param {{ms: number, x: (ms: number) => number, width: number, top: number, bottom: number}} axis
 */
export function timeAxis({ ms, x, width, top, bottom }) {
  const end = x(ms);
  const marks = ticks(ms / 1000, Math.max(2, width / 110));
  const digits = Math.max(0, -Math.floor(Math.log10(marks[1] ?? 1) + 1e-9));
  return marks.flatMap((second, i) => {
    const at = x(second * 1000);
    const unit = i === marks.length - 1 ? ' s' : '';
    return [
      element('path', { class: 'grid', d: `M${at} ${top}V${bottom}` }),
      element('text', { x: at, y: bottom + 15, 'text-anchor': !i ? 'start' : at > end - 16 ? 'end' : 'middle' }, second.toFixed(digits) + unit),
    ];
  });
}
