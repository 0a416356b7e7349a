// The endpoints over many documents: `_bulk_get`, `_bulk_docs`, `_revs_diff`, `_all_docs`.
// Errors of single entries are rows of a good answer, with status 200 or 201.

import { badRequest } from './errors.mjs';
import { commonAncestor, documentFromJson, documentToJson, validateDocId } from './document.mjs';
import { metaFor } from './docs.mjs';
import { bulkGetMultipart } from './multipart.mjs';
import { compareRevs, parseRev, parseRevs } from './revs.mjs';
import { updateInteractively, updateReplicated } from './writes.mjs';

/**
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./http.mjs').Request} Request
 * @typedef {import('./http.mjs').Answer} Answer
 * @typedef {{ id: string | null, rev: string | null, error: string, reason: string }} EntryError
 * @typedef {{ id: string | null, docs: ({ node: import('./tree.mjs').Node,
 *   view: import('./document.mjs').DocumentView } | EntryError)[] }} Entry
 */

const REFUSED_PARAMETERS = ['open_revs', 'new_edits', 'w', 'rev', 'atts_since'];

/** @param {Database} db @param {Request} request @returns {Answer} */
export function bulkGet(db, request) {
  const { docs } = request.jsonObject();
  if (!Array.isArray(docs)) throw badRequest("Missing JSON list of 'docs'.");
  const { query } = request;
  for (const name of REFUSED_PARAMETERS) {
    if (name in query) throw badRequest(`"${name}" query parameter is not acceptable`);
  }
  const entries = docs.map((/** @type {any} */ wanted) => openEntry(db, query, wanted));
  const multipart = ['multipart/mixed', 'multipart/related'].find((type) => request.accepts(type));
  if (multipart && !request.accepts('application/json')) return bulkGetMultipart(entries, multipart);
  const results = entries.map((/** @type {Entry} */ { id, docs: found }) => ({
    id,
    docs: found.map((item) => {
      if ('error' in item) return { error: { rev: item.rev, reason: item.reason, id: item.id, error: item.error } };
      return { ok: documentToJson(/** @type {string} */ (id), item.node, item.view) };
    }),
  }));
  return { status: 200, headers: {}, body: { results } };
}

/**
 * @param {Database} db
 * @param {Record<string, string>} query
 * @param {any} wanted
 * @returns {Entry}
 */
function openEntry(db, query, wanted) {
  /** @param {string | null} id @param {string | null} rev @param {import('./errors.mjs').CouchError} error @returns {Entry} */
  const failed = (id, rev, { error, reason }) => ({ id, docs: [{ id, rev, error, reason }] });
  if (wanted === null || typeof wanted !== 'object' || Array.isArray(wanted) || Object.keys(wanted).length === 0) {
    return failed(null, null, badRequest('document must be a JSON object'));
  }
  const { id, rev, atts_since: since = [] } = wanted;
  if (!Array.isArray(since)) return failed(id, since, badRequest('att_since value must be array of revs.'));
  if (id === undefined) return failed(null, null, badRequest('document id missed'));
  let ancestors;
  try {
    validateDocId(id);
  } catch (/** @type {any} */ error) {
    return failed(id, null, error);
  }
  try {
    if (rev !== undefined) parseRev(rev);
    ancestors = parseRevs(since);
  } catch (/** @type {any} */ error) {
    return failed(id, rev ?? null, error);
  }
  const options = { latest: query.latest === 'true', r: query.r === undefined ? undefined : Number(query.r) };
  const found = db.openRevs(id, rev === undefined ? 'all' : [parseRev(rev)], options);
  const missing = (/** @type {string} */ name) => ({ id, rev: name, error: 'not_found', reason: 'missing' });
  if (found.length === 0) return { id, docs: [missing('undefined')] };
  return {
    id,
    docs: found.map((node) => {
      if (typeof node === 'string') return missing(node);
      return { node, view: viewFor(db, query, node, ancestors) };
    }),
  };
}

/**
 * @param {Database} db
 * @param {Record<string, string>} query
 * @param {import('./tree.mjs').Node} node
 * @param {import('./revs.mjs').Rev[]} ancestors from `atts_since`, which asks for attachments
 * @returns {import('./document.mjs').DocumentView}
 */
