// A program of its own: a replication that is ended, with nothing to end the process by force.
// Called with the database's URL and the stage at which to cancel.

import fastSync from '../../../dist/index.js';
import { freshPouch } from './pouches.mjs';
import { until } from './observe.mjs';

const [, , url, stage] = process.argv;
const PouchDB = freshPouch().plugin(fastSync);
const db = new PouchDB('child', { adapter: 'memory' });
const replication = db.replicate.from(url, stage === 'live' ? { live: true, retry: true } : {});
if (stage === 'live') until(replication, 'paused').then(() => replication.cancel());
if (stage === 'documents') setTimeout(() => replication.cancel(), 500);
const result = await replication.then((/** @type {any} */ done) => done.status, () => 'error');
console.log(JSON.stringify({ result, settledAfter: performance.now() }));
