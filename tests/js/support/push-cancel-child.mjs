// A program of its own: a push that is ended, with nothing to end the process by force. Called
// with the database's URL and how it ends.

import fastSync from '../../../dist/index.js';
import { freshPouch } from './pouches.mjs';
import { notes } from './scene.mjs';

const [, , url, how] = process.argv;
const PouchDB = freshPouch().plugin(fastSync);
const db = new PouchDB('child', { adapter: 'memory' });
await db.bulkDocs(notes(300));
const replication = how === 'sync' ? db.sync(url, { live: true, retry: true }) : db.replicate.to(url);
if (how !== 'complete') setTimeout(() => replication.cancel(), 500);
const result = await replication.then((/** @type {any} */ done) => done.status ?? done.push.status, () => 'error');
console.log(JSON.stringify({ result, settledAfter: performance.now() }));
