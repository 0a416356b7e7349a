// From method and path to a handler. Decides which endpoints exist, who may use them, and which
// of them write; knows nothing of the wire.

import { requireMember, requireServerAdmin, requireWritable } from './auth.mjs';
import { attachment } from './atts.mjs';
import { allDocs, bulkDocs, bulkGet, revsDiff } from './bulk.mjs';
import { changes } from './changes.mjs';
import { document } from './docs.mjs';
import { badRequest, CouchError, databaseMissing, methodNotAllowed, notFound } from './errors.mjs';
import { documentFromJson } from './document.mjs';
import { updateInteractively } from './writes.mjs';

/**
 * @typedef {import('./index.mjs').Couch} Couch
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./http.mjs').Request} Request
 * @typedef {import('./http.mjs').Answer} Answer
 */

const FEATURES = ['quickjs', 'access-ready', 'partitioned', 'pluggable-storage-engines', 'reshard', 'scheduler'];
const DATABASE_NAME = /^[a-z][a-z0-9_$()+/-]*$/;

/** @param {object} body @returns {Answer} */
const ok = (body) => ({ status: 200, headers: {}, body });

/** @param {Couch} couch @param {Request} request @returns {Answer} */
export function route(couch, request) {
  const [first, ...rest] = request.segments;
  if (first === '' || first === undefined) return welcome(couch, request);
  if (first === '_session') return couch.auth.session(request);
  if (first === '_up') {
    if (request.method !== 'GET') throw methodNotAllowed('GET,HEAD');
    return ok({ status: 'ok', seeds: {} });
  }
  if (first === '_all_dbs') {
    requireServerAdmin(request.user);
    return ok([...couch.databases.keys()].sort());
  }
  if (first === '_uuids') return ok({ uuids: [couch.uuid] });
  if (rest.length === 0 || (rest.length === 1 && rest[0] === '')) return database(couch, request, first);
  const db = couch.databases.get(first);
  if (!db) throw databaseMissing();
  requireMember(db, request.user);
  return inDatabase(db, request, rest);
}

/** @param {Couch} couch @param {Request} request */
function welcome({ version, uuid }, request) {
  if (request.method !== 'GET') throw methodNotAllowed('GET,HEAD');
  const sha = version.split('-')[1] ?? '';
  return ok({
    couchdb: 'Welcome', version, git_sha: sha, uuid, features: FEATURES,
    vendor: { name: 'The Apache Software Foundation' },
  });
}

/** @param {Couch} couch @param {Request} request @param {string} name @returns {Answer} */
function database(couch, request, name) {
  const db = couch.databases.get(name);
  if (request.method === 'PUT') {
    requireServerAdmin(request.user);
    if (!DATABASE_NAME.test(name) && !['_users', '_replicator', '_global_changes'].includes(name)) {
      throw new CouchError(400, 'illegal_database_name', `Name: '${name}'. Only lowercase characters (a-z), `
        + 'digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter.');
    }
    if (db) throw new CouchError(412, 'file_exists', 'The database could not be created, the file already exists.');
    couch.db(name);
    const headers = { Location: `${request.origin}/${encodeURIComponent(name)}` };
    return { status: 201, headers, body: { ok: true } };
  }
  if (request.method === 'DELETE') {
    requireServerAdmin(request.user);
    if ('rev' in request.query) {
      throw badRequest('You tried to DELETE a database with a ?=rev parameter. '
        + 'Did you mean to DELETE a document instead?');
    }
    if (!db) throw databaseMissing();
    couch.databases.delete(name);
    db.destroy();
    return ok({ ok: true });
  }
  if (!db) throw databaseMissing();
  requireMember(db, request.user);
  if (request.method === 'GET') return ok(db.info());
  if (request.method !== 'POST') throw methodNotAllowed('DELETE,GET,HEAD,POST');
  requireWritable(db);
  const doc = documentFromJson(request.jsonObject(), { maxSize: db.limits.maxDocumentSize });
  const [row] = /** @type {any[]} */ (updateInteractively(db, [doc], request.user));
  if (row.error) throw new CouchError(row.error === 'conflict' ? 409 : 403, row.error, row.reason);
  return { status: 201, headers: { Location: `${request.origin}/${name}/${encodeURIComponent(row.id)}` }, body: row };
}

/**
 * @typedef {(db: Database, request: Request) => Answer} Handler
 * @type {Record<string, Partial<Record<'GET' | 'POST' | 'PUT', Handler>>>}
 */
const ENDPOINTS = {
  _changes: { GET: changes, POST: changes },
  _bulk_get: { POST: bulkGet },
  _bulk_docs: { POST: writing(bulkDocs) },
  _revs_diff: { POST: revsDiff },
  _all_docs: { GET: allDocs, POST: allDocs },
  _ensure_full_commit: { POST: (db) => ({ status: 201, headers: {}, body: { ok: true, instance_start_time: String(db.created) } }) },
  _compact: { POST: (db) => { db.compact(); return { status: 202, headers: {}, body: { ok: true } }; } },
  _security: {
    GET: (db) => ok(db.security),
    PUT: (db, request) => {
      requireServerAdmin(request.user);
      db.setSecurity(request.json());
      return ok({ ok: true });
    },
  },
  _revs_limit: {
    GET: (db) => ({ status: 200, headers: {}, body: `${db.revsLimit}\n` }),
    PUT: (db, request) => {
      db.setRevsLimit(request.json());
      return ok({ ok: true });
    },
  },
};

/** @param {Handler} handler @returns {Handler} */
function writing(handler) {
  return (db, request) => {
    requireWritable(db);
    return handler(db, request);
  };
}

/** @param {Database} db @param {Request} request @param {string[]} path below the database @returns {Answer} */
function inDatabase(db, request, path) {
  const [first, ...rest] = path;
  const endpoint = Object.hasOwn(ENDPOINTS, first) ? ENDPOINTS[first] : null;
  if (endpoint) {
    const handler = endpoint[/** @type {'GET'} */ (request.method)];
    if (handler) return handler(db, request);
    const allowed = Object.keys(endpoint);
    throw methodNotAllowed((first === '_changes' ? [...allowed, 'HEAD'] : allowed).join(','));
  }
  if (request.method === 'GET' && first.startsWith('_design/')) {
    const [, before, after] = /^(.*?)_design%2F(.*)$/i.exec(request.url) ?? [];
    return { status: 301, headers: { Location: `${request.origin}${before}_design/${after}` }, body: '' };
  }
  if (request.method !== 'GET') requireWritable(db);
  // Design and local documents may be written with a bare slash.
  const isPrefixed = (first === '_design' || first === '_local') && rest.length > 0;
  const id = isPrefixed ? `${first}/${rest[0]}` : first;
  const name = (isPrefixed ? rest.slice(1) : rest).join('/');
  if (first === '_local' && rest.length === 0) throw badRequest('Invalid _local document id.');
  if (name === '') return document(db, request, id);
  if (id.startsWith('_local/')) throw badRequest('_local documents do not accept attachments.');
  if (first.startsWith('_') && !isPrefixed && !first.startsWith('_design/')) throw notFound('missing');
  return attachment(db, request, id, name);
}
