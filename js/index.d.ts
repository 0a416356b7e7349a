/// <reference types="pouchdb-core" />
/// <reference types="pouchdb-replication" />

/**
 * Makes PouchDB's replication with a remote CouchDB faster, and leaves the
 * database that stock PouchDB would have left. Install it once, before the first
 * replication starts; every constructor made by `PouchDB.defaults()` has it too.
 *
 * @throws {TypeError} by `PouchDB.plugin(fastSync)`, where this PouchDB has no replication: install
 *   `pouchdb-replication` before it
 * @example
 * import PouchDB from 'pouchdb';
 * import fastSync from 'pouchdb-fast-sync';
 *
 * PouchDB.plugin(fastSync);
 * const db = new PouchDB('notes');
 * await db.replicate.from('https://couch.example.com/notes');
 */
declare const fastSync: FastSync;
export default fastSync;

/** What `PouchDB.plugin()` takes. */
export interface FastSync {
  /** Installs the plugin with its defaults. Called by `PouchDB.plugin(fastSync)`. */
  (PouchDB: any): void;
  /**
   * The plugin with options for every replication: `PouchDB.plugin(fastSync.with({ concurrency: 2 }))`.
   * Those of a single replication are laid over them.
   *
   * @param options see {@link Options}
   * @returns a plugin for `PouchDB.plugin()`
   * @throws {TypeError} an option is unknown or not of its type; the message names it and what is allowed
   */
  with(options: Options): (PouchDB: any) => void;
}

/**
 * Settings. An option that is unknown or not of its type is refused with a
 * `TypeError`, by `fastSync.with()` or by the call that starts the replication.
 */
export interface Options {
  /**
   * Most requests for documents (or writes of documents to a server) at once, a
   * whole number from 1 to 6. Fewer are used while the server asks for fewer.
   * @default 6 in Node, 4 elsewhere
   */
  concurrency?: number | undefined;
  /**
   * Most bytes of documents and attachments that are read ahead and that PouchDB's
   * replicator did not take yet, requests on their way included, from 65536 on. A
   * batch has at most half of it. One document that is larger is fetched all the
   * same, alone.
   * @default 33554432 (32 MiB)
   */
  maxBufferBytes?: number | undefined;
  /**
   * Milliseconds without a byte, after which a request is given up and repeated,
   * from 1000 on. A feed with a filter is not given up: it may rightly be silent
   * for minutes.
   * @default 60000
   */
  stallTimeout?: number | undefined;
  /**
   * The engine itself (`pouchdb-fast-sync/engine.wasm`): its bytes, its URL, or a
   * compiled module. Needed with `pouchdb-fast-sync/slim`, and allowed in
   * `fastSync.with()` only.
   * @default the bytes that the package carries
   */
  wasm?: BufferSource | string | URL | WebAssembly.Module | undefined;
}

/** The options of one replication: all but `wasm`. */
export type ReplicationOptions = Omit<Options, 'wasm'>;

/** What the `progress` event carries: the state of one direction. */
export interface Progress {
  /**
   * `reading`: a batch of rows and its documents are there. `writing`: something was written to the
   * target. `complete`: the end, unless it is an error.
   */
  phase: 'reading' | 'writing' | 'complete';
  /** Documents (leaves) written so far. */
  docs_written: number;
  /** Bytes of the answers read so far. JSON is counted as the length of its text in UTF-16 units. */
  bytes: number;
  /**
   * Rows of the feed, those handed over and those that wait behind them. `null` where the source
   * does not tell (CouchDB does). A row may bring no document or several.
   */
  total: number | null;
  /** Rows of the feed that were not handed over yet; `null` where the source does not tell. */
  pending: number | null;
  /** Documents written per second, since the replication began. */
  rate: number;
  /** Seconds until the end at that rate; `null` where `total` is, and before anything was written. */
  remaining: number | null;
}

/** The same from `db.sync()`, which runs both directions. */
export interface SyncProgress extends Progress {
  /** `push` from the first database to the second, `pull` the other way. */
  direction: 'push' | 'pull';
}

/**
 * Figures of one direction, so far. Until the engine is loaded, and where it
 * could not be, only `stock` is there. They hold no password.
 */
export interface Stats {
  /** Why stock did the work, in words; `null` where it did not. */
  stock: string | null;
  /** Requests by what they were for. With `db.sync()`, `other` of both directions is counted under `push`. */
  requests: Requests;
  /** Sum of `requests`. Redirects and the preflights of a browser are not seen. */
  requestsTotal: number;
  /** Bytes of the answers. JSON is counted as the length of its text in UTF-16 units. */
  bytes: number;
  /** Documents (leaves) written to the target. */
  docsWritten: number;
  /** Requests for documents that were repeated. */
  retries: number;
  /** Requests of the engine that failed, of any kind. Those that were repeated with success are among them. */
  failures: number;
  /** Most bytes of documents that were held at once, read and expected ones. */
  peakBufferBytes: number;
  /** Revisions that the feed named and the source did not have any more. They were passed over. */
  gone: number;
  /** The first hundred of them, as `id@rev`. */
  goneRevisions: string[];
  /** The server has no `_bulk_get`, or refused it: documents came by one GET each, for some time at least. */
  singleGets: boolean;
  /** The server does not stream attachments, or refused to: they came by one GET each, for some time at least. */
  attachmentsOneByOne: boolean;
  /** Where the time went. */
  ms: Times;
}

