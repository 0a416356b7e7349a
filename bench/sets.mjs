// The documents that are synced.
//
// Decides sizes, histories and attachments; the same name and number give the same documents, revisions included. They come
// as `_bulk_docs` with `new_edits: false` takes them, and can be written to either side, or to neither.
import { createHash } from 'node:crypto';
import { cut, realText } from '../demo/corpus.mjs';

/** @typedef {Record<string, any> & {_id: string, _rev: string}} Leaf */
/** @type {Record<string, {docs: number, make: (docs: number) => Leaf[] | Promise<Leaf[]>}>} */
export const SETS = {
  small: { docs: 1000, make: (docs) => range(docs).map((i) => leaf(`small-${digits(i)}`, 1, { type: 'small', number: i, name: `name ${i % 97}`, done: i % 3 === 0 })) },
  notes: { docs: 10_000, make: notes },
  attachments: { docs: 400, make: mixedAttachments },
  'attachments-1mb': { docs: 50, make: (docs) => range(docs).map((i) => withAttachments(`large-${digits(i)}`, [{ size: 1e6, type: 'application/octet-stream' }])) },
  'attachments-2kb': { docs: 5000, make: (docs) => range(docs).map((i) => withAttachments(`tiny-${digits(i)}`, [{ size: 2000, type: 'image/png' }])) },
};

/** About 1 kB of real text each; one in five was edited two to nine times, one in fifty is in conflict. @param {number} docs */
async function notes(docs) {
  const text = await realText();
  const length = 1000, step = 977; // prime, so that the text is not cut at the same places when it is gone through again
  return range(docs).flatMap((i) => {
    const at = (i * step) % (text.length - length);
    const body = { type: 'note', title: cut(text, at, at + 40).trim(), text: cut(text, at, at + length), tags: [`t${i % 13}`, `t${i % 7}`] };
    const id = `note-${digits(i)}`;
    const generation = i % 5 === 0 ? 2 + i % 8 : 1;
    const own = leaf(id, generation, body);
    return i % 50 === 0 ? [own, leaf(id, generation, { ...body, by: 'another device' }, own._revisions.ids.slice(1))] : [own];
  });
}

/**
 * As many documents as asked, a third of them with two attachments, of 14 kB on average: 7.5 MB in 530 for 400 documents.
 * Half of them are text, which CouchDB stores compressed.
 * @param {number} docs
 */
async function mixedAttachments(docs) {
  const text = Buffer.from(await realText());
  return range(docs).map((i) => {
    const files = range(i % 40 < 13 ? 2 : 1).map((n) => {
      const size = 300 + ((i * 7919 + n * 104_729) % 27_900);
      return (i + n) % 2 ? { size, type: 'image/jpeg' } : { size, type: 'text/plain', bytes: text.subarray((i * 8191) % (text.length - size)).subarray(0, size) };
    });
    return withAttachments(`file-${digits(i)}`, files);
  });
}

/** @param {string} id @param {{size: number, type: string, bytes?: Buffer}[]} files */
function withAttachments(id, files) {
  const entries = files.map(({ size, type, bytes }, n) => [`${n}.${type.split('/')[1]}`, { content_type: type, data: (bytes ?? noise(size, `${id}/${n}`)).toString('base64') }]);
  return leaf(id, 1, { type: 'file', _attachments: Object.fromEntries(entries) });
}

/** Bytes that do not compress. @param {number} size @param {string} seed */
function noise(size, seed) {
  return createHash('shake256', { outputLength: size }).update(seed).digest();
}

/**
 * A leaf whose ancestors, unless given, were never read by anybody: only their ids are made up.
 * @param {string} id @param {number} generation @param {object} body @param {string[]} [ancestors]
 * @returns {Leaf}
 */
function leaf(id, generation, body, ancestors = range(generation - 1).map((n) => md5(`${id} ${n}`))) {
  const ids = [md5(id + JSON.stringify(body)), ...ancestors];
  return { _id: id, _rev: `${generation}-${ids[0]}`, _revisions: { start: generation, ids }, ...body };
}

/** @param {string} text */
const md5 = (text) => createHash('md5').update(text).digest('hex');
/** @param {number} n */
const digits = (n) => String(n).padStart(6, '0');
/** @param {number} n */
const range = (n) => Array.from({ length: n }, (_, i) => i);
