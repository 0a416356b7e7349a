// One bare HTTP exchange on a connection of its own: no client's defaults, decoding or reuse
// between a test and what a server said.

import { Agent, request as httpRequest } from 'node:http';
import { concat } from './bytes.mjs';

/**
 * @param {string} base
 * @param {any} request
 * @returns {Promise<{ status: number, headers: Record<string, any>, body: Buffer }>}
 */
export function exchange(base, { method, path, headers, body, bodyBase64 }) {
  const bytes = bodyBase64 ? Buffer.from(bodyBase64, 'base64') : Buffer.from(body ?? '');
  // Kept alive for the server's eyes, so that it does not announce that it closes; then dropped.
  const agent = new Agent({ keepAlive: true });
  return /** @type {Promise<any>} */ (new Promise((resolve, reject) => {
    const req = httpRequest(base + path, {
      agent, method, headers: { ...headers, ...(bytes.length > 0 ? { 'content-length': bytes.length } : {}) },
    }, (res) => {
      /** @type {Buffer[]} */
      const chunks = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: concat(chunks) }));
      res.on('error', reject);
    });
    req.on('error', reject);
    req.end(bytes);
  })).finally(() => agent.destroy());
}
