// Whether a document may be written: `validate_doc_update` of the design documents, and who may
// write design documents. The functions' source comes from the tests themselves, so it is
// evaluated in place; a server for strangers must never do that.

import { documentToJson } from './document.mjs';
import { CouchError, forbidden, unauthorized } from './errors.mjs';

const HELPERS = `const isArray = Array.isArray, toJSON = JSON.stringify, log = () => {},
  sum = (list) => list.reduce((total, n) => total + n, 0);`;

/** Compiled once: a database of thousands of documents is filled one by one. @type {Map<string, Function>} */
const compiled = new Map();

/**
 * @param {string} source of a function in a design document
 * @returns {Function}
 */
export function compileFunction(source) {
  let found = compiled.get(source);
  if (!found) {
    found = /** @type {Function} */ (new Function(`${HELPERS} return (${source.trim().replace(/;$/, '')});`)());
    compiled.set(source, found);
  }
  return found;
}

/**
 * @param {import('./database.mjs').Database} db
 * @returns {Function[]}
 */
export function validators(db) {
  const found = [];
  for (const id of db.designIds) {
    const value = db.docs.get(id)?.tree.winner().value;
    const source = /** @type {any} */ (value?.body)?.validate_doc_update;
    if (!value?.deleted && typeof source === 'string') found.push(compileFunction(source));
  }
  return found;
}

/**
 * @param {import('./database.mjs').Database} db
 * @param {import('./database.mjs').UserContext} user
 */
export function isDatabaseAdmin(db, user) {
  const admins = /** @type {{ names?: string[], roles?: string[] }} */ (db.security.admins ?? {});
  return user.roles.includes('_admin')
    || (user.name !== null && (admins.names ?? []).includes(user.name))
    || user.roles.some((role) => (admins.roles ?? []).includes(role));
}

/**
 * @param {import('./database.mjs').Database} db
 * @param {Function[]} functions
 * @param {import('./database.mjs').UserContext} user
 * @param {import('./document.mjs').Incoming} doc
 * @param {import('./tree.mjs').Node | null} before nearest ancestor with a body
 * @returns {CouchError | null}
 */
export function refusal(db, functions, user, doc, before) {
  if (doc.id.startsWith('_design/')) {
    if (isDatabaseAdmin(db, user)) return null;
    const reason = 'You are not a db or server admin.';
    return user.name === null ? unauthorized(reason) : forbidden(reason);
  }
  if (functions.length === 0) return null;
  const next = {
    _id: doc.id,
    ...(doc.revs.ids.length > 0 ? { _rev: `${doc.revs.start}-${doc.revs.ids[0]}`, _revisions: doc.revs } : {}),
    ...structuredClone(doc.body),
    ...(doc.deleted ? { _deleted: true } : {}),
  };
  const previous = before && documentToJson(doc.id, before, { revs: true });
  const context = { db: db.name, name: user.name, roles: user.roles };
  for (const validate of functions) {
    try {
      validate(next, previous, context, db.security);
    } catch (/** @type {any} */ thrown) {
      if (thrown?.forbidden !== undefined) return forbidden(String(thrown.forbidden));
      if (thrown?.unauthorized !== undefined) return unauthorized(String(thrown.unauthorized));
      return new CouchError(500, String(thrown?.name ?? 'unknown_error'), String(thrown?.message ?? thrown));
    }
  }
  return null;
}
