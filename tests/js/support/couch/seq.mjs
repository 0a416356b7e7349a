// Update sequences as a cluster hands them out: opaque strings over one counter per shard. The
// number in front is only the sum of the counters: it neither orders rows nor stays with a row.
// Knows nothing of documents.

import { createHash } from 'node:crypto';
import { badRequest } from './errors.mjs';

/** @typedef {number[]} Vector one counter per shard */

/**
 * @param {string} uuid of the database
 * @param {Vector} vector
 */
export function encodeSeq(uuid, vector) {
  const payload = JSON.stringify([uuid.slice(0, 8), vector]);
  // As long as the real ones, and nothing that a client could read by eye.
  const check = createHash('sha1').update(payload).digest('base64url').slice(0, 20);
  const sum = vector.reduce((total, counter) => total + counter, 0);
  return `${sum}-g1AAA${Buffer.from(payload).toString('base64url')}.${check}${'x'.repeat(40)}`;
}

/**
 * @param {string} text
 * @param {string} uuid
 * @param {number} shards
 * @returns {Vector}
 */
export function decodeSeq(text, uuid, shards) {
  if (text === '0') return new Array(shards).fill(0);
  const match = /^"?(?:\d+-)?g1AAA([\w-]+)\.[\w-]+"?$/.exec(text);
  try {
    const [owner, vector] = JSON.parse(Buffer.from(match?.[1] ?? '', 'base64url').toString());
    // A seq of another database (deleted and made again under the same name) starts from nothing.
    if (owner !== uuid.slice(0, 8) || vector.length !== shards) return new Array(shards).fill(0);
    return vector;
  } catch {
    throw badRequest("Malformed sequence supplied in 'since' parameter.");
  }
}
