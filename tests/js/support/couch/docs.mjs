// The endpoints of one document: reading it in every form that a replicator asks for, writing
// it (also with its attachments behind it), deleting it, and `_local` documents.

import { md5 } from './bytes.mjs';
import { livingWinner } from './database.mjs';
import { documentFromJson, documentToJson, validateDocId } from './document.mjs';
import { badRequest, CouchError, methodNotAllowed, notFound } from './errors.mjs';
import { documentMultipart, openRevsMultipart, parseMultipart } from './multipart.mjs';
import { compareRevs, parseRev, parseRevs } from './revs.mjs';
import { putLocal, updateInteractively, updateReplicated } from './writes.mjs';
import { viewFor } from './bulk.mjs';

/**
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./http.mjs').Request} Request
 * @typedef {import('./http.mjs').Answer} Answer
 */

/** @param {Database} db @param {string} id */
const urlOf = (db, id) => `/${encodeURIComponent(db.name)}/${encodeURIComponent(id)}`;

/** @param {object} row throws it when the write was refused */
function settled(row) {
  const { error, reason } = /** @type {any} */ (row);
  if (!error) return /** @type {{ ok: true, id: string, rev: string }} */ (row);
  const statuses = { conflict: 409, forbidden: 403, unauthorized: 401 };
  throw new CouchError(statuses[/** @type {keyof typeof statuses} */ (error)] ?? 500, error, reason);
}

/** @param {Database} db @param {Request} request @param {string} id @returns {Answer} */
export function document(db, request, id) {
  if (id.startsWith('_local/')) return local(db, request, id);
  if (request.method === 'GET') return readDocument(db, request, id);
  validateDocId(id);
  if (request.method === 'PUT') return writeDocument(db, request, id);
  if (request.method !== 'DELETE') throw methodNotAllowed('DELETE,GET,HEAD,POST,PUT,COPY');
  livingWinner(db.docs.get(id));
  const rev = request.query.rev ?? ifMatch(request);
  const doc = documentFromJson({ _deleted: true, ...(rev === undefined ? {} : { _rev: rev }) }, { id });
  const [row] = updateInteractively(db, [doc], request.user);
  return { status: 200, headers: { ETag: `"${settled(row).rev}"` }, body: row };
}

/** @param {Request} request */
export const ifMatch = (request) => request.headers['if-match']?.replaceAll('"', '').trim();

/** @param {Database} db @param {Request} request @param {string} id @returns {Answer} */
function readDocument(db, request, id) {
  const { query } = request;
  const ancestors = parseRevs(JSON.parse(query.atts_since ?? '[]'));
  const r = query.r === undefined ? undefined : Number(query.r);
  if (query.open_revs !== undefined) return readRevisions(db, request, id, ancestors, r);
  const wanted = query.rev !== undefined && query.latest !== 'true' ? parseRev(query.rev) : null;
  const doc = r === 1 && db.isLagging(id) ? undefined : db.docs.get(id);
  const node = wanted ? doc?.tree.get(wanted.rev) : query.deleted === 'true' ? doc?.tree.winner() : livingWinner(doc);
  if (!node?.value) throw notFound('missing');
  const meta = wanted || !doc ? {} : metaFor(doc.tree, query);
  const view = { ...viewFor(db, query, node, ancestors), meta };
  const headers = /** @type {Record<string, string>} */ (Object.keys(meta).length === 0 ? { ETag: `"${node.rev}"` } : {});
  if (headers.ETag && request.headers['if-none-match'] === headers.ETag) return { status: 304, headers };
  if (view.data && node.value.atts.length > 0 && request.accepts('multipart/related')) {
    const answer = documentMultipart(id, node, view);
    return { ...answer, headers: { ...answer.headers, ...headers } };
  }
  return { status: 200, headers, body: documentToJson(id, node, view) };
}

/**
 * @param {import('./tree.mjs').RevTree} tree
 * @param {Record<string, string>} query
 */
export function metaFor(tree, query) {
  const all = query.meta === 'true';
  const losers = tree.ranked().slice(1);
  const names = (/** @type {boolean} */ deleted) =>
    losers.filter((node) => node.value?.deleted === deleted).map(({ rev }) => rev);
  const info = [];
  for (let at = /** @type {import('./tree.mjs').Node | null} */ (tree.winner()); at; at = at.parent) {
    info.push({ rev: at.rev, status: !at.value ? 'missing' : at.value.deleted ? 'deleted' : 'available' });
  }
  const conflicts = names(false);
  const deleted = names(true);
  return {
    ...(all || query.revs_info === 'true' ? { _revs_info: info } : {}),
    ...((all || query.conflicts === 'true') && conflicts.length > 0 ? { _conflicts: conflicts } : {}),
    ...((all || query.deleted_conflicts === 'true') && deleted.length > 0 ? { _deleted_conflicts: deleted } : {}),
  };
}

