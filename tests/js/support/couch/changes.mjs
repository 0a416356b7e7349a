// The changes feed: rows in the order of the shards' counters, opaque seqs, paging, filters,
// `seq_interval`, and the feeds that wait. One row per document, at its newest place.

import { md5 } from './bytes.mjs';
import { badRequest, CouchError } from './errors.mjs';
import { documentToJson } from './document.mjs';
import { configureFilter } from './filters.mjs';
import { decodeSeq, encodeSeq } from './seq.mjs';

/**
 * @typedef {import('./database.mjs').Database} Database
 * @typedef {import('./seq.mjs').Vector} Vector
 * @typedef {{ feed: string, descending: boolean, since: Vector, limit: number, style: string,
 *   interval: number, includeDocs: boolean, conflicts: boolean, attachments: boolean,
 *   encodingInfo: boolean, heartbeat: number | null, timeout: number,
 *   filter: import('./filters.mjs').Filter, isLookup: boolean }} Args
 */

const NO_LIMIT = 1e15; // #changes_args.limit: it decides which rows have a seq under seq_interval
const MAX_TIMEOUT = 60_000; // ms, [chttpd] changes_timeout
const FEEDS = ['normal', 'longpoll', 'continuous'];

const badArgument = () => new CouchError(500, 'unknown_error', 'badarg', { ref: 688277923 });

/** @param {string} text */
function integer(text) {
  if (!/^[+-]?\d+$/.test(text)) throw badArgument();
  return Number(text);
}

/**
 * @param {Database} db
 * @param {import('./http.mjs').Request} request
 * @returns {Args}
 */
function parse(db, request) {
  const { query } = request;
  if (!['main_only', 'all_docs', undefined].includes(query.style)) throw badArgument();
  const body = request.method === 'POST' && request.rawBody.length > 0 ? request.jsonObject() : null;
  const feed = query.feed === 'live' ? 'continuous' : query.feed ?? 'normal';
  if (!FEEDS.includes(feed)) {
    throw badRequest('Supported `feed` types: normal, continuous, live, longpoll, eventsource');
  }
  const limit = query.limit === undefined ? NO_LIMIT : integer(query.limit);
  const interval = query.seq_interval === undefined ? 1 : Number(query.seq_interval);
  if (!Number.isInteger(interval) || interval < 1) throw badRequest('invalid_seq_interval');
  const descending = query.descending === 'true';
  const fromEnd = descending || query.since === 'now';
  return {
    feed, limit, interval, descending,
    since: fromEnd ? [...db.seqs] : decodeSeq(query.since ?? '0', db.uuid, db.seqs.length),
    style: query.style ?? 'main_only',
    includeDocs: query.include_docs === 'true',
    conflicts: query.conflicts === 'true',
    attachments: query.attachments === 'true',
    encodingInfo: query.att_encoding_info === 'true',
    heartbeat: parseHeartbeat(query.heartbeat),
    timeout: query.timeout === undefined ? MAX_TIMEOUT : Math.min(MAX_TIMEOUT, integer(query.timeout)),
    filter: configureFilter(db, query.filter ?? '', request, body),
    // Looked up by id, not by walking the feed: the rest of the feed stays pending.
    isLookup: query.filter === '_doc_ids' || query.filter === '_design',
  };
}

/** @param {string | undefined} text */
function parseHeartbeat(text) {
  if (text === undefined) return null;
  if (text === 'true') return MAX_TIMEOUT;
  if (!/^-?\d+$/.test(text)) {
    throw badRequest('Invalid heartbeat value. Expecting a positive integer value (in milliseconds).');
  }
  if (Number(text) <= 0) throw badRequest('The heartbeat value should be a positive integer (in milliseconds).');
  return Math.min(MAX_TIMEOUT, Number(text));
}

/**
 * @param {Database} db
 * @param {Args} args
 */
function documents(db, { since, descending }) {
  const docs = [...db.docs.values()].filter((doc) => descending || doc.seq > since[doc.shard]);
  if (descending) docs.reverse();
  if (db.feedOrder === 'update') return docs;
  const shards = db.seqs.map((_seq, shard) => docs.filter((doc) => doc.shard === shard));
  const drawn = db.feedOrder.flatMap((shard) => shards[shard].splice(0, 1));
  return [...drawn, ...shards.flat()];
}

/**
 * @param {Database} db
 * @param {Args} args
 * @returns {{ rows: any[], since: Vector, pending: number }} `since`: where the next look goes on
 */
