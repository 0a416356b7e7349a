// Distance: a TCP proxy on 127.0.0.1 that makes a server look as far away as one wants, in a process of its own.
//
// Decides when bytes go on: half the round trip later in each direction, every chunk with its own due time, so that the
// delay costs no throughput. A new connection costs one round trip more, as its handshake would. On the way it counts
// connections, bytes and HTTP/1.1 requests (http-count.mjs), preflights among them, which a browser does not show its page.
// It changes nothing in what passes, and knows no TLS: what it fronts must be plain http.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { RequestCounter } from './http-count.mjs';

const HERE = fileURLToPath(import.meta.url);
/** A side is not read from while this many of its bytes are on their way. */
const ON_THE_WAY_MAX = 64 * 1024 * 1024;
/** Timers of Node have a grain of 1 ms: what is due within half of it goes now, which is right on average. */
const GRAIN_MS = 0.5;

/**
 * @typedef {{connections: number, bytesUp: number, bytesDown: number, requests: number, preflights: number, byPath: Record<string, number>}} Counters
 * @typedef {object} Distance
 * @property {number} port
 * @property {(rtt: number) => void} setRtt      in ms, for what is sent from now on
 * @property {() => Promise<Counters>} counters  since the last reset
 * @property {() => void} reset
 * @property {() => Promise<void>} stop
 */

/**
 * @param {{host?: string, port: number, rtt?: number}} target
 * @returns {Promise<Distance>}
 */
export async function startDelay({ host = '127.0.0.1', port, rtt = 0 }) {
  const child = fork(HERE, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.send({ host, port, rtt });
  const [{ port: own }] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the delay proxy could not be started'))),
  ]);
  return {
    port: own,
    setRtt: (ms) => void child.send({ rtt: ms }),
    reset: () => void child.send({ reset: true }),
    async counters() {
      child.send({ count: true });
      const [{ counters }] = await once(child, 'message');
      return counters;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    },
  };
}

/** @typedef {{kind: 'data', chunk: any, due: number} | {kind: 'end' | 'reset', due: number}} OnTheWay */

/**
 * One direction. Order is kept even when the distance shrinks; ends and resets travel as bytes do.
 * @param {net.Socket} from @param {net.Socket} to
 * @param {() => number} due when something read now shall arrive
 */
function carry(from, to, due) {
  /** @type {OnTheWay[]} */
  const queue = [];
  let bytes = 0, last = 0, waiting = false, blocked = false;

  const deliver = () => {
    waiting = false;
    while (queue.length) {
      const next = queue[0];
      if (blocked && next.kind !== 'reset') return;
      const left = next.due - performance.now();
      if (left > GRAIN_MS) {
        waiting = true;
        setTimeout(deliver, left);
        return;
      }
      queue.shift();
      if (to.destroyed) continue;
      if (next.kind === 'data') {
        bytes -= next.chunk.length;
        if (bytes < ON_THE_WAY_MAX / 2) from.resume();
        blocked = to.writable && !to.write(next.chunk);
      } else if (next.kind === 'end') {
        to.end();
      } else {
        to.resetAndDestroy();
      }
    }
  };
  const put = (/** @type {any} */ item) => {
    last = Math.max(last, due());
    queue.push({ ...item, due: last });
    if (!waiting) deliver();
  };
  let reset = false;
  const abort = () => {
    if (!reset) put({ kind: 'reset' });
    reset = true;
  };
  from.on('data', (chunk) => {
    bytes += chunk.length;
    if (bytes > ON_THE_WAY_MAX) from.pause();
    put({ kind: 'data', chunk });
  });
  from.on('end', () => put({ kind: 'end' }));
  from.on('error', abort);
  from.on('close', () => { if (!from.readableEnded) abort(); });
  to.on('drain', () => {
    blocked = false;
    if (!waiting) deliver();
  });
}

function serve(/** @type {{host: string, port: number, rtt: number}} */ { host, port, rtt }) {
  let counter = new RequestCounter();
  let counters = { connections: 0, bytesUp: 0, bytesDown: 0 };
  process.on('message', (/** @type {any} */ message) => {
    if ('rtt' in message) rtt = message.rtt;
    if (message.count) process.send?.({ counters: { ...counters, ...counter.result() } });
    if (message.reset) {
      counter = new RequestCounter();
      counters = { connections: 0, bytesUp: 0, bytesDown: 0 };
    }
  });
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const shaken = performance.now() + rtt; // before this, no byte of the client's can have left it
    const target = net.connect({ host, port, allowHalfOpen: true }).setNoDelay();
    counters.connections++;
    // A connection may outlive a reset, so its parser reports to whatever counts now.
    const parse = RequestCounter.parser((method, path) => counter.add(method, path));
    client.on('data', (chunk) => { counters.bytesUp += chunk.length; parse(chunk); });
    target.on('data', (chunk) => { counters.bytesDown += chunk.length; });
    carry(client, target, () => Math.max(performance.now(), shaken) + rtt / 2);
    carry(target, client, () => Math.max(performance.now() + rtt / 2, shaken));
  });
  server.listen(0, '127.0.0.1', 1024, () => process.send?.({ port: /** @type {net.AddressInfo} */ (server.address()).port }));
}

if (process.argv[1] === HERE) {
  process.once('disconnect', () => process.exit(0));
  process.on('SIGINT', () => {}); // meant for the parent, which may have things to put in order first
  const [options] = await once(process, 'message');
  serve(options);
}
