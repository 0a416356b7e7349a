// Multipart bodies in CouchDB's byte layout: the answers of `_bulk_get` and `open_revs`, one
// document with its attachments, and the parts of a `multipart/related` request.
// CouchDB's own boundaries start with two dashes in `_bulk_get`; file names go out in raw UTF-8.

import { randomBytes } from 'node:crypto';
import { isShownAsStub } from './attachments.mjs';
import { concat } from './bytes.mjs';
import { documentToJson } from './document.mjs';
import { badRequest } from './errors.mjs';

const newBoundary = () => randomBytes(16).toString('hex');

/**
 * @param {string} id
 * @param {import('./tree.mjs').Node} node
 * @param {import('./document.mjs').DocumentView} view
 * @returns {{ json: string, atts: import('./attachments.mjs').Attachment[] }} atts: those to be sent
 */
function prepare(id, node, view) {
  // A multipart answer carries the attachments, asked for or not.
  const full = { ...view, data: true, follows: true, encodingInfo: true };
  const atts = (node.value?.atts ?? []).filter((att) => !isShownAsStub(att, full));
  return { json: JSON.stringify(documentToJson(id, node, full)), atts };
}

/**
 * @param {string} json
 * @param {import('./attachments.mjs').Attachment[]} atts
 * @param {string} boundary
 * @returns {Buffer}
 */
function encode(json, atts, boundary) {
  if (atts.length === 0) return Buffer.from(json);
  const parts = [Buffer.from(`--${boundary}\r\nContent-Type: application/json\r\n\r\n${json}\r\n--${boundary}`)];
  for (const { name, type, encoding, encodedLength, stored } of atts) {
    const zipped = encoding === 'gzip' ? '\r\nContent-Encoding: gzip' : '';
    parts.push(Buffer.from(`\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Type: ${type}`
      + `\r\nContent-Length: ${encodedLength}${zipped}\r\n\r\n`), stored, Buffer.from(`\r\n--${boundary}`));
  }
  return concat([...parts, Buffer.from('--')]);
}

/**
 * @param {import('./bulk.mjs').Entry[]} entries
 * @param {string} type
 * @returns {import('./http.mjs').Answer}
 */
export function bulkGetMultipart(entries, type) {
  const outer = `--${newBoundary()}`;
  /** @type {Buffer[]} */
  const parts = [];
  for (const { id, docs } of entries) {
    for (const item of docs) {
      if ('error' in item) {
        // A missing revision has the short form, an entry that could not be read the long one.
        const { rev, error, reason } = item;
        const isPlain = error === 'not_found' && rev !== 'undefined';
        const json = JSON.stringify(isPlain ? { rev, error, reason } : { rev, reason, id: item.id, error });
        parts.push(Buffer.from(`\r\n--${outer}\r\nContent-Type: application/json; error="true"\r\n\r\n${json}`));
        continue;
      }
      const inner = `--${newBoundary()}`;
      const { json, atts } = prepare(/** @type {string} */ (id), item.node, item.view);
      const head = atts.length === 0
        ? 'Content-Type: application/json'
        : `X-Doc-Id: ${id}\r\nX-Rev-Id: ${item.node.rev}\r\nContent-Type: multipart/related; boundary=${inner}`;
      parts.push(Buffer.from(`\r\n--${outer}\r\n${head}\r\n\r\n`), encode(json, atts, inner));
    }
  }
  if (entries.length > 0) parts.push(Buffer.from(`\r\n--${outer}--\r\n`));
  const headers = { 'Content-Type': `${type}; boundary="${outer}"` };
  return { status: 200, headers, chunked: true, body: concat(parts) };
}

/**
 * @param {string} id
 * @param {{ node: import('./tree.mjs').Node | string, view: import('./document.mjs').DocumentView }[]} found
 * @returns {import('./http.mjs').Answer}
 */
export function openRevsMultipart(id, found) {
  const outer = newBoundary();
  const inner = newBoundary();
  const parts = [Buffer.from(`--${outer}`)];
  for (const { node, view } of found) {
    if (typeof node === 'string') {
      const json = JSON.stringify({ missing: node });
      parts.push(Buffer.from(`\r\nContent-Type: application/json; error="true"\r\n\r\n${json}`));
    } else {
      const { json, atts } = prepare(id, node, view);
      const type = atts.length === 0 ? 'application/json' : `multipart/related; boundary="${inner}"`;
      parts.push(Buffer.from(`\r\nContent-Type: ${type}\r\n\r\n`), encode(json, atts, inner));
    }
    parts.push(Buffer.from(`\r\n--${outer}`));
  }
  parts.push(Buffer.from('--'));
  const headers = { 'Content-Type': `multipart/mixed; boundary="${outer}"` };
  return { status: 200, headers, chunked: true, body: concat(parts) };
}

/**
 * @param {string} id
 * @param {import('./tree.mjs').Node} node
 * @param {import('./document.mjs').DocumentView} view
 * @returns {import('./http.mjs').Answer}
 */
export function documentMultipart(id, node, view) {
  const boundary = newBoundary();
  const { json, atts } = prepare(id, node, view);
  const type = atts.length === 0 ? 'application/json' : `multipart/related; boundary="${boundary}"`;
  return { status: 200, headers: { 'Content-Type': type }, body: encode(json, atts, boundary) };
}

/**
 * The parts of a request body, in order.
 * @param {string} contentType
 * @param {Buffer} body
 * @returns {{ headers: Record<string, string>, bytes: Buffer }[]}
 */
export function parseMultipart(contentType, body) {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (!boundary) throw badRequest('multipart without a boundary');
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // The first delimiter may stand at the very start.
  const bytes = concat([Buffer.from('\r\n'), body]);
  const parts = [];
  let at = bytes.indexOf(delimiter);
  while (at >= 0) {
    const start = at + delimiter.length;
    if (bytes.subarray(start, start + 2).toString() === '--') return parts;
    const end = bytes.indexOf(delimiter, start);
    if (end < 0) break;
    const part = bytes.subarray(start + 2, end);
    // A part without headers starts with the empty line that ends them.
    const split = part.subarray(0, 2).toString() === '\r\n' ? -2 : part.indexOf('\r\n\r\n');
    const lines = split < 0 ? [] : part.subarray(0, split).toString().split('\r\n');
    parts.push({
      headers: Object.fromEntries(lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
      })),
      bytes: part.subarray(split + 4),
    });
    at = end;
  }
  throw badRequest('multipart body ends without its last boundary');
}
