// One document's revision tree: paths are merged in, leaves and the winner read out, old
// ancestors stemmed off. A node without a value is a revision of which only the id is known
// (its body was never sent here, or compaction dropped it): CouchDB answers `missing` for it.
// Knows nothing of documents, attachments or sequence numbers.

import { compareRevIds, compareRevs } from './revs.mjs';

/**
 * @typedef {{ deleted: boolean, body: object, atts: import('./attachments.mjs').Attachment[] }} Value
 * @typedef {{ rev: string, pos: number, id: string, parent: Node | null, children: Node[] | null,
 *   value: Value | undefined }} Node
 * @typedef {{ start: number, ids: string[] }} Path newest id first, as in `_revisions`
 */

export class RevTree {
  constructor() {
    /** @type {Map<string, Node>} */
    this.nodes = new Map();
    /** @type {Node[] | null} */
    this.sortedLeaves = null;
  }

  /** @param {string} rev */
  get(rev) {
    return this.nodes.get(rev);
  }

  /**
   * Merges a path. A root of the tree that lies on the path gains the path's older part: so a
   * stemmed branch finds its trunk again. A revision that has a value keeps it.
   * @param {Path} path
   * @param {Value} value of the newest revision
   * @returns {boolean} whether that changed the tree
   */
  add({ start, ids }, value) {
    this.sortedLeaves = null;
    let changed = false;
    /** @type {Node | null} */
    let child = null;
    for (let i = 0; i < ids.length; i += 1) {
      const pos = start - i;
      const rev = `${pos}-${ids[i]}`;
      let node = this.nodes.get(rev);
      const known = node !== undefined;
      if (!node) {
        node = { rev, pos, id: ids[i], parent: null, children: null, value: undefined };
        this.nodes.set(rev, node);
        changed = true;
      }
      if (i === 0 && !node.value) {
        node.value = value;
        changed = true;
      }
      if (child) {
        child.parent = node;
        (node.children ??= []).push(child);
        node.children.sort((a, b) => compareRevIds(a.id, b.id));
        changed = true;
      }
      // Where the tree goes on, it is followed up to its root, which the path may lead further.
      child = known && node.parent ? null : node;
    }
    return changed;
  }

  roots() {
    return [...this.nodes.values()].filter((node) => node.parent === null).sort(compareRevs);
  }

  /** All leaves in the order in which CouchDB walks its tree (that of `open_revs=all`). */
  leaves() {
    return this.roots().reverse().flatMap((root) => leavesBelow(root));
  }

  /** All leaves, the winner first: the order of `style=all_docs`. */
  ranked() {
    this.sortedLeaves ??= this.leaves().sort(compareLeaves);
    return this.sortedLeaves;
  }

  winner() {
    return this.ranked()[0];
  }

  /** @param {string} rev */
  leavesFrom(rev) {
    const node = this.nodes.get(rev);
    return node ? leavesBelow(node) : [];
  }

  /**
   * Keeps the revisions less than `limit` steps above some leaf.
   * @param {number} limit
   */
  stem(limit) {
    if (this.nodes.size <= limit) return;
    const kept = new Set();
    for (const leaf of this.leaves()) {
      /** @type {Node | null} */
      let node = leaf;
      for (let i = 0; i < limit && node; i += 1, node = node.parent) kept.add(node);
    }
    for (const [rev, node] of this.nodes) {
      if (!kept.has(node)) {
        this.nodes.delete(rev);
        continue;
      }
      if (node.parent && !kept.has(node.parent)) node.parent = null;
      if (node.children) node.children = node.children.filter((child) => kept.has(child));
    }
    this.sortedLeaves = null;
  }

  /** Drops the bodies of all revisions that are no leaves. */
  compact() {
    for (const node of this.nodes.values()) if (node.children) node.value = undefined;
  }
}

/**
 * @param {Node} node
 * @returns {Node[]}
 */
function leavesBelow(node) {
  // A long history without branches must not become a deep recursion.
  let at = node;
  while (at.children?.length === 1) at = at.children[0];
  return at.children ? at.children.flatMap(leavesBelow) : [at];
}

/**
 * @param {Node} a
 * @param {Node} b
 */
function compareLeaves(a, b) {
  const deletedA = a.value?.deleted ?? false;
  const deletedB = b.value?.deleted ?? false;
  if (deletedA !== deletedB) return deletedA ? 1 : -1;
  return -compareRevs(a, b);
}

/**
 * @param {Node} node
 * @param {number} [limit]
 * @returns {Path}
 */
export function pathOf(node, limit = Infinity) {
  const ids = [];
  for (let at = /** @type {Node | null} */ (node); at && ids.length < limit; at = at.parent) ids.push(at.id);
  return { start: node.pos, ids };
}

/**
 * The order in which CouchDB merges the paths of one request: by their oldest revision, then on
 * towards the newest; of two that run together the one that ends is the later.
 * @param {Path} a
 * @param {Path} b
 */
export function comparePaths(a, b) {
  const oldest = a.start - a.ids.length - (b.start - b.ids.length);
  if (oldest !== 0) return oldest;
  const [first, second] = [a.ids.toReversed(), b.ids.toReversed()];
  for (let i = 0; i < first.length && i < second.length; i += 1) {
    const order = compareRevIds(first[i], second[i]);
    if (order !== 0) return order;
  }
  return second.length - first.length;
}
