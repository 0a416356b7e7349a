// CouchDB's revision ids: the MD5 of an Erlang term made of a document. The same edit gets the
// same id here as there, which is what makes two servers agree after the same edit.
// Knows only the few Erlang terms that occur; numbers beyond a double's integers are not told apart.

import { concat, md5 } from './bytes.mjs';

const SMALL_INTEGER = 97;
const INTEGER = 98;
const ATOM = 100;
const TUPLE = 104;
const NIL = 106;
const STRING = 107;
const LIST = 108;
const BINARY = 109;
const SMALL_BIG = 110;
const NEW_FLOAT = 70;

/** @param {number} value */
function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** @param {string} name */
const atom = (name) => concat([Buffer.from([ATOM, 0, name.length]), Buffer.from(name)]);
/** @param {Buffer} bytes */
const binary = (bytes) => concat([Buffer.from([BINARY]), u32(bytes.length), bytes]);
/** @param {Buffer[]} items */
const tuple = (items) => concat([Buffer.from([TUPLE, items.length]), ...items]);

/** @param {Buffer[]} items */
function list(items) {
  if (items.length === 0) return Buffer.from([NIL]);
  const bytes = items.length < 65536 && items.every((item) => item[0] === SMALL_INTEGER);
  if (bytes) {
    const head = Buffer.from([STRING, items.length >> 8, items.length & 255]);
    return concat([head, ...items.map((item) => item.subarray(1))]);
  }
  return concat([Buffer.from([LIST]), u32(items.length), ...items, Buffer.from([NIL])]);
}

/** @param {number} value */
function number(value) {
  if (!Number.isInteger(value)) {
    const bytes = Buffer.alloc(9);
    bytes[0] = NEW_FLOAT;
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (value >= 0 && value < 256) return Buffer.from([SMALL_INTEGER, value]);
  if (value >= -(2 ** 31) && value < 2 ** 31) return concat([Buffer.from([INTEGER]), u32(value)]);
  const digits = [];
  for (let rest = BigInt(value) < 0n ? -BigInt(value) : BigInt(value); rest > 0n; rest >>= 8n) {
    digits.push(Number(rest & 255n));
  }
  return Buffer.from([SMALL_BIG, digits.length, value < 0 ? 1 : 0, ...digits]);
}

/**
 * @param {any} value a JSON value
 * @returns {Buffer}
 */
function json(value) {
  if (value === null || typeof value === 'boolean') return atom(String(value));
  if (typeof value === 'number') return number(value);
  if (typeof value === 'string') return binary(Buffer.from(value));
  if (Array.isArray(value)) return list(value.map(json));
  const members = Object.entries(value).map(([key, member]) => tuple([binary(Buffer.from(key)), json(member)]));
  return tuple([list(members)]);
}

/** @param {string} id */
const revIdBytes = (id) => (id.length === 32 ? Buffer.from(id, 'hex') : Buffer.from(id));

/**
 * The id of the revision that an edit makes.
 * @param {{ deleted: boolean, body: object, atts: import('./attachments.mjs').Attachment[] }} value
 * @param {{ pos: number, id: string } | null} parent
 */
export function newRevId(value, parent) {
  // CouchDB collects the attachments in reverse.
  const atts = value.atts
    .map((att) => tuple([Buffer.from(att.name), Buffer.from(att.type), Buffer.from(att.md5, 'base64')].map(binary)))
    .reverse();
  const term = list([
    atom(String(value.deleted)),
    number(parent ? parent.pos : 0),
    parent ? binary(revIdBytes(parent.id)) : number(0),
    json(value.body),
    list(atts),
  ]);
  return md5(concat([Buffer.from([131]), term]), 'hex');
}