function collect(db, args) {
  const rows = [];
  let since = [...args.since];
  const shown = [...args.since];
  const docs = documents(db, args);
  const left = db.seqs.map(() => 0);
  for (const { shard } of docs) left[shard] += 1;
  const pending = [...left];
  for (const doc of docs) {
    if (rows.length >= args.limit) break;
    since[doc.shard] = doc.seq;
    left[doc.shard] -= 1;
    const revs = args.style === 'all_docs' ? doc.tree.ranked() : [doc.tree.winner()];
    const passed = args.filter(doc, revs);
    if (passed.length === 0) continue;
    const hasSeq = (args.limit - rows.length) % args.interval === 0;
    rows.push(row(db, args, doc, passed, hasSeq ? encodeSeq(db.uuid, since) : null));
    pending[doc.shard] = left[doc.shard];
    shown.splice(0, shown.length, ...since);
  }
  const isFull = rows.length >= args.limit;
  if (isFull) since = shown;
  const rest = (/** @type {number[]} */ counts) => counts.reduce((sum, count) => sum + count, 0);
  if (args.isLookup) return { rows, since, pending: docs.length - rows.length };
  return { rows, since, pending: isFull ? rest(pending) : rest(left) };
}

/**
 * @param {Database} db
 * @param {Args} args
 * @param {import('./database.mjs').StoredDoc} doc
 * @param {import('./tree.mjs').Node[]} revs
 * @param {string | null} seq
 */
function row(db, args, doc, revs, seq) {
  const winner = doc.tree.winner();
  const json = { seq, id: doc.id, changes: revs.map(({ rev }) => ({ rev })) };
  if (winner.value?.deleted) Object.assign(json, { deleted: true });
  if (!args.includeDocs) return json;
  const losers = doc.tree.ranked().slice(1).filter((node) => !node.value?.deleted);
  const meta = args.conflicts && losers.length > 0 ? { _conflicts: losers.map(({ rev }) => rev) } : {};
  const view = { meta, data: args.attachments, encodingInfo: args.encodingInfo };
  return { ...json, doc: documentToJson(doc.id, winner, view) };
}

/** @param {any[]} rows */
const joined = (rows) => rows.map((json) => JSON.stringify(json)).join(',\r\n');

/**
 * @param {Database} db
 * @param {Vector} since
 * @param {number} pending
 */
const ending = (db, since, pending) =>
  `\n],\n"last_seq":${JSON.stringify(encodeSeq(db.uuid, since))},"pending":${pending}}\n\n`;

/**
 * @param {Database} db
 * @param {import('./http.mjs').Request} request
 * @returns {import('./http.mjs').Answer}
 */
export function changes(db, request) {
  const args = parse(db, request);
  if (args.feed === 'continuous') return { status: 200, headers: {}, stream: continuous(db, args) };
  const { rows, since, pending } = collect(db, args);
  if (args.feed === 'longpoll' && rows.length === 0) {
    return { status: 200, headers: {}, stream: longpoll(db, { ...args, since }) };
  }
  const etag = `"${md5(db.updateSeq, 'hex').slice(0, 25).toUpperCase()}"`;
  return {
    status: 200,
    headers: args.feed === 'normal' ? { ETag: etag } : {},
    chunked: true,
    body: `{"results":[\n${joined(rows)}${ending(db, since, pending)}`,
  };
}

/** @param {Database} db @param {Args} args @returns {import('./http.mjs').Stream} */
const longpoll = (db, args) => async (write, signal) => {
  write('{"results":[\n\n');
  let { since } = args;
  while (await nextUpdate(db, args, write, signal)) {
    const found = collect(db, { ...args, since });
    since = found.since;
    if (found.rows.length === 0) continue;
    write(joined(found.rows) + ending(db, since, found.pending));
    return;
  }
  write(ending(db, since, 0));
};

/** @param {Database} db @param {Args} args @returns {import('./http.mjs').Stream} */
const continuous = (db, args) => async (write, signal) => {
  let { since, limit } = args;
  let pending;
  do {
    const found = collect(db, { ...args, since, limit });
    since = found.since;
    limit -= found.rows.length;
    pending = found.pending;
    write(found.rows.map((json) => `${JSON.stringify(json)}\n`).join('') || '\n');
  } while (limit > 0 && await nextUpdate(db, args, write, signal));
  write(`${JSON.stringify({ last_seq: encodeSeq(db.uuid, since), pending })}\n\n`);
};

/**
 * Waits for a write; a heartbeat keeps the connection busy meanwhile, a timeout ends the wait.
 * @param {Database} db
 * @param {Args} args
 * @param {(text: string) => void} write
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether something was written
 */
function nextUpdate(db, { heartbeat, timeout }, write, signal) {
  return new Promise((resolve) => {
    const timer = heartbeat !== null ? setInterval(() => write('\n'), heartbeat) : setTimeout(() => done(false), timeout);
    const onUpdate = () => done(!db.deleted);
    const onAbort = () => done(false);
    /** @param {boolean} updated */
    function done(updated) {
      clearTimeout(timer);
      db.events.off('update', onUpdate);
      signal.removeEventListener('abort', onAbort);
      resolve(updated);
    }
    if (signal.aborted || db.deleted) return done(false);
    db.events.on('update', onUpdate);
    signal.addEventListener('abort', onAbort);
  });
}
