// The few things that are done to bytes. They stand here together because the types of PouchDB
// redeclare `Buffer` for everybody, in a way that the types of Node then refuse: this is the one
// place that has to look past that.

import { createHash } from 'node:crypto';
import { crc32, gunzipSync, gzipSync } from 'node:zlib';

/** @param {Buffer[]} parts */
export const concat = (parts) => Buffer.concat(/** @type {any} */ (parts));

/**
 * @param {Buffer | string} bytes
 * @param {'hex' | 'base64'} encoding
 */
export const md5 = (bytes, encoding) => createHash('md5').update(/** @type {any} */ (bytes)).digest(encoding);

/** @param {Buffer} bytes @param {number} level */
export const gzip = (bytes, level) => gzipSync(/** @type {any} */ (bytes), { level });

/** @param {Buffer} bytes */
export const gunzip = (bytes) => gunzipSync(/** @type {any} */ (bytes));

/** @param {string} text */
export const crc32Of = (text) => crc32(/** @type {any} */ (Buffer.from(text)));

/** The order of the UTF-8 bytes, which is not that of JS strings. @param {string} a @param {string} b */
export const compareBytes = (a, b) => Buffer.compare(/** @type {any} */ (Buffer.from(a)), /** @type {any} */ (Buffer.from(b)));
