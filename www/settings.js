// The form: what is to be synced, and how.
//
// Decides which of its fields are shown: those of the embedded server exist only where one stands behind the page, of which
// a block of JSON in the page tells (serve.mjs). Nothing that is typed is kept anywhere but in the fields.
import { lookAt, Mistake, parse } from './look.js';
import { count, distance } from './words.js';

/** @typedef {{source: 'embedded' | 'own', total: number, sync: import('./race.js').Job['sync'], changed: () => Promise<boolean>, preflights?: () => Promise<Record<import('./race.js').Who, number>>}} Task */

/** @type {any} */
const byId = (/** @type {string} */ id) => document.getElementById(id);
/** @type {import('./serve.mjs').Embedded | undefined} */
const embedded = JSON.parse(byId('embedded')?.textContent ?? 'null') ?? undefined;

export function setUpForm() {
  if (embedded) {
    byId('sources').hidden = false;
    byId('corpus').textContent = `${count(embedded.notes)} notes, some of them edited, deleted or in conflict, in a CouchDB-compatible server on this machine. It takes longer to answer than CouchDB would.`;
    byId('attachments-count').textContent = `(${count(embedded.attachments)} of the notes have one)`;
    Object.assign(byId('rtt'), { max: embedded.rttMax, value: embedded.rtt });
    byId('rtt').addEventListener('input', showDistance);
    showDistance();
    for (const radio of radios()) {
      radio.checked = radio.value === 'embedded';
      radio.addEventListener('change', showSource);
    }
  }
  showSource();
  byId('url').addEventListener('change', takeLoginOutOfUrl);
  byId('form').addEventListener('input', () => showMistake(undefined));
}

/**
 * What the form asks for, once the database has been looked at.
 * @param {AbortSignal} signal
 * @returns {Promise<Task>}
 * @throws {Mistake}
 */
export async function task(signal) {
  const own = { batchSize: batchSize(), concurrency: Number(byId('concurrency').value) || undefined };
  return source() === 'embedded' ? taskOfEmbedded(own, signal) : taskOfOwn(own, signal);
}

/** @param {Mistake | undefined} mistake */
export function showMistake(mistake) {
  byId('problem').hidden = !mistake;
  byId('problem').textContent = mistake?.message ?? '';
  for (const input of byId('form').querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid');
  if (!mistake) return;
  const field = byId(mistake.field);
  field.setAttribute('aria-invalid', 'true');
  const folded = field.closest('details');
  if (folded) folded.open = true;
  field.focus();
}

/** @param {{batchSize?: number, concurrency?: number}} own @param {AbortSignal} signal @returns {Promise<Task>} */
async function taskOfEmbedded(own, signal) {
  const server = /** @type {import('./serve.mjs').Embedded} */ (embedded);
  const name = byId('attachments').checked ? server.withAttachments : server.plain;
  const [stock, fast] = [`${server.stock}/${name}`, `${server.fast}/${name}`];
  try {
    const response = await fetch('distance', { method: 'PUT', body: JSON.stringify({ rtt: Number(byId('rtt').value) }), signal });
    if (!response.ok) throw new Error(String(response.status));
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Mistake('The program behind this page has ended. Start it again: npm run www', 'rtt');
  }
  return {
    source: 'embedded', total: server.leaves,
    sync: { stock: { url: stock, ...own }, fast: { url: fast, ...own } },
    changed: async () => false,
    preflights: async () => (await fetch('preflights')).json(),
  };
}

/** @param {{batchSize?: number, concurrency?: number}} own @param {AbortSignal} signal @returns {Promise<Task>} */
async function taskOfOwn(own, signal) {
  takeLoginOutOfUrl();
  const { url } = parse(byId('url').value.trim());
  const auth = byId('user').value ? { username: byId('user').value, password: byId('password').value } : undefined;
  const { docs, updateSeq } = await lookAt(url, auth, signal);
  const sync = { url, auth, ...own };
  return {
    source: 'own', total: docs, sync: { stock: sync, fast: sync },
    changed: async () => (await lookAt(url, auth, signal)).updateSeq !== updateSeq,
  };
}

/** A password does not stay where it can be read. */
function takeLoginOutOfUrl() {
  try {
    const { url, auth } = parse(byId('url').value.trim());
    if (!auth) return;
    byId('url').value = url;
    byId('user').value = auth.username;
    byId('password').value = auth.password;
  } catch {
    // It is looked at again, and told about, when it is used.
  }
}

function batchSize() {
  const { value, validity } = byId('batch');
  const size = Number(value);
  if (validity.badInput || (value && !(Number.isInteger(size) && size >= 1 && size <= 10_000))) {
    throw new Mistake('The batch size is a whole number from 1 to 10,000, or empty.', 'batch');
  }
  return size || undefined;
}

function showSource() {
  byId('embedded-fields').hidden = source() !== 'embedded';
  byId('own-fields').hidden = source() !== 'own';
  showMistake(undefined);
}

function showDistance() {
  const rtt = Number(byId('rtt').value);
  byId('rtt-value').textContent = `${rtt} ms`;
  byId('rtt-words').textContent = `A round trip takes ${rtt} ms: ${distance(rtt)}.`;
  byId('rtt').setAttribute('aria-valuetext', `${rtt} ms, ${distance(rtt)}`);
}

/** @returns {'embedded' | 'own'} */
function source() {
  return embedded && radios().find(({ checked }) => checked)?.value === 'embedded' ? 'embedded' : 'own';
}

/** @returns {HTMLInputElement[]} */
function radios() {
  return [...document.querySelectorAll('input[name=source]')].map((input) => /** @type {HTMLInputElement} */ (input));
}
