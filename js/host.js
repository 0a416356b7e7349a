// What the engine calls: databases of this process, the user's handle, and the
// reading of bodies. The names are those of src/wasm/host.rs.

import { complete, fill, nameAncestors } from './attachments.js';
import { Bytes } from './bytes.js';
import { path } from './feed.js';
import { textOf } from './outgoing.js';
import { breathe } from './platform.js';
import { chunks, each, nextChunk, readPage, readText } from './reading.js';
import { whenTrapped } from './trap.js';

/**
 * @param {import('./link.js').Link} link
 * @param {import('./flat.js').Flat} flat what the engine's numbers stand for
 * @param {string} query of `_changes`
 */
export function host(link, flat, query) {
  const { source, target, sourceRemote, targetRemote, stats } = link;
  return {
    /** @param {string} since @param {number} limit */
    feed: (since, limit) => source.changes({
      ...link.feedOptions, since: flat.seqs.peek(Number(since)), limit, batch_size: limit, return_docs: true,
    }),
    /** @param {string} since @param {number} limit @param {number} interval */
    feedPath: (since, limit, interval) => path(query, flat.seqs.peek(Number(since)), limit, interval),
    /** @param {any} page */
    page: (page) => flat.page(page),
    /** @param {Uint32Array} rows */
    revs: (rows) => flat.revs(rows),
    /** @param {any} revs */
    askDiff: (revs) => target.revsDiff(revs),
    /** @param {any} answer @param {Uint32Array} rows */
    diff: (answer, rows) => flat.diff(answer, rows),
    /** @param {Uint32Array} rows @param {string} revs */
    entries: (rows, revs) => flat.entries(rows, revs),
    /** @param {any} answer @param {any[]} entries @param {boolean} latest @param {boolean} revs @param {boolean} stream */
    results: (answer, entries, latest, revs, stream) => flat.results(answer, entries, { latest, revs, stream }),
    /** @param {Uint32Array} rows @param {string} seqs @param {string} last @param {number} pending @param {boolean} end */
    batch: (rows, seqs, last, pending, end) => flat.batch(rows, seqs, last, pending, end),
    /** @param {number} row */
    dropRow: (row) => flat.rows.take(row),
    /** @param {number} doc */
    dropDoc: (doc) => flat.docs.take(doc),
    /** @param {any[]} docs */
    docs: (docs) => local(source, docs),
    /** @param {any[]} docs */
    single: (docs) => single(sourceRemote?.twin ?? source, docs),
    /**
     * What was sent ahead, or nothing.
     * @param {boolean} ofTarget
     * @param {string} path
     */
    early: (ofTarget, path) => (ofTarget ? targetRemote : sourceRemote)?.early(path),
    /**
     * @param {boolean} ofTarget
     * @param {string} path
     * @param {{ method: string, body?: string, signal: AbortSignal }} init
     * @param {string} accept
     */
    through: (ofTarget, path, init, accept) => {
      const raw = { accept, ...(init.body !== undefined && { 'content-type': 'application/json' }) };
      return (ofTarget ? targetRemote : sourceRemote)?.twin.fetch(path, { ...init, raw });
    },
    readText,
    /** @param {any} response @param {(page?: any) => void} tick called as bytes arrive, and with rows as they come */
    readPage: (response, tick) => readPage(response, tick, (rows, length) => {
      tick(flat.page({ results: rows, last_seq: null }));
      stats.bytes += length;
    }),
    chunks,
    nextChunk,
    /** @param {Uint8Array} bytes */
    text: (bytes) => new TextDecoder().decode(bytes),
    /** @param {number} length as announced, or below 0 */
    part: (length) => new Bytes(length),
    /** @param {Bytes} part @param {Uint8Array<ArrayBuffer>} piece */
    piece: (part, piece) => part.push(piece),
    fill,
    /** @param {any} answer @param {any[]} entries @param {AbortSignal} signal @param {() => void} tick */
    complete: (answer, entries, signal, tick) => complete(link, answer, entries, signal, tick),
    breathe,
    /** @param {any[]} entries */
    nameAncestors: (entries) => nameAncestors(link, entries),
    /** @param {import('./outgoing.js').Upload} upload @param {AbortSignal} signal */
    upload: (upload, signal) => upload.send(/** @type {any} */ (targetRemote), signal),
    /** @param {import('./outgoing.js').Upload} upload */
    inline: (upload) => upload.inline(),
    /** @param {() => void} call @param {number} ms */
    later: (call, ms) => {
      const timer = setTimeout(() => {
        forget();
        call();
      }, ms);
      // A trap must not keep the process for what nobody is going to do.
      const forget = whenTrapped(() => clearTimeout(timer));
      return () => {
        forget();
        clearTimeout(timer);
      };
    },
    /** @param {string} what @param {number} bytes */
    count: (what, bytes) => stats.count(what, bytes),
  };
}

/** Most documents of a local source read at once. */
const READS = 40;

/** Most documents asked for by a request each, as stock's own `bulkGet` of such a server. */
const GETS = 6;

/**
 * As `bulkGet` of a local database, which reads six documents at once; with the
 * JSON text of each document, which is needed anyway where it goes to a server.
 * @param {any} db
 * @param {{ id: string, rev: string }[]} docs
 */
async function local(db, docs) {
  let bytes = 0;
  const results = await each(docs, READS, async ({ id, rev }) => {
    const found = await db.get(id, { open_revs: [rev], revs: true, latest: true });
    for (const { ok } of found) if (ok) bytes += textOf(ok).length;
    return { id, docs: found };
  });
  return { results, bytes };
}

/**
 * As stock asks a server without `_bulk_get`, but with a revision each. CouchDB
 * answers a GET in an order of its own, so each entry is asked for alone.
 * @param {any} db
 * @param {{ id: string, rev: string }[]} docs
 */
async function single(db, docs) {
  const results = await each(docs, GETS, async ({ id, rev }) => {
    try {
      return { id, docs: await db.get(id, { open_revs: [rev], revs: true, latest: true }) };
    } catch (/** @type {any} */ error) {
      if (error?.status !== 404 || !/^(missing|deleted)$/.test(error.reason)) throw error;
      return { id, docs: [{ missing: rev }] };
    }
  });
  return { results };
}
