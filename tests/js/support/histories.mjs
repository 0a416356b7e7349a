// Generated databases: what happened to each document, as fast-check draws it, and the revisions
// that come of it, each as a replicator would write it. The same draw gives the same revisions, so
// that a server and two targets can be filled alike.

import fc from 'fast-check';
import { createHash } from 'node:crypto';

/**
 * @typedef {{ id: string, kind: 'edit' | 'branch' | 'root' | 'delete' | 'long', pick: number,
 *   body: any, atts: { name: string, type: string, data: string }[] | null, keep: boolean }} Step
 */

/** Ids that have been trouble somewhere, and some that are none. */
export const ids = [
  'plain', 'a/b', 'p+q %41', '_design/x', '0', '12', '🍏', 'constructor', 'toString', 'hasOwnProperty', 'ü ñ', 'a?b=c&d#e',
  'UPPER', 'quote"s', "it's", 'back\\slash', `long-${'l'.repeat(400)}`, 'comma,semi;', '%2F', '1-0', 'null',
];

const value = fc.oneof(
  { weight: 4, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  fc.constantFrom(12345678901234567000, 1e21, -0.1, '\ud800', '\u0000', '', [], {}, { constructor: 1, length: 2 }, [[['deep']]]),
);

const attachment = fc.record({
  name: fc.constantFrom('a.txt', 'b+c.bin', 'dir/x', '100%.txt', 'ü.png'),
  type: fc.constantFrom('text/plain', 'application/octet-stream', 'image/png', 'application/json'),
  data: fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    fc.constantFrom('', Buffer.from('text '.repeat(300)).toString('base64'), Buffer.from('--boundary\r\n\r\n--').toString('base64')),
  ),
});

/** @returns {fc.Arbitrary<Step>} */
const step = () => /** @type {any} */ (fc.record({
  id: fc.constantFrom(...ids),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('edit') }, { weight: 2, arbitrary: fc.constant('branch') }, fc.constant('root'),
    { weight: 2, arbitrary: fc.constant('delete') }, fc.constant('long'),
  ),
  pick: fc.nat(99),
  body: fc.dictionary(fc.constantFrom('text', 'n', 'a.b', 'zero', 'Ü', 'length'), value, { maxKeys: 3 }),
  atts: fc.option(fc.uniqueArray(attachment, { maxLength: 2, selector: ({ name }) => name }), { freq: 2 }),
  keep: fc.boolean(),
}));

/** What happened to a database, in order. @param {{ minLength?: number, maxLength?: number }} [size] */
export const steps = (size = { minLength: 1, maxLength: 40 }) => fc.array(step(), size);

/** The revisions that steps lead to. One history carries on over several calls of `write`. */
export class Histories {
  /** @param {Histories} [other] where it branches off */
  constructor(other) {
    /** @type {Map<string, { rev: string, path: string[], isLeaf: boolean, atts: Record<string, any> }[]>} */
    this.nodes = structuredClone(other?.nodes ?? new Map());
  }

  /**
   * @param {Step[]} list
   * @returns {any[]} documents for `new_edits: false`, in order
   */
  write(list) {
    return list.map((each) => this.one(each));
  }

  /** @param {Step} given */
  one({ id, kind, pick, body, atts, keep }) {
    const nodes = this.nodes.get(id) ?? [];
    this.nodes.set(id, nodes);
    const candidates = kind === 'branch' ? nodes : nodes.filter((node) => node.isLeaf);
    const parent = kind === 'root' ? undefined : candidates[pick % candidates.length];
    let path = parent?.path ?? [];
    const isDeleted = kind === 'delete';
    const generations = kind === 'long' ? 5 + pick : 1;
    for (let left = generations; left > 0; left -= 1) {
      const hash = createHash('md5').update(JSON.stringify([id, path, left, body, pick, isDeleted])).digest('hex');
      path = [`${path.length + 1}-${hash}`, ...path];
    }
    const [rev] = path;
    const kept = keep && !isDeleted ? parent?.atts : {};
    const attachments = { ...kept, ...this.attachments(isDeleted ? null : atts, path.length) };
    if (!nodes.some((node) => node.rev === rev)) {
      if (parent) parent.isLeaf = false;
      nodes.push({ rev, path, isLeaf: true, atts: attachments });
    }
    return {
      _id: id, _rev: rev, ...body, ...(isDeleted ? { _deleted: true } : {}),
      _revisions: { start: path.length, ids: path.map((each) => each.replace(/^\d+-/, '')) },
      ...(Object.keys(attachments).length > 0 ? { _attachments: attachments } : {}),
    };
  }

  /** @param {Step['atts']} list @param {number} revpos */
  attachments(list, revpos) {
    return Object.fromEntries((list ?? []).map(({ name, type, data }) => [name, { content_type: type, data, revpos }]));
  }
}
