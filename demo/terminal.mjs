// How the demo speaks: bars that move on a terminal, a line now and then elsewhere, and a table.
//
// Decides widths and wording of numbers; knows nothing of what is measured.

const BAR = 30;
/** Where no line can be overwritten, one is written at most this often, in ms. */
const LINE_EVERY = 2000;

/**
 * @param {string} title @param {number} total documents
 * @param {NodeJS.WriteStream} [out]
 */
export function progressBar(title, total, out = process.stdout) {
  let last = 0, docs = 0;
  const line = (/** @type {number} */ ms) => {
    const share = total ? Math.min(1, docs / total) : 1;
    const full = Math.round(share * BAR);
    return `${title.padEnd(24)} ${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${count(docs).padStart(7)} documents ${seconds(ms).padStart(8)}`;
  };
  return {
    /** @param {number} now documents so far @param {number} ms */
    update(now, ms) {
      docs = now;
      if (out.isTTY) out.write(`\r${line(ms)}`);
      else if (ms - last >= LINE_EVERY) {
        last = ms;
        out.write(`${line(ms)}\n`);
      }
    },
    /** @param {number} ms */
    done(ms) {
      out.write(`${out.isTTY ? '\r' : ''}${line(ms)}\n`);
    },
    /** @param {string} why */
    failed(why) {
      out.write(`${out.isTTY ? '\r\x1b[2K' : ''}${title.padEnd(24)} failed: ${why}\n`);
    },
  };
}

/**
 * @param {string[]} head @param {string[][]} rows the first column to the left, the others to the right
 * @returns {string}
 */
export function table(head, rows) {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (/** @type {string[]} */ cells) => cells.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('   ').trimEnd();
  return [line(head), widths.map((width) => '─'.repeat(width)).join('───'), ...rows.map(line)].join('\n');
}

/** @param {number} n */
export const count = (n) => n.toLocaleString('en-US');
/** @param {number} ms */
export const seconds = (ms) => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
/** @param {number} ratio */
export const times = (ratio) => `${ratio.toFixed(1)}x`;
