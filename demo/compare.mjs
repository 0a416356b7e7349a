// Are two databases the same? For the demo, the tests and the benchmark; runs in Node and in browsers.
//
// Decides what counts: for every document, deleted ones too, the winner and all leaves, each with body, history, deleted
// flag and its attachments' names, types and bytes. Seqs, local documents and how a revision tree is stored do not count.
// A description is plain data, so that databases of different processes can be compared.

/**
 * @typedef {{deleted: boolean, body: string, attachments: string}} LeafDescription digests; '' for no attachments
 * @typedef {{winner: string, deleted: boolean, leaves: Record<string, LeafDescription>}} DocumentDescription
 * @typedef {Record<string, DocumentDescription>} Description by document id, without a prototype
 * @typedef {'missing' | 'extra' | 'winner' | 'leaves' | 'body' | 'attachments'} Kind
 * @typedef {{id: string, kind: Kind, rev?: string, losing?: boolean, expected?: unknown, found?: unknown}} Difference
 */

/** So many documents are read at once. */
const AT_ONCE = 50;

/**
 * @param {any} db a PouchDB, local or remote
 * @returns {Promise<Description>}
 */
export async function describe(db) {
  const { results } = await db.changes({ since: 0, style: 'all_docs', include_docs: true });
  /** @type {Description} */
  const description = Object.create(null); // a document may be called constructor
  for (let at = 0; at < results.length; at += AT_ONCE) {
    await Promise.all(results.slice(at, at + AT_ONCE).map(async (/** @type {any} */ row) => {
      const answers = await db.get(row.id, { open_revs: row.changes.map((/** @type {any} */ c) => c.rev), revs: true, attachments: true });
      /** @type {DocumentDescription} */
      const entry = { winner: row.doc._rev, deleted: Boolean(row.deleted), leaves: {} };
      for (const answer of answers) {
        if (answer.ok) entry.leaves[answer.ok._rev] = await describeLeaf(answer.ok);
        else entry.leaves[answer.missing] = { deleted: false, body: 'missing', attachments: '' };
      }
      description[row.id] = entry;
    }));
  }
  return description;
}

/**
 * The revisions of the leaves alone, which a feed tells without reading a document.
 * @param {any} db
 * @returns {Promise<Record<string, string>>} by document id, without a prototype
 */
export async function leaves(db) {
  const { results } = await db.changes({ since: 0, style: 'all_docs' });
  const byId = Object.create(null);
  for (const row of results) byId[row.id] = row.changes.map((/** @type {any} */ c) => c.rev).sort().join(' ');
  return byId;
}

/**
 * What `found` has otherwise than `expected`; empty when they are the same database.
 * @param {Description} expected @param {Description} found
 * @returns {Difference[]}
 */
export function differences(expected, found) {
  /** @type {Difference[]} */
  const all = [];
  for (const [id, a] of Object.entries(expected)) {
    if (!Object.hasOwn(found, id)) {
      all.push({ id, kind: 'missing' });
      continue;
    }
    const b = found[id];
    if (a.winner !== b.winner || a.deleted !== b.deleted) all.push({ id, kind: 'winner', expected: a.winner, found: b.winner });
    const [revsA, revsB] = [Object.keys(a.leaves).sort(), Object.keys(b.leaves).sort()];
    if (revsA.join() !== revsB.join()) {
      all.push({ id, kind: 'leaves', expected: revsA, found: revsB });
      continue;
    }
    for (const rev of revsA) {
      const [x, y] = [a.leaves[rev], b.leaves[rev]];
      if (x.body !== y.body || x.deleted !== y.deleted) all.push({ id, rev, kind: 'body' });
      else if (x.attachments !== y.attachments) all.push({ id, rev, kind: 'attachments', losing: rev !== a.winner });
    }
  }
  for (const id of Object.keys(found)) if (!Object.hasOwn(expected, id)) all.push({ id, kind: 'extra' });
  return all;
}

/** @param {Difference} difference */
export function inWords({ id, kind, rev, losing, expected, found }) {
  const at = rev ? `${JSON.stringify(id)} at ${rev}` : JSON.stringify(id);
  switch (kind) {
    case 'missing': return `${at} is not there`;
    case 'extra': return `${at} should not be there`;
    case 'winner': return `${at} has the winner ${found}, not ${expected}`;
    case 'leaves': return `${at} has the leaves ${found}, not ${expected}`;
    case 'body': return `${at} has another body, history or deleted flag`;
    case 'attachments': return `${at}${losing ? ', a losing leaf,' : ''} has other attachments`;
  }
}

/** @param {any} doc @returns {Promise<LeafDescription>} */
async function describeLeaf({ _attachments, ...doc }) {
  const files = Object.entries(_attachments ?? {}).map(([name, { content_type, data, stub }]) => [name, content_type, stub ? 'stub' : data]);
  return {
    deleted: Boolean(doc._deleted),
    body: await digest(canonical(doc)),
    attachments: files.length ? await digest(canonical(files.sort(([a], [b]) => (a < b ? -1 : 1)))) : '',
  };
}

/** JSON with sorted keys: the order of a document's fields is not kept by every adapter. @param {any} value */
function canonical(value) {
  return JSON.stringify(value, (_key, v) => {
    if (v === null || typeof v !== 'object' || Array.isArray(v)) return v;
    // As entries, for the order of keys that look like numbers cannot be chosen in an object.
    return { entries: Object.keys(v).sort().map((key) => [key, v[key]]) };
  });
}

/** @param {string} text */
async function digest(text) {
  if (!crypto.subtle) return text; // a page that came over plain http from another machine has none
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash).subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
