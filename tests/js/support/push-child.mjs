// A program of its own, for the memory that it takes. Called with a database's folder and `fill`
// and the bytes of each attachment and their count, or `stock` or `fast` and the URL to push to;
// tells the most memory that it had.

import fastSync from '../../../dist/index.js';
import { freshPouch } from './pouches.mjs';

const [, , folder, what, a, b] = process.argv;
const PouchDB = freshPouch();
if (what === 'fast') PouchDB.plugin(fastSync);
const db = new PouchDB(folder);
if (what === 'fill') {
  const binary = (/** @type {number} */ at) => ({ content_type: 'application/octet-stream', data: Buffer.alloc(Number(a), at + 1) });
  await db.put({ _id: 'large', _attachments: Object.fromEntries(Array.from({ length: Number(b) }, (_, at) => [`${at}.bin`, binary(at)])) });
} else {
  const before = process.resourceUsage().maxRSS * 1024;
  const { docs_written: written } = await db.replicate.to(a);
  console.log(JSON.stringify({ written, before, peak: process.resourceUsage().maxRSS * 1024 }));
}
await db.close();
