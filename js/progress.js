// The `progress` event: an extra one, stock's stay as they are.

export class Progress {
  /**
   * @param {import('./link.js').Link} link
   * @param {any} replication
   * @param {any} returned what the caller listens to
   */
  constructor(link, replication, returned) {
    this.link = link;
    this.replication = replication;
    this.returned = returned;
    this.began = performance.now();
    link.progress = (/** @type {string} */ phase) => this.emit(phase);
    // Stock drops every listener when it is complete: its own event is the last chance.
    replication.once('complete', () => this.emit('complete'));
  }

  /** @param {string} phase */
  emit(phase) {
    const { stats } = this.link;
    const seconds = (performance.now() - this.began) / 1000;
    const rate = seconds > 0 ? stats.docsWritten / seconds : 0;
    const total = stats.pending === null ? null : stats.rows + stats.pending;
    const progress = {
      phase,
      docs_written: stats.docsWritten,
      bytes: stats.bytes,
      total,
      pending: stats.pending,
      rate,
      remaining: total === null || rate === 0 ? null : Math.max(0, total - stats.docsWritten) / rate,
    };
    this.replication.emit('progress', progress);
    const { direction } = this.link;
    if (direction) this.returned.emit('progress', { direction, ...progress });
  }
}
