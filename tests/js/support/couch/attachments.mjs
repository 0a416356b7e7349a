// Attachments as CouchDB stores them: compressible types gzipped at level 8 (the digest is then
// that of the gzip bytes), others as they came; stubs matched with the revision before; and the
// three ways in which a document shows them (stub, base64 data, "follows").

import { gunzip, gzip, md5 } from './bytes.mjs';
import { badRequest, CouchError } from './errors.mjs';

/**
 * @typedef {{ name: string, type: string, revpos: number, encoding: 'identity' | 'gzip',
 *   stored: Buffer, length: number, encodedLength: number, md5: string }} Attachment
 * `stored` are the bytes on disk, `length` the plain length, `md5` is base64.
 * @typedef {{ name: string, type: string, revpos?: number, stub: true }} Stub
 */

// `[attachments]` in CouchDB's default.ini
const COMPRESSION_LEVEL = 8;
const COMPRESSIBLE = /^\s*(text\/.+|application\/(javascript|json|xml))\s*(;.*)?$/i;

/**
 * @param {{ name: string, type: string, bytes: Buffer, revpos?: number,
 *   encoding?: 'identity' | 'gzip', length?: number }} given
 * @returns {Attachment}
 */
export function storeAttachment({ name, type, bytes, revpos = 0, encoding = 'identity', length }) {
  if (encoding === 'gzip') {
    return { name, type, revpos, encoding, stored: bytes, length: length ?? bytes.length, encodedLength: bytes.length, md5: md5(bytes, 'base64') };
  }
  const zipped = COMPRESSIBLE.test(type);
  const stored = zipped ? gzip(bytes, COMPRESSION_LEVEL) : bytes;
  return {
    name, type, revpos, stored,
    encoding: zipped ? 'gzip' : 'identity',
    length: bytes.length,
    encodedLength: stored.length,
    md5: md5(stored, 'base64'),
  };
}

/** @param {Attachment} att */
export const plainBytes = (att) => (att.encoding === 'gzip' ? gunzip(att.stored) : att.stored);

/** @param {string} name */
export function validateAttachmentName(name) {
  if (name.startsWith('_')) throw badRequest(`Attachment name '${name}' starts with prohibited character '_'`);
}

/**
 * @param {string} name
 * @param {any} json a member of `_attachments`
 * @param {(name: string, json: any) => Buffer} follow gives the bytes of a part that follows
 * @returns {Attachment | Stub}
 */
export function attachmentFromJson(name, json, follow) {
  validateAttachmentName(name);
  const type = json.content_type ?? 'application/octet-stream';
  if (json.stub) return { name, type, revpos: json.revpos, stub: true };
  if (json.follows) {
    const encoding = json.encoding === 'gzip' ? 'gzip' : 'identity';
    return storeAttachment({ name, type, bytes: follow(name, json), revpos: json.revpos, encoding, length: json.length });
  }
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(json.data ?? '?')) throw badRequest(`Invalid attachment data for ${name}`);
  return storeAttachment({ name, type, bytes: Buffer.from(json.data, 'base64'), revpos: json.revpos });
}

/**
 * Puts the stored attachments in place of stubs.
 * @param {string} docId
 * @param {(Attachment | Stub)[]} atts
 * @param {Attachment[]} before those of the nearest ancestor that has a body
 * @param {number} [generation] of an edit: its new attachments get it as their `revpos`;
 *   replicated ones keep what they came with
 * @returns {Attachment[]}
 */
export function resolveStubs(docId, atts, before, generation) {
  return atts.map((att) => {
    if (!('stub' in att)) return generation === undefined ? att : { ...att, revpos: generation };
    const found = before.find((old) => old.name === att.name);
    if (found && (att.revpos === undefined || att.revpos === found.revpos)) return found;
    throw new CouchError(412, 'missing_stub', `Invalid attachment stub in ${docId} for ${att.name}`);
  });
}

/**
 * @typedef {{ data?: boolean, follows?: boolean, encodingInfo?: boolean,
 *   unchangedSince?: number | null }} AttachmentView
 * `unchangedSince`: attachments of this generation and older stay stubs
 */

/**
 * @param {Attachment} att
 * @param {AttachmentView} view
 */
export const isShownAsStub = (att, view) =>
  !view.data || (view.unchangedSince != null && att.revpos <= view.unchangedSince);

/**
 * @param {Attachment[]} atts
 * @param {AttachmentView} view
 */
export function attachmentsToJson(atts, view) {
  return Object.fromEntries(atts.map((att) => {
    /** @type {Record<string, unknown>} */
    const json = { content_type: att.type, revpos: att.revpos, digest: `md5-${att.md5}` };
    if (isShownAsStub(att, view)) Object.assign(json, { length: att.length, stub: true });
    else if (view.follows) Object.assign(json, { length: att.length, follows: true });
    else json.data = plainBytes(att).toString('base64');
    if (view.encodingInfo && att.encoding === 'gzip') {
      Object.assign(json, { encoding: 'gzip', encoded_length: att.encodedLength });
    }
    return [att.name, json];
  }));
}
