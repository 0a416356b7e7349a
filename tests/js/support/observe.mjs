// Runs a replication and notes what its caller can see: events in order, documents of `change`
// events, the result or the error.

/**
 * @typedef {{ events: string[], changes: any[], docs: string[], result: any, error: any, replication: any }} Seen
 */

const EVENTS = ['active', 'paused', 'denied', 'complete', 'error', 'change'];

/**
 * Notes events from now on.
 * @param {any} replication one direction's
 * @returns {Seen & { ended: Promise<Seen> }}
 */
export function observe(replication) {
  /** @type {any} */
  const seen = { events: [], changes: [], docs: [], result: undefined, error: undefined, replication };
  for (const name of EVENTS) {
    replication.on(name, (/** @type {any} */ value) => {
      seen.events.push(name === 'paused' && value ? 'paused with error' : name);
      if (name === 'change') {
        const change = value.change ?? value;
        seen.changes.push({ ...change, docs: change.docs.length });
        seen.docs.push(...change.docs.map((/** @type {any} */ doc) => `${doc._id} ${doc._rev}`));
      }
    });
  }
  seen.ended = replication.then(
    (/** @type {any} */ result) => Object.assign(seen, { result }),
    (/** @type {any} */ error) => Object.assign(seen, { error }),
  );
  return seen;
}

/**
 * Until an emitter emits.
 * @param {any} emitter
 * @param {string} name
 * @param {(value: any) => boolean} [fits]
 */
export function until(emitter, name, fits = () => true) {
  return new Promise((resolve) => {
    emitter.on(name, function listener(/** @type {any} */ value) {
      if (!fits(value)) return;
      emitter.removeListener(name, listener);
      resolve(value);
    });
  });
}

/** What a result tells, without times and seqs. @param {any} result */
export function counts(result) {
  const { ok, docs_read, docs_written, doc_write_failures, errors, status } = result;
  return { ok, docs_read, docs_written, doc_write_failures, errors, status };
}
