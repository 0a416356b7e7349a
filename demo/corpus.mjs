// Notes made of real text: what the README and markdown files under node_modules say, cut at their headings.
//
// Decides which notes there are, which of them were edited, deleted or are in conflict, and which carry an attachment; the
// same files give the same documents, revisions included. Knows nothing of servers: it yields what `_bulk_docs` with
// `new_edits: false` takes. Two leaves of one document never both carry attachments: stock PouchDB is known to fetch the
// wrong bytes for a losing one, which would show as a difference that is not ours.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
/** A section shorter than this (characters) says nothing worth a note; a longer one than the other is cut. */
const SHORTEST = 80, LONGEST = 4000;

/** Every so many notes one is … (primes, so that the kinds mix). */
const EVERY = { edited: 5, deleted: 23, conflict: 29, deletedConflict: 53, thirdLeaf: 97, attachment: 61 };

/**
 * @typedef {{title: string, text: string, from: string}} Section
 * @typedef {Record<string, any> & {_id: string, _rev: string, _revisions: {start: number, ids: string[]}}} Leaf
 * @typedef {{leaves: Leaf[], notes: number, edited: number, deleted: number, conflicts: number, attachments: number}} Corpus
 */

/**
 * @param {{notes?: number}} [options] at most so many
 * @returns {Promise<Corpus>}
 */
export async function corpus({ notes = 3000 } = {}) {
  const sections = await readSections();
  // Spread over all packages instead of those whose names come first.
  const step = Math.max(1, sections.length / notes);
  const chosen = Array.from({ length: Math.min(notes, sections.length) }, (_, i) => sections[Math.floor(i * step)]);
  const pictures = await findFiles((name) => /\.(png|gif|jpe?g)$/.test(name));
  const total = { leaves: /** @type {Leaf[]} */ ([]), notes: chosen.length, edited: 0, deleted: 0, conflicts: 0, attachments: 0 };
  for (const [i, section] of chosen.entries()) {
    const history = new History(`note:${String(i).padStart(5, '0')}`, section);
    if (i % EVERY.edited === 0) {
      history.edit(1 + i % 7);
      total.edited++;
    }
    const conflict = i % EVERY.conflict === 0, deletedConflict = i % EVERY.deletedConflict === 0;
    if (conflict || deletedConflict) {
      if (conflict) history.branch('another device', false);
      if (deletedConflict) history.branch('a device that deleted it', true);
      if (i % EVERY.thirdLeaf === 0) history.branch('a third device', false);
      total.conflicts++;
    } else if (i % EVERY.attachment === 0) {
      const name = i % 2 || !pictures.length ? section.from : pictures[i % pictures.length];
      history.attach(name, await readFile(path.join(MODULES, name)));
      total.attachments++;
    }
    if (i % EVERY.deleted === 0) {
      history.remove();
      total.deleted++;
    }
    total.leaves.push(...history.leaves());
  }
  return total;
}

/** The text of every section, one after the other, for whoever wants real text of any length. */
export async function realText() {
  return (await readSections()).map(({ text }) => text).join('\n\n');
}

/** Part of a text without the half characters at its ends, which CouchDB refuses. @param {string} text @param {number} from @param {number} to */
export function cut(text, from, to) {
  return text.slice(from, to).replace(/\p{Surrogate}/gu, '');
}

/** The revisions of one note; the ids of revisions come from what they hold, as CouchDB's do. */
class History {
  /** @param {string} id @param {Section} section */
  constructor(id, { title, text, from }) {
    this.id = id;
    /** @type {string[]} newest first, as in `_revisions` */
    this.ids = [];
    /** @type {Leaf[]} */
    this.branches = [];
    this.body = { type: 'note', title, text, from, tags: [from.split('/')[0], `h${title.length % 6}`], edits: 0 };
    this.#grow();
  }

  /** @param {number} times */
  edit(times) {
    for (let n = 0; n < times; n++) {
      this.body = { ...this.body, edits: this.body.edits + 1, text: `${this.body.text}\n\nEdited ${n + 1} of ${times} times.` };
      this.#grow();
    }
  }

  /** @param {string} name @param {Buffer} bytes */
  attach(name, bytes) {
    const type = /\.(\w+)$/.exec(name)?.[1] ?? '';
    const content_type = { png: 'image/png', gif: 'image/gif', jpg: 'image/jpeg', jpeg: 'image/jpeg' }[type] ?? 'text/markdown';
    this.body = /** @type {any} */ ({ ...this.body, _attachments: { [path.basename(name)]: { content_type, data: bytes.toString('base64') } } });
    this.#grow();
  }

  /** A revision by somebody else, beside the one the note goes on with. @param {string} who @param {boolean} deleted */
  branch(who, deleted) {
    const body = deleted ? { _deleted: true } : { ...this.body, by: who, text: `${this.body.text}\n\nWritten by ${who}.` };
    this.branches.push(leaf(this.id, body, [revisionId(body, this.ids[0]), ...this.ids]));
    this.body = /** @type {any} */ ({ ...this.body, edits: this.body.edits + 1 });
    this.#grow();
  }

  remove() {
    this.body = /** @type {any} */ ({ _deleted: true });
    this.#grow();
  }

  leaves() {
    return [...this.branches, leaf(this.id, this.body, this.ids)];
  }

  #grow() {
    this.ids = [revisionId(this.body, this.ids[0]), ...this.ids];
  }
}

/** @param {object} body @param {string | undefined} parent */
function revisionId(body, parent) {
  return createHash('md5').update(JSON.stringify([parent ?? null, body])).digest('hex');
}

/** @param {string} id @param {object} body @param {string[]} ids @returns {Leaf} */
function leaf(id, body, ids) {
  return { _id: id, _rev: `${ids.length}-${ids[0]}`, _revisions: { start: ids.length, ids }, ...body };
}

/** @returns {Promise<Section[]>} */
async function readSections() {
  const sections = [];
  for (const from of await findFiles((name) => /\.(md|markdown)$/i.test(name) || /^readme(\.txt)?$/i.test(name))) {
    const text = await readFile(path.join(MODULES, from), 'utf8');
    for (const part of text.split(/^(?=#{1,4} )/m)) {
      const title = (/^#+ +(.*)/.exec(part)?.[1] ?? path.basename(from)).trim();
      const body = part.trim();
      for (let at = 0; body.length - at >= SHORTEST; at += LONGEST) sections.push({ title, text: cut(body, at, at + LONGEST), from });
    }
  }
  if (!sections.length) throw new Error('no markdown file was found under node_modules: run `npm install` first');
  return sections;
}

/** Paths below node_modules, sorted, so that the same packages give the same corpus. @param {(name: string) => boolean} wanted */
async function findFiles(wanted) {
  const entries = await readdir(MODULES, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile() && wanted(entry.name))
    .map((entry) => path.relative(MODULES, path.join(entry.parentPath ?? entry.path, entry.name)).replaceAll(path.sep, '/'))
    .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}
