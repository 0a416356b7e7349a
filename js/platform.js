// What the platform is, where that makes a difference. No built-in module of
// Node is named, so that bundlers add nothing.

/** @type {any} */
const { process, Buffer, document } = globalThis;

/** PouchDB's Node build is at work, whose fetch keeps cookies of its own. */
export const inNode = Boolean(process?.versions?.node) && !process.browser && !document;

/** On a page, whose thread also draws and takes what a person types. */
export const inMainThread = typeof document === 'object';

/** @type {((url: URL) => any) | undefined} */
let agent;

/**
 * Node's agents, which keep connections open; unused ones keep no process
 * running. Not in Nodes that do not hand out their modules this way.
 * @returns {((url: URL) => any) | undefined} by the protocol, as node-fetch wants it
 */
export function keepAlive() {
  const http = inNode && process.getBuiltinModule?.('http');
  if (!http) return undefined;
  if (!agent) {
    const plain = failing(new http.Agent({ keepAlive: true }));
    const secure = failing(new (process.getBuiltinModule('https').Agent)({ keepAlive: true }));
    agent = ({ protocol }) => (protocol === 'https:' ? secure : plain);
  }
  return agent;
}

/**
 * One signal ends all requests of a replication; Node takes more than ten
 * listeners for a leak.
 * @param {AbortSignal} signal
 */
export function unlimited(signal) {
  if (inNode) process.getBuiltinModule?.('events').setMaxListeners(0, signal);
}

/**
 * node-fetch pipes an answer through other streams, and a pipe passes no failure
 * on: its reader would wait for ever for what a lost connection was to bring.
 * @param {any} agent
 */
function failing(agent) {
  const { addRequest } = agent;
  agent.addRequest = (/** @type {any} */ request, /** @type {any[]} */ ...rest) => {
    request.once('response', passOn);
    return addRequest.call(agent, request, ...rest);
  };
  return agent;
}

/** @param {any} stream whose failures those that it is piped into shall see */
function passOn(stream) {
  const { pipe } = stream;
  stream.pipe = (/** @type {any} */ to, /** @type {any[]} */ ...rest) => {
    stream.once('error', (/** @type {any} */ error) => to.destroy(error));
    passOn(to);
    return pipe.call(stream, to, ...rest);
  };
}

/**
 * A module of Node's own, where Node hands them out this way.
 * @param {string} name
 * @returns {any}
 */
export function builtin(name) {
  return inNode ? process.getBuiltinModule?.(name) : undefined;
}

/**
 * Runs after everything that waits now, timers' throttling apart: browsers slow
 * down `setTimeout` in tabs that are not looked at.
 * @param {() => void} call
 */
export function macrotask(call) {
  const { setImmediate, MessageChannel } = /** @type {any} */ (globalThis);
  if (setImmediate) {
    setImmediate(call);
    return;
  }
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    channel.port1.close();
    call();
  };
  channel.port2.postMessage(null);
}

/** What follows is a task of its own, so that a page gets to what waits. */
export async function breathe() {
  if (inMainThread) await new Promise((resolve) => macrotask(() => resolve(undefined)));
}

/**
 * Room for bytes that come in pieces, where adapters want them in one.
 * @param {number} length
 * @returns {Uint8Array<ArrayBuffer> | undefined}
 */
export function allocate(length) {
  return inNode ? Buffer.allocUnsafe(length) : undefined;
}

/**
 * Attachment bytes as the adapter wants them: a Buffer in Node's, a Blob in a
 * browser's.
 * @param {any[]} pieces bytes; in browsers Blobs too. In Node, one Buffer is kept as it is.
 * @param {string} type
 */
export function binary(pieces, type) {
  if (inNode) return Object.assign(pieces.length === 1 && Buffer.isBuffer(pieces[0]) ? pieces[0] : Buffer.concat(pieces), { type });
  return new Blob(pieces, { type });
}

/**
 * @param {any} data a Buffer or other bytes, or a Blob
 * @returns {Promise<string>}
 */
export async function base64(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(await data.arrayBuffer());
  if (inNode) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  let text = '';
  // As many arguments as every engine takes.
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}

/**
 * Bytes one after the other, without a copy of them all: as Node's stream, where
 * Node hands out its modules.
 * @param {Uint8Array<ArrayBuffer>[]} pieces
 */
export function stream(pieces) {
  const { Readable } = process.getBuiltinModule('stream');
  return Readable.from(pieces, { objectMode: false });
}
