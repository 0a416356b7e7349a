// Counts what this process sends over HTTP and gets back, whoever sends it: node:http (stock PouchDB's client) and the
// global fetch (the plugin's). Decides nothing; listens on Node's diagnostics channels, which cost the run nothing to speak
// of and work for https and for servers far away, where no proxy can stand in between.
import { subscribe } from 'node:diagnostics_channel';

/** @returns {() => {requests: number, bytes: number, connections: number}} what was counted so far; bytes of both directions */
export function countWire() {
  let requests = 0, connections = 0, closedBytes = 0;
  /** @type {Set<import('node:net').Socket>} */
  const open = new Set();
  const watch = (/** @type {import('node:net').Socket} */ socket) => {
    if (open.has(socket)) return; // kept alive and used again
    open.add(socket);
    connections++;
    socket.once('close', () => {
      closedBytes += socket.bytesRead + socket.bytesWritten;
      open.delete(socket);
    });
  };
  subscribe('http.client.request.start', (/** @type {any} */ { request }) => {
    requests++;
    if (request.socket) watch(request.socket); else request.once('socket', watch);
  });
  subscribe('undici:request:create', () => { requests++; });
  subscribe('undici:client:connected', (/** @type {any} */ { socket }) => watch(socket));
  return () => ({
    requests, connections,
    bytes: closedBytes + [...open].reduce((sum, socket) => sum + socket.bytesRead + socket.bytesWritten, 0),
  });
}
