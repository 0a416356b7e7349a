// A document on its way in (JSON to revision path, body, attachments) and out (a revision of
// the tree to JSON, members in CouchDB's order). Decides what a well-formed document is;
// knows nothing of whether it may be written.

import { attachmentFromJson, attachmentsToJson } from './attachments.mjs';
import { badRequest, CouchError } from './errors.mjs';
import { parseRev, parseRevId } from './revs.mjs';
import { pathOf } from './tree.mjs';

/**
 * @typedef {{ id: string, revs: import('./tree.mjs').Path, deleted: boolean, body: object,
 *   atts: (import('./attachments.mjs').Attachment | import('./attachments.mjs').Stub)[] }} Incoming
 */

const IGNORED = new Set(['_revs_info', '_local_seq', '_conflicts', '_deleted_conflicts']);
// For the replicator's own documents; CouchDB keeps them in the body.
const KEPT = new Set(['_access', '_replication_state', '_replication_state_time',
  '_replication_state_reason', '_replication_id', '_replication_stats']);

/** @param {unknown} id */
export function validateDocId(id) {
  const illegal = (/** @type {string} */ reason) => new CouchError(400, 'illegal_docid', reason);
  if (typeof id !== 'string') throw illegal('Document id must be a string');
  if (id === '') throw illegal('Document id must not be empty');
  if (id === '_design/' || id === '_local/') throw illegal(`Illegal document id \`${id}\``);
  if (id.startsWith('_') && !id.startsWith('_design/') && !id.startsWith('_local/')) {
    throw illegal('Only reserved document ids may start with underscore.');
  }
}

/** @param {any} json the value of `_revisions` */
function pathFromRevisions(json) {
  const invalid = (/** @type {string} */ reason) => new CouchError(400, 'doc_validation', reason);
  if (!Number.isInteger(json.start)) throw invalid("_revisions.start isn't an integer.");
  if (!Array.isArray(json.ids)) throw invalid("_revisions.ids isn't a array.");
  return {
    start: json.start,
    ids: json.ids.map((/** @type {unknown} */ id) => {
      if (typeof id !== 'string') throw invalid("RevId isn't a string");
      return parseRevId(id);
    }),
  };
}

/**
 * @param {any} json
 * @param {{ id?: string, maxSize?: number, follow?: (name: string, json: any) => Buffer }} [options]
 * `id` is that of the URL, which wins over the body's
 * @returns {Incoming}
 */
export function documentFromJson(json, { id, maxSize = Infinity, follow = noPart } = {}) {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw badRequest('Document must be a JSON object');
  }
  /** @type {Incoming} */
  const doc = { id: id ?? '', revs: { start: 0, ids: [] }, deleted: false, body: {}, atts: [] };
  const body = [];
  let history = false;
  for (const [key, value] of Object.entries(json)) {
    if (key === '_id') {
      validateDocId(value);
      if (id === undefined) doc.id = value;
    } else if (key === '_rev') {
      // `_local` revisions have no fixed form until they are written.
      const isLocal = (id ?? json._id ?? '').startsWith('_local/');
      const { pos, id: revId } = isLocal && !/-/.test(value) ? { pos: 0, id: value } : parseRev(value);
      if (!history) doc.revs = { start: pos, ids: [revId] };
    } else if (key === '_revisions') {
      doc.revs = pathFromRevisions(value);
      history = true;
    } else if (key === '_deleted' && typeof value === 'boolean') {
      doc.deleted = value;
    } else if (key === '_attachments') {
      doc.atts = Object.entries(value ?? {}).map(([name, att]) => attachmentFromJson(name, att, follow));
    } else if (key.startsWith('_') && !KEPT.has(key)) {
      if (!IGNORED.has(key)) throw new CouchError(400, 'doc_validation', `Bad special document member: ${key}`);
    } else {
      body.push([key, value]);
    }
  }
  doc.body = Object.fromEntries(body);
  if (maxSize < Infinity && Buffer.byteLength(JSON.stringify(doc.body)) > maxSize) {
    throw new CouchError(413, 'document_too_large', doc.id);
  }
  return doc;
}

/** @returns {never} */
function noPart() {
  throw badRequest('an attachment that follows needs a multipart/related body');
}

/**
 * @typedef {{ revs?: boolean, meta?: object, revsLimit?: number }
 *   & import('./attachments.mjs').AttachmentView} DocumentView
 */

/**
 * @param {string} id
 * @param {import('./tree.mjs').Node} node whose body is known
 * @param {DocumentView} view
 */
export function documentToJson(id, node, view = {}) {
  const value = /** @type {import('./tree.mjs').Value} */ (node.value);
  return {
    _id: id,
    _rev: node.rev,
    ...value.body,
    ...(value.deleted ? { _deleted: true } : {}),
    ...(view.revs ? { _revisions: pathOf(node, view.revsLimit) } : {}),
    ...view.meta,
    ...(value.atts.length > 0 ? { _attachments: attachmentsToJson(value.atts, view) } : {}),
  };
}

/**
 * The generation of the newest revision that both a branch and a list of revisions hold, 0 if none.
 * @param {import('./tree.mjs').Node} node
 * @param {import('./revs.mjs').Rev[]} revs
 */
export function commonAncestor(node, revs) {
  const wanted = new Set(revs.map(({ rev }) => rev));
  for (let at = /** @type {import('./tree.mjs').Node | null} */ (node); at; at = at.parent) {
    if (wanted.has(at.rev)) return at.pos;
  }
  return 0;
}
