// A probe for Node.js: creates units of concurrency for contend to measure. README.md describes the protocol.
//
//     node --expose-gc --max-semi-space-size=1 node.js timer
//
// Without --expose-gc, the probe cannot collect garbage when the protocol demands it: BYTES is then `-`, and the
// memory of the process is not meaningful. The other option limits each half of the young generation to 1 MiB, because
// its pages are touched only gradually.
'use strict';

const { performance } = require('perf_hooks');
const readline = require('readline');

// The units of one park.
let total = 0; // number of units to create
let waiting = 0; // number of units that wait
let ended = 0; // number of units that have ended
let resolvers = []; // of the promises that units wait for: nothing else would keep these promises alive
let haveEnded = null; // what the last unit that ends calls, once `wake` waits for it

function end() {
  if (++ended === total && haveEnded) haveEnded();
}

// Returns the milliseconds until `due`, rounded up since timers count whole ones. All units of a park are due at the
// same time, regardless of how long their creation takes.
const until = (due) => Math.ceil(due - performance.now());
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function sleeper(due) {
  waiting++;
  await sleep(until(due));
  end();
}

// The kinds of units, by name. To add one, add an entry.
//   prepare(n)     allocates what only the probe needs for n units; may be missing
//   start(due, i)  creates unit i, which ends at `due` if it has a timer, and counts it in `waiting`
//   count()        number of waiting units by the runtime's own count, which replaces `waiting`; may be missing
//   wake()         lets all units end; missing if their timers end them
//   trips(m)       exchanges m messages with one unit, and returns the answer after `trips `
const kinds = {
  timer: {
    start(due) {
      setTimeout(end, until(due));
      waiting++;
    },
    // `getActiveResourcesInfo` exists from Node 16.14 and 17.3 on.
    count: process.getActiveResourcesInfo && (() => {
      let timers = 0;
      for (const resource of process.getActiveResourcesInfo()) if (resource === 'Timeout') timers++;
      return timers;
    }),
    trips: () => 'none a timer only fires, it takes no message',
  },
  promise: {
    prepare(n) {
      resolvers = new Array(n);
    },
    start(due, i) {
      new Promise((resolve) => { resolvers[i] = resolve; }).then(end);
      waiting++;
    },
    wake() {
      for (const resolve of resolvers) resolve();
    },
    trips: exchangeByThen,
  },
  async: {
    start: sleeper,
    trips: exchangeByAwait,
  },
};

const nanoseconds = (began) => Math.round((performance.now() - began) * 1e6);

function used() {
  if (!global.gc) return '-';
  global.gc();
  return process.memoryUsage().heapUsed;
}

function park(kind, n, hold) {
  const due = performance.now() + hold;
  total = n;
  waiting = ended = 0;
  haveEnded = null;
  if (kind.prepare) kind.prepare(n);
  const began = performance.now();
  for (let i = 0; i < n; i++) kind.start(due, i);
  const took = nanoseconds(began);
  if (kind.count) waiting = kind.count();
  return `parked ${waiting} ${took} ${used()}`;
}

async function wake(kind) {
  const began = performance.now();
  const early = ended;
  if (kind.wake) kind.wake();
  if (ended < total) await new Promise((resolve) => { haveEnded = resolve; });
  return `woken ${early} ${ended} ${nanoseconds(began)}`;
}

function rest() {
  resolvers = [];
  return `rested ${used()}`;
}

// A slot for one message: one side calls `take()`, then the other calls `give(message)`, which resolves the promise of
// the first.
class Slot {
  take() {
    return new Promise((resolve) => { this.give = resolve; });
  }
}

const wrong = (message, answer) => `none message ${message} was answered by ${answer}`;

// Exchanges m messages with an async function.
async function exchangeByAwait(m) {
  const there = new Slot();
  const back = new Slot();
  (async () => {
    for (let i = 0; i < m; i++) {
      const message = await there.take();
      back.give(message);
    }
  })();
  const began = performance.now();
  for (let i = 0; i < m; i++) {
    const answer = back.take();
    there.give(i);
    const answered = await answer;
    if (answered !== i) return wrong(i, answered);
  }
  return `${m} ${nanoseconds(began)}`;
}

// Exchanges m messages with a callback of promises.
function exchangeByThen(m) {
  const there = new Slot();
  const back = new Slot();
  return new Promise((resolve) => {
    let i = 0;
    const echo = (message) => {
      there.take().then(echo);
      back.give(message);
    };
    const ask = () => {
      back.take().then(next);
      there.give(i);
    };
    const next = (answer) => {
      if (answer !== i) resolve(wrong(i, answer));
      else if (++i === m) resolve(`${m} ${nanoseconds(began)}`);
      else ask();
    };
    there.take().then(echo);
    const began = performance.now();
    ask();
  });
}

async function answer(kind, command) {
  const [word, ...numbers] = command.split(' ');
  switch (word) {
    case 'park': return park(kind, ...numbers.map(Number));
    case 'wake': return wake(kind);
    case 'rest': return rest();
    case 'trips': return `trips ${await kind.trips(Number(numbers[0]))}`;
    default: throw new Error(`no such command: ${command}`);
  }
}

async function main() {
  const kind = kinds[process.argv[2]];
  if (!kind) throw new Error(`no such kind of unit: ${process.argv[2]}`);
  park(kind, 100, 1);
  await wake(kind);
  rest();
  console.log(`ready Node ${process.versions.node}`);
  // Commands are read as events, so that timers also fire while no command arrives.
  for await (const command of readline.createInterface({ input: process.stdin })) {
    console.log(await answer(kind, command));
  }
}

main().then(
  () => process.exit(0), // does not wait for timers
  (why) => {
    console.error(why.message);
    process.exit(1);
  },
);
