// Attachments on their way past stock's replicator, which would fetch each by
// its own request: they are taken off the documents on the source's side, and
// put back on when the target is written. Most come with their documents in a
// stream (src/wasm/attachments.rs). What the answer left out is here looked for
// on the target, or asked for alone, always with the revision.
import { Bytes, fromBase64 } from './bytes.js';
import { toError } from './errors.js';
import { chunks, each } from './reading.js';

/** Documents of an answer that are completed at once. Their requests wait in the lanes. */
const AT_ONCE = 20;

/** @typedef {import('./link.js').Link} Link */

/** @type {WeakMap<any, any>} */
const off = new WeakMap();

/**
 * Takes the attachments off.
 * @param {any} answer of `_bulk_get`
 */
export function detach(answer) {
  for (const { docs } of answer.results) {
    for (const { ok: doc } of docs) {
      if (!doc?._attachments) continue;
      off.set(doc, doc._attachments);
      delete doc._attachments;
    }
  }
}

/**
 * Puts back what {@link detach} took off.
 * @param {any} doc
 */
export function attach(doc) {
  const attachments = off.get(doc);
  if (attachments) doc._attachments = attachments;
  off.delete(doc);
}

/**
 * Names a leaf of each document that the target holds: the source then leaves out
 * the attachments that came in before.
 * @param {Link} link
 * @param {{ id: string, atts_since?: string[] }[]} entries of `_bulk_get`
 */
export async function nameAncestors({ target, targetRemote, wasEmpty }, entries) {
  if (targetRemote || wasEmpty) return;
  try {
    const { rows } = await target.allDocs({ keys: entries.map(({ id }) => id) });
    for (const [at, { value }] of rows.entries()) {
      if (value && !value.deleted) entries[at].atts_since = [value.rev];
    }
  } catch {
    // Then nothing is left out. What is wrong with the target, the write tells.
  }
}

/**
 * Gives an entry that `follows` its bytes. What is wrong with them is the
 * document's failure, not that of the stream: {@link complete} tells it.
 * @param {any} entry of `_attachments`
 * @param {Bytes} bytes
 * @param {string} encoding
 */
export async function fill(entry, bytes, encoding) {
  try {
    entry.data = await bytes.stored(entry, encoding);
    tidy(entry);
  } catch (/** @type {any} */ error) {
    entry.wrong = words(error);
  }
}

/**
 * Gives the documents of an answer what it left out. In place of a document that
 * cannot be had whole stands `{ broken }`, with the reason.
 * @param {Link} link
 * @param {any} answer of `_bulk_get`
 * @param {{ id: string, atts_since?: string[] }[]} entries
 * @param {AbortSignal} signal
 * @param {() => void} tick
 */
export async function complete(link, answer, entries, signal, tick) {
  const items = (answer?.results ?? []).flatMap((/** @type {any} */ result) => result?.docs ?? []);
  const work = items.filter((/** @type {any} */ item) => attachmentsOf(item?.ok).length > 0);
  if (work.length === 0) return;
  const leaves = new Map(entries.map((entry) => [entry.id, entry.atts_since?.[0]]));
  const all = each(work, AT_ONCE, async (item) => {
    try {
      await whole(link, item.ok, leaves.get(item.ok._id), signal);
    } catch (/** @type {any} */ error) {
      signal.throwIfAborted();
      delete item.ok;
      item.broken = words(error);
    }
  });
  await link.lanes.watch(all, tick);
}

/**
 * Its attachments, as far as there is anything to do: PouchDB keeps none of a
 * deleted document.
 * @param {any} doc
 * @returns {[string, any][]}
 */
export function attachmentsOf(doc) {
  return doc?._attachments && !doc._deleted ? Object.entries(doc._attachments) : [];
}

/**
 * @param {Link} link
 * @param {any} doc
 * @param {string | undefined} leaf of the target that the source was told
 * @param {AbortSignal} signal
 */
async function whole(link, doc, leaf, signal) {
  const attachments = attachmentsOf(doc);
  for (const [name, entry] of attachments) {
    if (entry.wrong) throw new Error(`${JSON.stringify(name)}: ${entry.wrong}`);
    if (typeof entry.data === 'string') entry.data = fromBase64(entry.data, entry.content_type);
  }
  const stubs = attachments.filter(([, { data }]) => data === undefined);
  if (stubs.length === 0) return;
  const held = await heldBy(link, doc._id, leaf);
  const inherited = leaf && ancestorsOf(doc).includes(leaf) ? generation(leaf) : 0;
  await Promise.all(stubs.map(async ([name, entry]) => {
    const own = Object.hasOwn(held.attachments, name) ? held.attachments[name] : undefined;
    if (!own || !isSame(own, entry, inherited)) return fetchOne(link, doc, name, entry, signal);
    if (!link.keepsStubs) {
      entry.data = await link.target.getAttachment(doc._id, name, { rev: held.rev });
      return tidy(entry);
    }
    tidy(entry);
    // Stock hands over the bytes, to which PouchDB gives the document's generation.
    return Object.assign(entry, { stub: true, digest: own.digest, length: own.length, revpos: generation(doc._rev) });
  }));
}

