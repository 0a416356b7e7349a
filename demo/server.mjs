// A CouchDB-compatible server in memory, in a process of its own.
//
// Decides how express-pouchdb is set up, and what stands in front of it (here, and couch-routes.mjs) so that a
// replicating client meets what CouchDB would answer. It knows nothing of latency nor of what is stored.
//
// What stays different from CouchDB: seqs are numbers, `seq_interval` is ignored, attachments travel as base64 JSON, and
// it computes on one thread: requests in flight share it, which is what bounds a fast client over a short distance.
import { fork } from 'node:child_process';
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { bulkGet, changes } from './couch-routes.mjs';

const require = createRequire(import.meta.url);
const HERE = fileURLToPath(import.meta.url);

/**
 * @typedef {object} RunningServer
 * @property {string} origin    without credentials, no slash at the end
 * @property {string} url       with credentials, when there are any, and a slash at the end
 * @property {number} port
 * @property {() => Promise<number>} busy  ms of processor time that its process has used so far
 * @property {() => Promise<void>} stop
 */

/**
 * Starts the server in a child process on a free port of 127.0.0.1; it ends with this process at the latest.
 * @param {{user?: string, password?: string}} [options] without a user, everybody is admin
 * @returns {Promise<RunningServer>}
 */
export async function startServer({ user, password } = {}) {
  const child = fork(HERE, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.send({ user, password });
  const port = await new Promise((resolve, reject) => {
    child.once('message', (/** @type {any} */ m) => resolve(m.port));
    child.once('exit', (code) => reject(new Error(`the embedded server ended with code ${code} before it listened`)));
  });
  const origin = `http://127.0.0.1:${port}`;
  const login = user ? `${encodeURIComponent(user)}:${encodeURIComponent(password ?? '')}@` : '';
  return {
    origin, port, url: `http://${login}127.0.0.1:${port}/`,
    async busy() {
      child.send({ busy: true });
      const [{ busy }] = await once(child, 'message');
      return busy;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    },
  };
}

/**
 * Listens in this process.
 * @param {{user?: string, password?: string, port?: number}} [options]
 * @returns {Promise<import('node:http').Server>}
 */
export async function listen({ user, password, port = 0 } = {}) {
  const express = require('express');
  const Pouch = require('pouchdb').plugin(require('pouchdb-adapter-memory')).defaults({ adapter: 'memory' });
  const app = express();
  app.disable('x-powered-by');
  app.use(cors);
  if (user) app.use(basicAuth(user, password ?? ''));
  app.get('/_up', (_req, res) => res.json({ status: 'ok', seeds: {} }));

  const couch = require('express-pouchdb')(Pouch, {
    mode: 'minimumForPouchDB',
    // Compression costs both sides more than it saves, and CouchDB does not compress JSON either.
    overrideMode: { include: ['config-infrastructure', 'logging-infrastructure', 'validation'], exclude: ['compression'] },
    inMemoryConfig: true,
    logPath: os.devNull,
  });
  couch.set('etag', false); // hashing every answer; nobody revalidates
  app.get('/', welcome(couch));
  const json = express.json({ limit: '256mb' });
  app.all('/:db/_changes', changes(Pouch, json));
  app.post('/:db/_bulk_get', bulkGet(Pouch, json));
  app.use(couch);

  const server = app.listen(port, '127.0.0.1');
  server.keepAliveTimeout = 65_000; // Node's 5 s would close connections between two polls of a live replication
  await once(server, 'listening');
  return server;
}

/** As CouchDB does with `enable_cors`, `origins = *` and credentials on. */
function cors(/** @type {any} */ req, /** @type {any} */ res, /** @type {() => void} */ next) {
  res.setHeader('Cache-Control', 'must-revalidate');
  const origin = req.headers.origin;
  if (origin) {
    res.setHeader('Access-Control-Allow-Origin', origin);
    res.setHeader('Access-Control-Allow-Credentials', 'true');
    res.setHeader('Access-Control-Expose-Headers', 'content-type, cache-control, accept-ranges, etag, server, x-couch-request-id');
    res.setHeader('Vary', 'Origin');
  }
  if (req.method !== 'OPTIONS' || !origin) return next();
  // CouchDB lists headers by name, so a client that sends an unusual one fails here as it would there.
  res.setHeader('Access-Control-Allow-Headers', 'accept, authorization, content-type, origin, referer');
  res.setHeader('Access-Control-Allow-Methods', 'GET, PUT, POST, HEAD, DELETE');
  res.setHeader('Access-Control-Max-Age', '600');
  res.status(204).end();
}

/** @param {string} user @param {string} password @returns {import('express').RequestHandler} */
function basicAuth(user, password) {
  const digest = (/** @type {string} */ text) => new Uint8Array(createHash('sha256').update(text).digest());
  const wanted = digest(`${user}:${password}`);
  return (req, res, next) => {
    const [scheme, value] = (req.headers.authorization ?? '').split(' ');
    const given = scheme.toLowerCase() === 'basic' ? Buffer.from(value ?? '', 'base64').toString() : '';
    if (req.path === '/_up' || timingSafeEqual(digest(given), wanted)) return next();
    const reason = given ? 'Name or password is incorrect.' : 'You are not authorized to access this db.';
    res.status(401).json({ error: 'unauthorized', reason });
  };
}

/** Clients look for `couchdb` here before they use what only CouchDB understands. */
function welcome(/** @type {any} */ couch) {
  const uuid = createHash('md5').update(String(process.pid) + Date.now()).digest('hex');
  const { version } = require('express-pouchdb/package.json');
  return (/** @type {any} */ _req, /** @type {any} */ res) => res.json({
    couchdb: 'Welcome', version: '3.5.0', uuid, features: [],
    vendor: { name: `express-pouchdb ${version}, ${couch.opts.mode}` },
  });
}

if (process.argv[1] === HERE) {
  if (process.send) {
    process.once('disconnect', () => process.exit(0));
    process.on('SIGINT', () => {}); // meant for the parent, which may have things to put in order first
    const [options] = await once(process, 'message');
    const server = await listen(options);
    process.on('message', () => {
      const { user, system } = process.cpuUsage();
      process.send?.({ busy: (user + system) / 1000 });
    });
    process.send({ port: /** @type {import('node:net').AddressInfo} */ (server.address()).port });
  } else {
    const server = await listen({ port: Number(process.argv[2] ?? 0) });
    console.log(`http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/`);
  }
}
