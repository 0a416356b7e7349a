// The page: what the buttons do.
import { BusyError, Cancelled, race } from './race.js';
import { Mistake } from './look.js';
import { setUpForm, showMistake, task } from './settings.js';
import { Stage } from './stage.js';

/** @type {any} */
const byId = (/** @type {string} */ id) => document.getElementById(id);
const stage = new Stage();
/** @type {AbortController | undefined} */
let running;

setUpForm();
stage.say('Ready: press “Run both”.');
byId('form').addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  if (!running) run();
});
byId('cancel').addEventListener('click', () => running?.abort());

async function run() {
  const { signal } = (running = new AbortController());
  showMistake(undefined);
  busy(true);
  /** @type {Mistake | undefined} */
  let mistake;
  try {
    stage.say('Looking at the database.');
    const asked = await task(signal);
    stage.clear(asked.total);
    await show(asked, signal);
  } catch (error) {
    if (signal.aborted || error instanceof Cancelled) {
      stage.cancelled();
      stage.say('Cancelled. Both databases in this browser are deleted.');
    } else if (error instanceof BusyError) {
      stage.say('Another tab of this page is at it. Wait until it is done.');
    } else if (error instanceof Mistake) {
      stage.say('Nothing was synced.');
      mistake = error;
    } else {
      throw error;
    }
  } finally {
    running = undefined;
    busy(false);
    showMistake(mistake);
  }
}

/** @param {import('./settings.js').Task} asked @param {AbortSignal} signal */
async function show(asked, signal) {
  const listener = {
    started: stage.started.bind(stage), progress: stage.progress.bind(stage), requests: stage.requests.bind(stage),
    failed: stage.failed.bind(stage), comparing: stage.comparing.bind(stage),
    /** @param {import('./race.js').Who} who @param {import('./race.js').Outcome} outcome */
    synced(who, outcome) {
      stage.synced(who, outcome);
      if (who === 'fast') stage.say('Both are done. Comparing the two databases, revision by revision.');
    },
  };
  /** @type {unknown} */
  let ended;
  const comparison = await race(asked, listener, signal).catch((error) => { ended = error; return undefined; });
  const { stock, fast } = stage.seen;
  const complete = stock.outcome && fast.outcome;
  // What was measured is shown, even when the comparison was cancelled.
  if (ended && !(complete && ended instanceof Cancelled)) throw ended;
  if (!complete) return;
  const differ = Boolean(comparison?.differences.length);
  const changed = differ && await asked.changed().catch(() => false);
  stage.result(comparison, { preflights: await asked.preflights?.(), changed });
  stage.say(!comparison ? 'The comparison was cancelled.' : differ ? 'Done: the databases differ.' : 'Done: both databases are equal.');
}

/** @param {boolean} is */
function busy(is) {
  const hadFocus = document.activeElement === byId(is ? 'run' : 'cancel') || document.activeElement === document.body;
  byId('settings').disabled = is;
  byId('run').disabled = is;
  byId('cancel').disabled = !is;
  if (hadFocus) byId(is ? 'cancel' : 'run').focus({ preventScroll: true });
}
