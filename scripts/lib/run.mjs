// How the scripts start other programs and speak to the person who ran them.
// Only Node's own modules: this runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** A failure whose message is all that a person needs: printed without a stack. */
export class Told extends Error {}

/**
 * A line that stands out.
 * @param {string} text
 */
export function say(text) {
  console.log(process.stdout.isTTY ? `\u001b[1m${text}\u001b[0m` : text);
}

/**
 * What a program prints on stdout, or null when it is missing or fails.
 * @param {string} command
 * @param {string[]} args
 */
export function output(command, args) {
  const run = spawnSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return run.status === 0 ? run.stdout.trim() : null;
}

/**
 * Runs a program with its output shown; resolves to its exit code.
 * @param {string} command
 * @param {string[]} args
 * @param {Record<string, string>} [env] added to the environment
 * @returns {Promise<number>}
 */
export function exitCode(command, args, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
    child.on('error', reject);
    // A program ended by a signal has no code; it failed all the same.
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/**
 * Runs a program that must succeed.
 * @param {string} command
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 */
export async function run(command, args, env) {
  const code = await exitCode(command, args, env);
  if (code !== 0) throw new Told(`failed with ${code}: ${command} ${args.join(' ')}`);
}

/**
 * The frame of every script: failures that were explained end without a stack.
 * @param {() => Promise<number | void>} main resolves to the exit code
 */
export async function script(main) {
  try {
    process.exitCode = Number((await main()) ?? 0);
  } catch (error) {
    // An unknown argument is explained by its message.
    const isTold = error instanceof Told || /^ERR_PARSE_ARGS/.test(/** @type {any} */ (error).code);
    console.error(isTold ? `\n${/** @type {Error} */ (error).message}` : error);
    process.exitCode = 1;
  }
}
