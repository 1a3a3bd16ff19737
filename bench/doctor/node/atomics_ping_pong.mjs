// Fault: a producer and a consumer hand over single values through one slot. After microseconds of
// work each of them waits for the other one, so never more than one runs.
//
// fixed: the slots hold batches of values, and there are two of them. The threads rarely wait.
// twin: a client sends a request and waits for the answer, but it thinks between the requests. The
// pace is the client's own; a faster hand-over gains nothing.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const LIMIT_MS = 30_000;
const VALUES = 180_000;
const ROUNDS = 3_000;
const BATCH_VALUES = 1_000;
const BATCH_SLOTS = 2;
const TWIN_TIME_MS = 4_000;
const THINK_MS = 12;
const ANSWER_ROUNDS = 300_000;
const PRODUCED = 0;
const CONSUMED = 1;

// Returns a linear congruential generator.
function numbers(seed) {
  let state = (seed + 1) * 2654435 >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 8;
  };
}

// Returns a number that differs from base by up to percent.
function vary(next, base, percent) {
  const span = Math.floor(base * percent / 100);
  return base - span + next() % (2 * span + 1);
}

// Mixes the bits of a number; this is the work.
function mix(value, rounds) {
  for (let round = 0; round < rounds; round++) {
    value = (Math.imul(value, 1103515245) + 12345) | 0;
    value ^= value >>> 7;
  }
  return value;
}

// Waits until a counter reaches a number.
function waitFor(counters, index, number) {
  for (let seen; (seen = Atomics.load(counters, index)) < number;) {
    Atomics.wait(counters, index, seen);
  }
}

// Sets a counter and wakes the thread that waits for it.
function advance(counters, index, number) {
  Atomics.store(counters, index, number);
  Atomics.notify(counters, index);
}

// Computes values and fills one slot after the other.
function produce({ counters, data, values, rounds, batch, slots }) {
  for (let turn = 0; turn * batch < values; turn++) {
    waitFor(counters, CONSUMED, turn - slots + 1);
    const start = (turn % slots) * batch;
    for (let place = 0; place < batch; place++) {
      data[start + place] = mix(turn * batch + place, rounds);
    }
    advance(counters, PRODUCED, turn + 1);
  }
}

// Empties one slot after the other and combines the values.
function consume({ counters, data, values, rounds, batch, slots }) {
  let sum = 0;
  for (let turn = 0; turn * batch < values; turn++) {
    waitFor(counters, PRODUCED, turn + 1);
    const start = (turn % slots) * batch;
    for (let place = 0; place < batch; place++) sum = mix(sum ^ data[start + place], rounds);
    advance(counters, CONSUMED, turn + 1);
  }
  parentPort.postMessage(sum >>> 0);
}

// Sends requests to the server, waits for the answers and thinks.
function request({ counters, data, requests, thinkMs }) {
  let left = requests;
  let turn = 0;
  const ask = () => {
    advance(counters, PRODUCED, ++turn);
    waitFor(counters, CONSUMED, turn);
    if (--left > 0) setTimeout(ask, thinkMs);
    else parentPort.postMessage(data[0] >>> 0);
  };
  ask();
}

// Answers the requests of the client.
function serve({ counters, data, requests }) {
  for (let turn = 1; turn <= requests; turn++) {
    waitFor(counters, PRODUCED, turn);
    data[0] = mix(data[0] ^ turn, ANSWER_ROUNDS);
    advance(counters, CONSUMED, turn);
  }
}

// Starts two workers that share memory; one of them reports the result.
function startPair(roles, data) {
  for (const role of roles) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { role, ...data } });
    worker.on('message', (result) => console.log(result));
  }
}

function main() {
  const [variant, seed] = process.argv.slice(2);
  const known = ['sick', 'fixed', 'twin'].includes(variant) && /^\d+$/.test(seed);
  if (!known || process.argv.length !== 4) {
    console.error('usage: atomics_ping_pong.mjs sick|fixed|twin SEED');
    process.exit(2);
  }
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LIMIT_MS).unref();
  const next = numbers(Number(seed));
  const values = vary(next, VALUES / BATCH_VALUES, 20) * BATCH_VALUES;
  const rounds = vary(next, ROUNDS, 30);
  const thinkMs = vary(next, THINK_MS, 40);
  const [batch, slots] = variant === 'fixed' ? [BATCH_VALUES, BATCH_SLOTS] : [1, 1];
  const counters = new Int32Array(new SharedArrayBuffer(8));
  const data = new Int32Array(new SharedArrayBuffer(4 * batch * slots));
  if (variant === 'twin') {
    const requests = Math.floor(TWIN_TIME_MS / thinkMs);
    startPair(['request', 'serve'], { counters, data, requests, thinkMs });
  } else {
    startPair(['produce', 'consume'], { counters, data, values, rounds, batch, slots });
  }
}

if (isMainThread) main();
else ({ produce, consume, request, serve })[workerData.role](workerData);