/** Requests by what they were for. What was never asked is not there. */
export interface Requests {
  /** Pages of `_changes`. */
  feed?: number;
  /** `_revs_diff`. */
  diff?: number;
  /** `_bulk_get`. */
  docs?: number;
  /** `_bulk_get` with attachments. */
  attachments?: number;
  /** `_bulk_docs`, and `PUT` of single documents with large attachments. */
  write?: number;
  /** What PouchDB's own adapter asks for: the server, the database, checkpoints, single documents and attachments. */
  other?: number;
}

/**
 * Milliseconds. `feed`, `documents` and `diff` are sums over requests that
 * overlap: they tell where the waiting was, and may exceed `total`.
 */
export interface Times {
  /** Since the replication began. It goes on counting after its end. */
  total: number;
  /** Waiting for pages of the feed. */
  feed: number;
  /** Waiting for documents and their attachments. */
  documents: number;
  /** Waiting for diffs, over the network or from the target of this process. */
  diff: number;
  /** Writing to the target. */
  write: number;
}

/** The statistics of `db.sync()`. */
export interface SyncStats {
  /** From the first database to the second. */
  push: Stats;
  /** From the second to the first. */
  pull: Stats;
}

/**
 * An error of the plugin's own, as a replication rejects with it or emits it.
 * Everything else comes from PouchDB as ever.
 */
export interface FastSyncError extends Error {
  /** `unauthorized` (401), `forbidden` (403) or `fast_sync_error`. */
  name: string;
  /** Stable. The README tells what each means. */
  code: ErrorCode;
  /** The HTTP status, 500 where there was none. */
  status: number;
  /** The same text as `message`: what was done, where, with which status, and what came. */
  reason: string;
  /** The database's URL, without a password; a local database's name. */
  url: string;
  /** Always true, as in PouchDB's own errors. */
  error: true;
}

/** The stable codes of {@link FastSyncError}. */
export type ErrorCode =
  | 'fast_sync_network'
  | 'fast_sync_stalled'
  | 'fast_sync_status'
  | 'fast_sync_bad_json'
  | 'fast_sync_bad_shape'
  | 'fast_sync_absent'
  | 'fast_sync_row'
  | 'fast_sync_attachment'
  | 'fast_sync_recreated';

/**
 * The documents that `diffs` names, each with its history and its attachments,
 * with the contract of PouchDB's internal function of that name. Works without
 * the plugin being installed.
 *
 * @param src a remote database; a local one is asked as PouchDB would
 * @param target the database that they are for: attachments that it holds are not fetched again
 * @param diffs what `target.revsDiff()` answered
 * @param state `cancelled` is looked at when the documents are there
 * @returns the documents, ready for `bulkDocs({ docs, new_edits: false })`; `ok` is false where a
 *   revision was not to be had
 * @throws the `Error` "cancelled", or a {@link FastSyncError}
 */
export function getDocs<Content extends {} = {}>(
  src: PouchDB.Database<Content>,
  target: PouchDB.Database<any>,
  diffs: Record<string, { missing?: string[] }>,
  state: { cancelled?: boolean },
): Promise<{ ok: boolean; docs: Array<PouchDB.Core.Document<Content> & PouchDB.Core.GetMeta> }>;

/**
 * `db.bulkGet()`, divided into several requests at once where `db` is remote and
 * every entry names its revision; otherwise it is `db.bulkGet()`. Works without
 * the plugin being installed.
 *
 * @param db any database
 * @param options as those of `db.bulkGet()`
 * @returns a result for each entry, in the order of `options.docs`
 * @throws PouchDB's own errors, or a {@link FastSyncError}
 */
export function bulkGet<Content extends {} = {}>(
  db: PouchDB.Database<Content>,
  options: BulkGetOptions,
): Promise<PouchDB.Core.BulkGetResponse<Content>>;

/** The options of {@link bulkGet}. */
export interface BulkGetOptions {
  /** The documents, each with the revision that is wanted. Without `rev`, all leaves answer. */
  docs: Array<{ id: string; rev?: string | undefined }>;
  /** With `_revisions`. */
  revs?: boolean | undefined;
  /** A revision that has descendants is answered by their leaves. */
  latest?: boolean | undefined;
  /** With the attachments. */
  attachments?: boolean | undefined;
  /** Attachments as `Blob` (in Node `Buffer`) instead of base64. */
  binary?: boolean | undefined;
}

declare global {
  namespace PouchDB {
    namespace Replication {
      interface ReplicateOptions {
        /**
         * `false`: stock PouchDB. Otherwise the plugin's options, laid over those it was installed with.
         * Not looked at in `push` and `pull` of `db.sync()`: give it beside them.
         * @default true
         */
        fastSync?: boolean | ReplicationOptions | undefined;
      }

      interface ReplicationEventEmitter<Content extends {}, C, F> {
        /** An extra event of the plugin; PouchDB's own stay as they are. */
        on(event: 'progress', listener: (progress: C extends SyncResult<any> ? SyncProgress : Progress) => any): this;
      }

      interface Replication<Content extends {}> {
        /** The plugin's figures. Missing where stock was used from the start. */
        readonly fastSync?: { readonly stats: Stats } | undefined;
      }

      interface Sync<Content extends {}> {
        /** The plugin's figures. Missing where stock was used from the start. */
        readonly fastSync?: { readonly stats: SyncStats } | undefined;
      }
    }
  }
}