/**
 * @param {Link} link
 * @param {string} id
 * @param {string | undefined} leaf
 */
function heldBy({ target, targetRemote, wasEmpty }, id, leaf) {
  const none = { rev: '', attachments: {} };
  if (targetRemote || wasEmpty) return none;
  const held = (/** @type {any} */ doc) => ({ rev: doc._rev, attachments: doc._attachments ?? {} });
  return target.get(id, leaf ? { rev: leaf } : {}).then(held, () => none);
}

/**
 * The target's own is the same. CouchDB's digest of a compressed attachment is of
 * the compressed bytes: there it tells that the attachment came in with an ancestor
 * that the target has. Of one with `revpos` 0 it does not know where it came in,
 * and leaves it out in any case.
 * @param {any} own
 * @param {any} entry a stub
 * @param {number} inherited the generation of the ancestor
 */
function isSame(own, { digest, encoding, length, revpos }, inherited) {
  return own.digest === digest || (encoding === 'gzip' && length === own.length && revpos > 0 && revpos <= inherited);
}

/** @param {any} doc @returns {string[]} */
function ancestorsOf({ _rev, _revisions }) {
  const { start, ids } = _revisions ?? { start: generation(_rev), ids: [] };
  return ids.map((/** @type {string} */ id, /** @type {number} */ at) => `${start - at}-${id}`);
}

/** @param {string} rev */
const generation = (rev) => parseInt(rev, 10);

/**
 * With the revision: without it, stock gives a losing leaf the winner's bytes.
 * @param {Link} link
 * @param {any} doc
 * @param {string} name
 * @param {any} entry
 * @param {AbortSignal} [signal]
 */
async function fetchOne(link, doc, name, entry, signal) {
  entry.data = await link.lanes.run(() => ask(link, doc, name, entry, signal), signal);
  tidy(entry);
}

/** @param {Link} link @param {any} doc @param {string} name @param {any} entry @param {AbortSignal} [signal] */
async function ask(link, doc, name, entry, signal) {
  const { sourceRemote, source, lanes } = link;
  if (!sourceRemote?.pristine('getAttachment')) return source.getAttachment(doc._id, name, { rev: doc._rev });
  const path = pathOf(doc._id);
  const response = await sourceRemote.twin.fetch(`${path}/${name.split('/').map(encodeURIComponent).join('/')}?rev=${doc._rev}`, { signal });
  if (!response.ok) throw response;
  const bytes = new Bytes(entry.length);
  const reader = chunks(response);
  for (let next; !(next = await reader.read()).done;) {
    bytes.push(next.value);
    lanes.move();
  }
  // What CouchDB says of bytes that it stores as they are.
  const md5 = !response.headers.get('content-encoding') && response.headers.get('content-md5');
  const other = md5 && bytes.otherThan(`md5-${md5}`);
  if (other) throw new Error(`${JSON.stringify(name)}: ${other}`);
  const found = bytes.plain(entry) ?? bytes.plain(await encodingOf(link, path, doc._rev, name, signal));
  if (found) return found;
  // The same bytes would come again.
  throw Object.assign(new Error(`${JSON.stringify(name)}: ${bytes.length} bytes instead of ${entry.length}`), { status: 400 });
}

/**
 * What a client had compressed has the length of the compressed bytes, which only
 * shows where the encoding is asked for.
 * @param {Link} link @param {string} path @param {string} rev @param {string} name @param {AbortSignal} [signal]
 */
async function encodingOf({ sourceRemote }, path, rev, name, signal) {
  const response = await sourceRemote?.twin.fetch(`${path}?rev=${rev}&att_encoding_info=true`, { signal });
  const doc = await response.json();
  return doc._attachments?.[name] ?? { length: -1 };
}

/** As PouchDB writes it (pouchdb-adapter-http, `encodeDocId`). @param {string} id */
const pathOf = (id) => (id.startsWith('_design/') ? `_design/${encodeURIComponent(id.slice(8))}` : encodeURIComponent(id));

/**
 * The target turned out not to have any more what was left to it: it is fetched.
 * @param {Link} link
 * @param {any[]} docs
 * @returns {Promise<boolean>} whether there was any
 */
export async function fetchLeftOut(link, docs) {
  const left = docs.filter((doc) => attachmentsOf(doc).some(isStub));
  try {
    await each(left, AT_ONCE, (doc) => Promise.all(
      attachmentsOf(doc).filter(isStub).map(([name, entry]) => fetchOne(link, doc, name, entry))));
  } catch (/** @type {any} */ error) {
    const failure = { code: 'fast_sync_attachment', kind: 'attachment', status: error?.status ?? 0, reason: words(error) };
    throw toError(failure, 'Fetching attachments', link.url());
  }
  return left.length > 0;
}

/** @param {[string, any]} attachment */
const isStub = ([, { stub, data }]) => stub && data === undefined;

/** Of an error, or of a response that is no success. @param {any} error */
function words(error) {
  return String(error?.message ?? error?.reason ?? (error?.status ? `status ${error.status}` : error));
}

/** What PouchDB has no use for. @param {any} entry */
function tidy(entry) {
  for (const name of ['follows', 'stub', 'length', 'encoding', 'encoded_length']) delete entry[name];
}
