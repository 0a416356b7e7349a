// Which revisions of a document a filtered feed shows: `_doc_ids`, `_selector` (the operators
// that tests need), `_design`, `_view` and the filter functions of design documents.

import { documentToJson } from './document.mjs';
import { badRequest, notFound } from './errors.mjs';
import { compileFunction } from './validate.mjs';

/**
 * @typedef {import('./tree.mjs').Node} Node
 * @typedef {(doc: import('./database.mjs').StoredDoc, revs: Node[]) => Node[]} Filter
 *   of the given revisions those that pass
 */

/** @param {any} a @param {any} b CouchDB's order of types: null, booleans, numbers, strings, arrays, objects */
function collate(a, b) {
  const rank = (/** @type {any} */ value) => {
    if (value === null) return 0;
    const order = ['boolean', 'number', 'string'].indexOf(typeof value);
    return order >= 0 ? order + 1 : Array.isArray(value) ? 4 : 5;
  };
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

/** @param {any} a @param {any} b */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** @type {Record<string, (value: any, argument: any) => boolean>} */
const OPERATORS = {
  $eq: same,
  $ne: (value, argument) => !same(value, argument),
  $gt: (value, argument) => collate(value, argument) > 0,
  $gte: (value, argument) => collate(value, argument) >= 0,
  $lt: (value, argument) => collate(value, argument) < 0,
  $lte: (value, argument) => collate(value, argument) <= 0,
  $in: (value, argument) => argument.some((/** @type {any} */ item) => same(item, value)),
  $nin: (value, argument) => !argument.some((/** @type {any} */ item) => same(item, value)),
  $type: (value, argument) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value) === argument,
  $regex: (value, argument) => typeof value === 'string' && new RegExp(argument).test(value),
};

/**
 * @param {any} selector
 * @param {any} value
 * @returns {boolean}
 */
export function matchesSelector(selector, value) {
  return Object.entries(selector).every(([key, argument]) => {
    if (key === '$and') return argument.every((/** @type {any} */ part) => matchesSelector(part, value));
    if (key === '$or') return argument.some((/** @type {any} */ part) => matchesSelector(part, value));
    if (key === '$nor') return !argument.some((/** @type {any} */ part) => matchesSelector(part, value));
    if (key === '$not') return !matchesSelector(argument, value);
    const found = key.split('.').reduce((at, name) => at?.[name], value);
    return matchesCondition(argument, found);
  });
}

/** @param {any} condition @param {any} value undefined where the field is absent */
function matchesCondition(condition, value) {
  const isPlain = condition === null || typeof condition !== 'object' || Array.isArray(condition);
  if (isPlain) return value !== undefined && same(condition, value);
  return Object.entries(condition).every(([operator, argument]) => {
    if (operator === '$exists') return (value !== undefined) === argument;
    if (operator === '$not') return !matchesCondition(argument, value);
    if (!operator.startsWith('$')) return value != null && matchesSelector({ [operator]: argument }, value);
    if (!OPERATORS[operator]) throw badRequest(`Invalid operator: ${operator}`);
    return value !== undefined && OPERATORS[operator](value, argument);
  });
}

/**
 * @param {import('./database.mjs').Database} db
 * @param {string} name of a design document
 * @param {string[]} path to a member of it
 * @returns {any}
 */
function designMember(db, name, path) {
  /** @type {any} */
  let member = db.get(`_design/${name}`);
  if (!member || member._deleted) throw notFound('missing');
  for (const key of path) {
    member = member?.[key];
    if (member === undefined) throw notFound(`missing json key: ${key}`);
  }
  return member;
}

/** @param {(json: any) => boolean} passes @returns {Filter} */
const byDocument = (passes) => ({ id }, revs) =>
  revs.filter((node) => passes(documentToJson(id, node, { revs: true })));

/**
 * @param {import('./database.mjs').Database} db
 * @param {string} name
 * @param {import('./http.mjs').Request} request
 * @param {any} body of a POST
 * @returns {Filter}
 */
export function configureFilter(db, name, request, body) {
  if (name === '') return (_doc, revs) => revs;
  if (name === '_doc_ids') {
    const ids = body?.doc_ids ?? JSON.parse(request.query.doc_ids ?? 'null');
    if (!Array.isArray(ids)) throw badRequest('`doc_ids` filter parameter is not a list of doc ids.');
    const wanted = new Set(ids);
    return ({ id }, revs) => (wanted.has(id) ? revs : []);
  }
  if (name === '_selector') {
    if (!body) throw badRequest('Selector must be specified in POST payload');
    if (typeof body.selector !== 'object' || body.selector === null) {
      throw badRequest('Selector error: expected a JSON object');
    }
    return byDocument((json) => matchesSelector(body.selector, json));
  }
  if (name === '_design') return ({ id }, revs) => (id.startsWith('_design') ? revs : []);
  if (name === '_view') {
    const [design, view, ...more] = (request.query.view ?? '').split('/').filter(Boolean);
    if (!design) throw badRequest('`view` filter parameter is not provided.');
    if (!view || more.length > 0) throw badRequest('`view` must be of the form `designname/viewname`');
    return byView(designMember(db, design, ['views', view, 'map']));
  }
  if (name.startsWith('_')) throw badRequest('unknown builtin filter name');
  const [design, filter, ...more] = name.split('/').filter(Boolean);
  if (!filter || more.length > 0) throw badRequest('`filter` must be of the form `designname/filtername`');
  const test = compileFunction(designMember(db, design, ['filters', filter]));
  const req = { method: request.method, query: request.query, headers: request.headers, userCtx: request.user };
  return byDocument((json) => Boolean(test(json, req)));
}

/** @param {string} source of a map function: what it emits for passes @returns {Filter} */
function byView(source) {
  let emitted = false;
  const map = new Function('emit', `return (${source.trim().replace(/;$/, '')});`)(() => { emitted = true; });
  return byDocument((json) => {
    emitted = false;
    map(json);
    return emitted;
  });
}
