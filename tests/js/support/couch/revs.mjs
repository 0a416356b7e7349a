// Revision identifiers: parsing them and putting them in CouchDB's order.
// CouchDB keeps a 32-digit id as 16 bytes and any other id as text, and compares those bytes;
// the order of leaves, and so the winner, depends on it.

import { badRequest } from './errors.mjs';

/** @typedef {{ pos: number, id: string, rev: string }} Rev */

/**
 * @param {unknown} id
 * @returns {string}
 */
export function parseRevId(id) {
  if (typeof id !== 'string') throw badRequest('Invalid rev format');
  if (id.length !== 32) return id;
  if (!/^[0-9a-f]+$/i.test(id)) throw badRequest('Invalid rev format');
  return id.toLowerCase();
}

/**
 * @param {unknown} text such as "3-cafe"
 * @returns {Rev}
 */
export function parseRev(text) {
  const match = typeof text === 'string' ? /^(\d+)-(.*)$/s.exec(text) : null;
  if (!match) throw badRequest('Invalid rev format');
  const id = parseRevId(match[2]);
  const pos = Number(match[1]);
  return { pos, id, rev: `${pos}-${id}` };
}

/**
 * @param {unknown} list
 * @returns {Rev[]}
 */
export function parseRevs(list) {
  if (!Array.isArray(list)) throw badRequest('Invalid list of revisions');
  return list.map(parseRev);
}

/** @param {string} id */
const sortKey = (id) =>
  id.length === 32 ? Buffer.from(id, 'hex').toString('latin1') : Buffer.from(id).toString('latin1');

/**
 * @param {string} a
 * @param {string} b
 */
export function compareRevIds(a, b) {
  if (a === b) return 0;
  // Of two lower-case hex strings of one length the text order is the byte order.
  if (a.length === 32 && b.length === 32) return a < b ? -1 : 1;
  return sortKey(a) < sortKey(b) ? -1 : 1;
}

/**
 * @param {{ pos: number, id: string }} a
 * @param {{ pos: number, id: string }} b
 */
export const compareRevs = (a, b) => a.pos - b.pos || compareRevIds(a.id, b.id);