/**
 * @param {Database} db
 * @param {Request} request
 * @param {string} id
 * @param {import('./revs.mjs').Rev[]} ancestors
 * @param {number | undefined} r
 * @returns {Answer}
 */
function readRevisions(db, request, id, ancestors, r) {
  const { query } = request;
  const revs = query.open_revs === 'all' ? 'all' : parseRevs(JSON.parse(query.open_revs));
  const found = db.openRevs(id, revs, { latest: query.latest === 'true', r });
  if (revs === 'all' && found.length === 0) throw notFound('missing');
  // Unlike `_bulk_get`, this one sorts: found revisions by history, then the missing ones.
  found.sort(compareFound);
  const shown = found.map((node) => ({
    node, view: typeof node === 'string' ? {} : viewFor(db, query, node, ancestors),
  }));
  if (request.accepts('multipart/mixed')) return openRevsMultipart(id, shown);
  const body = shown.map(({ node, view }) =>
    (typeof node === 'string' ? { missing: node } : { ok: documentToJson(id, node, view) }));
  return { status: 200, headers: {}, chunked: true, body };
}

/** @param {import('./tree.mjs').Node | string} a @param {import('./tree.mjs').Node | string} b */
function compareFound(a, b) {
  if (typeof a === 'string' || typeof b === 'string') {
    return Number(typeof a === 'string') - Number(typeof b === 'string');
  }
  return compareRevs(a, b);
}

/** @param {Request} request @param {string} id @param {number | undefined} maxSize */
function incoming(request, id, maxSize) {
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith('multipart/related')) return documentFromJson(request.json(), { id, maxSize });
  const [first, ...rest] = parseMultipart(type, request.body);
  // CouchDB goes by the order of the attachments in the JSON; names in the parts are for people.
  const follow = (/** @type {string} */ name, /** @type {any} */ json) => {
    const part = rest.shift();
    if (!part) throw badRequest(`attachment ${name} does not follow`);
    const expected = json.encoding ? json.encoded_length ?? json.length : json.length;
    if (expected !== undefined && expected < part.bytes.length) throw badRequest('attachment longer than expected');
    if (expected > part.bytes.length) throw badRequest('attachment shorter than expected');
    const digest = json.digest && !json.encoding ? json.digest.replace(/^md5-/, '') : null;
    if (digest && digest !== md5(part.bytes, 'base64')) {
      throw new CouchError(500, 'unknown_error', 'md5_mismatch');
    }
    return part.bytes;
  };
  return documentFromJson(JSON.parse(first.bytes.toString()), { id, maxSize, follow });
}

/** @param {Database} db @param {Request} request @param {string} id @returns {Answer} */
function writeDocument(db, request, id) {
  const doc = incoming(request, id, db.limits.maxDocumentSize);
  const given = request.query.rev ?? ifMatch(request);
  if (given !== undefined) {
    const { pos, id: revId, rev } = parseRev(given);
    if (doc.revs.ids.length > 0 && rev !== `${doc.revs.start}-${doc.revs.ids[0]}`) {
      throw badRequest('Document rev from request body and query string have different values');
    }
    if (doc.revs.ids.length === 0) doc.revs = { start: pos, ids: [revId] };
  }
  const isReplicated = request.query.new_edits === 'false';
  const rev = `${doc.revs.start}-${doc.revs.ids[0]}`;
  const [row] = isReplicated ? updateReplicated(db, [doc], request.user) : updateInteractively(db, [doc], request.user);
  const done = settled(row ?? { ok: true, id, rev });
  return {
    status: doc.deleted ? 200 : 201,
    headers: { ETag: `"${done.rev}"`, Location: `${request.origin}${urlOf(db, id)}` },
    body: { ok: true, id, rev: done.rev },
  };
}

/** @param {Database} db @param {Request} request @param {string} id @returns {Answer} */
function local(db, request, id) {
  const json = db.get(id);
  const etag = (/** @type {any} */ value) =>
    `"${md5(JSON.stringify(value), 'hex').slice(0, 25).toUpperCase()}"`;
  if (request.method === 'GET') {
    if (!json) throw notFound('missing');
    return { status: 200, headers: { ETag: etag(json) }, body: json };
  }
  if (request.method === 'DELETE') {
    if (!json) throw notFound('missing');
    return { status: 200, headers: { ETag: etag(null) }, body: putLocal(db, documentFromJson({ _deleted: true }, { id })) };
  }
  if (request.method !== 'PUT') throw methodNotAllowed('DELETE,GET,HEAD,POST,PUT,COPY');
  const row = putLocal(db, documentFromJson(request.json(), { id, maxSize: db.limits.maxDocumentSize }));
  const headers = { ETag: etag(db.get(id)), Location: `${request.origin}${urlOf(db, id)}` };
  return { status: 201, headers, body: row };
}