export function viewFor(db, query, node, ancestors) {
  return {
    revs: query.revs === 'true',
    revsLimit: db.revsLimit,
    data: query.attachments === 'true' || ancestors.length > 0,
    encodingInfo: query.att_encoding_info === 'true',
    unchangedSince: ancestors.length > 0 ? commonAncestor(node, ancestors) : null,
  };
}

/** @param {Database} db @param {Request} request @returns {Answer} */
export function bulkDocs(db, request) {
  const { docs, new_edits: newEdits = true } = request.jsonObject();
  if (docs === undefined) throw badRequest('POST body must include `docs` parameter.');
  if (!Array.isArray(docs)) throw badRequest('`docs` parameter must be an array.');
  if (typeof newEdits !== 'boolean') throw badRequest('`new_edits` parameter must be a boolean.');
  const incoming = docs.map((doc) => documentFromJson(doc, { maxSize: db.limits.maxDocumentSize }));
  const rows = newEdits
    ? updateInteractively(db, incoming, request.user)
    : updateReplicated(db, incoming, request.user);
  return { status: 201, headers: {}, body: rows };
}

/** @param {Database} db @param {Request} request @returns {Answer} */
export function revsDiff(db, request) {
  const answer = [];
  for (const [id, list] of Object.entries(request.jsonObject())) {
    const revs = parseRevs(list);
    const tree = db.docs.get(id)?.tree;
    // A revision asked for twice is found once: the second time it counts as missing.
    const found = new Set();
    const missing = revs.filter(({ rev }) => !tree?.get(rev) || found.has(rev) || !found.add(rev));
    // Looked up in a tree they come back sorted, otherwise as they were asked.
    if (tree) missing.sort(compareRevs);
    if (missing.length === 0) continue;
    const newest = Math.max(...missing.map(({ pos }) => pos));
    const ancestors = (tree?.ranked() ?? []).filter(({ pos }) => pos < newest).map(({ rev }) => rev);
    answer.push([id, {
      missing: missing.map(({ rev }) => rev),
      ...(ancestors.length > 0 ? { possible_ancestors: ancestors } : {}),
    }]);
  }
  return { status: 200, headers: {}, body: Object.fromEntries(answer) };
}

/** @param {Database} db @param {Request} request @returns {Answer} */
export function allDocs(db, request) {
  const { query } = request;
  const body = request.method === 'POST' ? request.jsonObject() : {};
  const parameter = (/** @type {string} */ name) => (query[name] === undefined ? undefined : JSON.parse(query[name]));
  const keys = body.keys ?? parameter('keys') ?? (query.key === undefined ? undefined : [parameter('key')]);
  const descending = query.descending === 'true' || body.descending === true;
  const living = [...db.docs.values()].filter(({ tree }) => !tree.winner().value?.deleted).map(({ id }) => id).sort();
  if (descending) living.reverse();
  let ids = keys ?? living;
  const start = parameter('startkey') ?? parameter('start_key');
  const end = parameter('endkey') ?? parameter('end_key');
  if (!keys) {
    const [low, high] = descending ? [end, start] : [start, end];
    ids = ids.filter((/** @type {string} */ id) => (low === undefined || id >= low) && (high === undefined || id <= high));
  }
  const skip = Number(query.skip ?? body.skip ?? 0);
  const limit = Number(query.limit ?? body.limit ?? Infinity);
  const view = { data: query.attachments === 'true' };
  const offset = keys ? null : living.indexOf(ids[skip]);
  const rows = ids.slice(skip, skip + limit).map((/** @type {string} */ id) => {
    const winner = db.docs.get(id)?.tree.winner();
    if (!winner) return { key: id, error: 'not_found' };
    const deleted = winner.value?.deleted;
    const json = { id, key: id, value: { rev: winner.rev, ...(deleted ? { deleted } : {}) } };
    if (query.include_docs !== 'true' && body.include_docs !== true) return json;
    const meta = metaFor(/** @type {any} */ (db.docs.get(id)).tree, query);
    return { ...json, doc: deleted ? null : documentToJson(id, winner, { ...view, meta }) };
  });
  const head = JSON.stringify({ total_rows: living.length, offset: offset === -1 ? living.length : offset }).slice(0, -1);
  const lines = rows.map((/** @type {object} */ json) => JSON.stringify(json)).join(',\r\n');
  return { status: 200, headers: {}, chunked: true, body: `${head},"rows":[\r\n${lines}\r\n]}\n` };
}
