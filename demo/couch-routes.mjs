// Two endpoints in front of express-pouchdb, where its answers would mislead a replicating client.
//
// Decides what `_changes` and `_bulk_get` answer, after the manner of CouchDB, over PouchDB's own local methods. Knows
// nothing of logins and cross-origin rules (server.mjs). What it does not handle goes on to express-pouchdb.

/** @type {Map<string, any>} */
const handles = new Map();

/** A handle of a database that exists: opening one creates it, which asking a server must not. */
async function existing(/** @type {any} */ Pouch, /** @type {string} */ name) {
  if (!handles.has(name) && (await Pouch.allDbs()).includes(name)) {
    handles.set(name, new Pouch(name).once('destroyed', () => handles.delete(name)));
  }
  return handles.get(name);
}

/**
 * The feed, where express-pouchdb differs most: no `pending`, one row for `limit=0`, no `_selector` over POST, and a
 * longpoll that ignores `timeout`. Continuous feeds and filters of design documents are left to it.
 * @param {any} Pouch @param {import('express').RequestHandler} json
 * @returns {import('express').RequestHandler}
 */
export function changes(Pouch, json) {
  const OWN_FILTERS = [undefined, '_selector', '_doc_ids'];
  const OWN_FEEDS = [undefined, 'normal', 'longpoll'];
  /** @type {Map<string, {updateSeq: number, seqs: number[]}>} */
  const known = new Map();

  /** How many rows follow `seq`; counted from a list that lasts until the next write. */
  async function pending(/** @type {any} */ db, /** @type {number} */ seq) {
    const updateSeq = (await db.info()).update_seq;
    let entry = known.get(db.name);
    if (entry?.updateSeq !== updateSeq) {
      const { results } = await db.changes({ since: 0 });
      entry = { updateSeq, seqs: results.map((/** @type {any} */ row) => row.seq) };
      known.set(db.name, entry);
    }
    let low = 0;
    for (let high = entry.seqs.length; low < high;) {
      const middle = (low + high) >> 1;
      if (entry.seqs[middle] > seq) high = middle; else low = middle + 1;
    }
    return entry.seqs.length - low;
  }

  return async (req, res, next) => {
    const query = /** @type {Record<string, string | undefined>} */ (req.query);
    if (!OWN_FILTERS.includes(query.filter) || !OWN_FEEDS.includes(query.feed)) return next();
    const db = await existing(Pouch, req.params.db);
    if (!db) return next();
    if (req.method === 'POST') {
      const failed = await new Promise((done) => json(req, res, done));
      if (failed) return res.status(400).json({ error: 'bad_request', reason: 'invalid_json' });
    }
    const since = query.since === undefined ? 0 : query.since === 'now' ? 'now' : Number(String(query.since).replace(/"/g, ''));
    const limit = query.limit === undefined ? undefined : Number(query.limit);
    const options = {
      since, style: query.style, descending: query.descending === 'true',
      include_docs: query.include_docs === 'true', conflicts: query.conflicts === 'true', attachments: query.attachments === 'true',
      ...(limit === undefined ? {} : { limit: Math.max(limit, 1) }),
      ...(query.filter === '_selector' ? { selector: req.body?.selector } : {}),
      ...(query.filter === '_doc_ids' ? { doc_ids: req.body?.doc_ids ?? JSON.parse(query.doc_ids ?? '[]') } : {}),
    };
    try {
      let answer = await db.changes(options);
      if (query.feed === 'longpoll' && !answer.results.length) answer = await firstChange(db, options, query, res) ?? answer;
      if (limit === 0) answer = { ...answer, results: [], last_seq: since === 'now' ? answer.last_seq : since };
      // CouchDB counts what is left after the last row given, filtered or not.
      send(res, { ...answer, pending: await pending(db, answer.last_seq) });
    } catch (error) {
      const e = /** @type {any} */ (error);
      if (!res.headersSent) res.status(e.status || 500);
      send(res, { error: e.name, reason: e.message });
    }
  };
}

function send(/** @type {import('express').Response} */ res, /** @type {object} */ body) {
  // Not res.send: a heartbeat may have begun the answer already.
  if (!res.headersSent) res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(body) + '\n');
}

/** Waits for the first change, the timeout or the client's leaving. */
function firstChange(/** @type {any} */ db, /** @type {any} */ options, /** @type {any} */ query, /** @type {any} */ res) {
  return new Promise((resolve, reject) => {
    const feed = db.changes({ ...options, live: true });
    const beat = setInterval(() => {
      if (!res.headersSent) res.setHeader('Content-Type', 'application/json');
      res.write('\n');
    }, Number(query.heartbeat) || 60_000);
    const timer = query.timeout ? setTimeout(() => end(), Number(query.timeout)) : undefined;
    const end = (/** @type {any} */ change = undefined) => {
      clearInterval(beat);
      clearTimeout(timer);
      feed.removeAllListeners('change');
      feed.cancel();
      resolve(change && { results: [change], last_seq: change.seq });
    };
    feed.on('change', end).on('error', reject);
    res.on('close', () => end());
  });
}

/**
 * express-pouchdb hands `latest=true` to an adapter that throws outside of any promise when it does not know the revision,
 * so that one such request ends the server; it gives only the winner of several leaves, and merges entries of one id.
 * @param {any} Pouch @param {import('express').RequestHandler} json
 * @returns {import('express').RequestHandler}
 */
export function bulkGet(Pouch, json) {
  return async (req, res, next) => {
    const db = await existing(Pouch, req.params.db);
    if (!db) return next();
    const failed = await new Promise((done) => json(req, res, done));
    if (failed || !Array.isArray(req.body?.docs)) {
      return res.status(400).json({ error: 'bad_request', reason: failed ? 'invalid_json' : "Missing JSON list of 'docs'." });
    }
    const asked = { ...req.query, ...(req.body.latest === undefined ? {} : { latest: String(req.body.latest) }) };
    const options = { revs: asked.revs === 'true', attachments: asked.attachments === 'true' };
    const one = async (/** @type {string} */ id, /** @type {string | undefined} */ rev) => {
      try {
        return { ok: await db.get(id, { ...options, ...(rev ? { rev } : {}) }) };
      } catch (error) {
        const { name, message, status } = /** @type {any} */ (error);
        return { error: status === 404 ? notFound(id, rev) : { id, rev, error: name, reason: message } };
      }
    };
    const entry = async (/** @type {{id: string, rev?: string}} */ { id, rev }) => {
      const revs = rev && asked.latest === 'true' ? await latest(db, id, rev) : [rev];
      return { id, docs: revs.length ? await Promise.all(revs.map((r) => one(id, r))) : [{ error: notFound(id, rev) }] };
    };
    send(res, { results: await Promise.all(req.body.docs.map(entry)) });
  };
}

/** @param {string} id @param {string | undefined} rev */
const notFound = (id, rev) => ({ id, rev: rev ?? 'undefined', error: 'not_found', reason: 'missing' });

/** The leaves that descend from a revision; none when the document or the revision is unknown. */
async function latest(/** @type {any} */ db, /** @type {string} */ id, /** @type {string} */ rev) {
  const tree = await new Promise((resolve) => db._getRevisionTree(id, (/** @type {any} */ error, /** @type {any} */ t) => resolve(error ? [] : t)));
  /** @type {string[]} */
  const leaves = [];
  for (const { pos, ids } of tree) {
    const stack = [{ node: ids, generation: pos, below: false }];
    for (let at = stack.pop(); at; at = stack.pop()) {
      const [hash, , children] = at.node;
      const below = at.below || `${at.generation}-${hash}` === rev;
      if (below && !children.length) leaves.push(`${at.generation}-${hash}`);
      for (const node of children) stack.push({ node, generation: at.generation + 1, below });
    }
  }
  return leaves;
}
