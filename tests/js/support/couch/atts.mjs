// The endpoints of one attachment: its bytes, plain or as stored, and edits of the document
// that add or remove one.

import { plainBytes, storeAttachment, validateAttachmentName } from './attachments.mjs';
import { livingWinner } from './database.mjs';
import { validateDocId } from './document.mjs';
import { conflict, CouchError, methodNotAllowed, notFound } from './errors.mjs';
import { ifMatch } from './docs.mjs';
import { parseRev } from './revs.mjs';
import { updateInteractively } from './writes.mjs';

/**
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./http.mjs').Request} Request
 * @typedef {import('./http.mjs').Answer} Answer
 */

/**
 * @param {Database} db
 * @param {Request} request
 * @param {string} id
 * @param {string} name
 * @returns {Answer}
 */
export function attachment(db, request, id, name) {
  validateDocId(id);
  if (request.method === 'GET') return read(db, request, id, name);
  if (request.method !== 'PUT' && request.method !== 'DELETE') throw methodNotAllowed('DELETE,GET,HEAD,PUT');
  return write(db, request, id, name);
}

/** @param {Database} db @param {string} id @param {string | undefined} rev */
function revision(db, id, rev) {
  const doc = db.docs.get(id);
  const node = rev === undefined ? livingWinner(doc) : doc?.tree.get(parseRev(rev).rev);
  if (!node?.value) throw notFound('missing');
  return { node, value: node.value };
}

/** @param {Database} db @param {Request} request @param {string} id @param {string} name @returns {Answer} */
function read(db, request, id, name) {
  const { value } = revision(db, id, request.query.rev);
  const att = value.atts.find((other) => other.name === name);
  if (!att) throw notFound('Document is missing attachment');
  const isZipped = att.encoding === 'gzip';
  const asStored = isZipped && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const headers = {
    ETag: `"${att.md5}"`,
    'Cache-Control': 'must-revalidate',
    'Content-Type': att.type,
    'Content-Security-Policy': 'sandbox',
    'Accept-Ranges': isZipped ? 'none' : 'bytes',
    ...(asStored ? { 'Content-Encoding': 'gzip' } : {}),
  };
  if (request.headers['if-none-match'] === headers.ETag) return { status: 304, headers };
  return { status: 200, headers, body: asStored ? att.stored : plainBytes(att) };
}

/** @param {Database} db @param {Request} request @param {string} id @param {string} name @returns {Answer} */
function write(db, request, id, name) {
  const rev = request.query.rev ?? ifMatch(request);
  const isNew = rev === undefined && request.method === 'PUT';
  const base = isNew ? null : revision(db, id, rev);
  const kept = (base?.value.atts ?? []).filter((att) => att.name !== name);
  if (request.method === 'PUT') validateAttachmentName(name);
  if (request.method === 'DELETE') {
    if (kept.length === base?.value.atts.length) throw notFound('Document is missing attachment');
    if (rev === undefined) throw conflict();
  }
  const stubs = kept.map((att) => ({ name: att.name, type: att.type, stub: /** @type {const} */ (true) }));
  const added = request.method === 'PUT' ? [storeAttachment({
    name,
    type: request.headers['content-type'] ?? 'application/octet-stream',
    bytes: request.body,
    encoding: request.headers['content-encoding'] === 'gzip' ? 'gzip' : 'identity',
  })] : [];
  const doc = {
    id,
    revs: base ? { start: base.node.pos, ids: [base.node.id] } : { start: 0, ids: [] },
    deleted: base?.value.deleted ?? false,
    body: base?.value.body ?? {},
    atts: [...added, ...stubs],
  };
  const [row] = /** @type {any[]} */ (updateInteractively(db, [doc], request.user));
  if (row.error) throw new CouchError(row.error === 'conflict' ? 409 : 403, row.error, row.reason);
  const url = [db.name, id, name].map(encodeURIComponent).join('/');
  return {
    status: request.method === 'PUT' ? 201 : 200,
    headers: request.method === 'PUT' ? { Location: `${request.origin}/${url}` } : {},
    body: { ok: true, id, rev: row.rev },
  };
}
