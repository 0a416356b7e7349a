// Who is asking, and whether they may: basic auth, `_session` cookies, and a database's
// `_security`. Without users the server is open and everybody an admin.

import { randomBytes } from 'node:crypto';
import { badRequest, CouchError, forbidden, methodNotAllowed, unauthorized } from './errors.mjs';
import { ADMIN } from './database.mjs';
import { isDatabaseAdmin } from './validate.mjs';

/**
 * @typedef {import('./database.mjs').UserContext} UserContext
 * @typedef {Record<string, string | { password: string, roles?: string[] }>} Users
 *   a bare password makes `admin` an admin and anybody else a user without roles
 */

const TIMEOUT = 600; // s, [chttpd_auth] timeout
const COOKIE = 'AuthSession';
const WRONG = 'Name or password is incorrect.';

export class Auth {
  /** @param {Users | null} users */
  constructor(users) {
    this.users = users;
    /** @type {Map<string, { name: string, expires: number }>} */
    this.sessions = new Map();
  }

  /** @param {string} name @param {string} password @returns {UserContext | null} */
  check(name, password) {
    const user = this.users?.[name];
    if (user === undefined) return null;
    if (typeof user === 'string') return user === password ? { name, roles: name === 'admin' ? ['_admin'] : [] } : null;
    return user.password === password ? { name, roles: user.roles ?? [] } : null;
  }

  /** @param {string} name @returns {UserContext} */
  contextOf(name) {
    const user = this.users?.[name];
    if (typeof user === 'string') return { name, roles: name === 'admin' ? ['_admin'] : [] };
    return { name, roles: user?.roles ?? [] };
  }

  /** Every cookie stops being valid, as after a restart or ten minutes. */
  expireSessions() {
    this.sessions.clear();
  }

  /** @param {import('node:http').IncomingHttpHeaders} headers @returns {UserContext} */
  identify({ authorization, cookie }) {
    if (!this.users) return ADMIN;
    const basic = /^Basic\s+(\S+)$/i.exec(authorization ?? '');
    if (basic) {
      const [, name, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(basic[1], 'base64').toString()) ?? [];
      const user = this.check(name, password);
      if (!user) throw unauthorized(WRONG);
      return user;
    }
    const token = new RegExp(`(?:^|;\\s*)${COOKIE}=([^;\\s]+)`).exec(cookie ?? '')?.[1];
    const session = token && this.sessions.get(token);
    if (session && session.expires > Date.now()) return this.contextOf(session.name);
    return { name: null, roles: [] };
  }

  /**
   * @param {import('./http.mjs').Request} request
   * @returns {import('./http.mjs').Answer}
   */
  session(request) {
    if (request.method === 'POST') return this.login(request);
    if (request.method === 'DELETE') {
      return { status: 200, headers: { 'Set-Cookie': `${COOKIE}=; Version=1; Path=/; HttpOnly` }, body: { ok: true } };
    }
    if (request.method !== 'GET') throw methodNotAllowed('GET,HEAD,POST,DELETE');
    const { name, roles } = request.user;
    const handlers = ['cookie', 'default'];
    return {
      status: 200,
      headers: {},
      body: {
        ok: true,
        userCtx: { name, roles },
        info: { authentication_handlers: handlers, ...(name ? { authenticated: request.headers.authorization ? 'default' : 'cookie' } : {}) },
      },
    };
  }

  /** @param {import('./http.mjs').Request} request */
  login(request) {
    const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded');
    const form = isForm ? Object.fromEntries(new URLSearchParams(request.body.toString())) : request.json();
    const name = form.username ?? form.name;
    if (name === undefined) throw badRequest('request body must contain a username');
    const user = this.check(name, form.password ?? '');
    if (!user) throw new CouchError(401, 'unauthorized', WRONG);
    const token = randomBytes(32).toString('base64url');
    const expires = new Date(Date.now() + TIMEOUT * 1000);
    this.sessions.set(token, { name, expires: expires.getTime() });
    const stamp = expires.toUTCString().replace(/ (\w{3}) (\d{4}) /, '-$1-$2 ');
    const cookie = `${COOKIE}=${token}; Version=1; Expires=${stamp}; Max-Age=${TIMEOUT}; Path=/; HttpOnly`;
    return { status: 200, headers: { 'Set-Cookie': cookie }, body: { ok: true, name, roles: user.roles } };
  }
}

/** @param {UserContext} user */
export function requireServerAdmin(user) {
  if (!user.roles.includes('_admin')) throw unauthorized('You are not a server admin.');
}

/** @param {import('./database.mjs').Database} db @param {UserContext} user */
export function requireMember(db, user) {
  const members = /** @type {{ names?: string[], roles?: string[] }} */ (db.security.members ?? {});
  const isOpen = (members.names ?? []).length === 0 && (members.roles ?? []).length === 0;
  if (isOpen || isDatabaseAdmin(db, user)) return;
  if (user.name !== null && (members.names ?? []).includes(user.name)) return;
  if (user.roles.some((role) => (members.roles ?? []).includes(role))) return;
  if (user.name === null) throw unauthorized('You are not authorized to access this db.');
  throw forbidden('You are not allowed to access this db.');
}

/** @param {import('./database.mjs').Database} db */
export function requireWritable(db) {
  if (db.readOnly) throw forbidden('_writer access is required for this request');
}
