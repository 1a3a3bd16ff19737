// Fault: the main thread and a worker pass numbers back and forth in shared memory. Both find out
// by polling with a timer of 1 ms that a number has arrived.
//
// fixed: they pass the numbers by messages, so the event loop wakes up at once.
// twin: an interval timer fires just as often, but each time it does periodic work of its own. No
// partner decides when it goes on.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const LIMIT_MS = 30_000;
const POLL_MS = 1;
const HANDOVERS = 1_200;
const ROUNDS = 500_000;
const TWIN_TIME_MS = 4_000;
const PERIOD_MS = 4;
const TICK_ROUNDS = 400_000;
const EMPTY = -1;
const TO_WORKER = 0;
const TO_MAIN = 1;

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
  return value & 0x7fffffff;
}

// Calls `receive` with the next number of a slot in shared memory as soon as a poll finds it.
function pollSlot(slots, slot, receive) {
  const value = Atomics.load(slots, slot);
  if (value === EMPTY) {
    setTimeout(pollSlot, POLL_MS, slots, slot, receive);
  } else {
    Atomics.store(slots, slot, EMPTY);
    receive(value);
  }
}

// Returns functions that send a number to the other thread, and receive the next one from it.
function channel(polling, slots, port, sendTo, receiveFrom) {
  if (polling) {
    return {
      send: (value) => Atomics.store(slots, sendTo, value),
      receive: (take) => pollSlot(slots, receiveFrom, take),
    };
  }
  return {
    send: (value) => port.postMessage(value),
    receive: (take) => port.once('message', take),
  };
}

// Receives numbers, mixes them and sends them back.
function answer({ polling, slots, handovers, rounds }) {
  const { send, receive } = channel(polling, slots, parentPort, TO_MAIN, TO_WORKER);
  let left = handovers;
  const take = (value) => {
    send(mix(value, rounds));
    if (--left > 0) receive(take);
  };
  receive(take);
}

// Sends a number, waits until it comes back, and repeats this.
function passBackAndForth(polling, handovers, rounds) {
  const slots = new Int32Array(new SharedArrayBuffer(8)).fill(EMPTY);
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { polling, slots, handovers, rounds },
  });
  const { send, receive } = channel(polling, slots, worker, TO_WORKER, TO_MAIN);
  let left = handovers;
  const take = (value) => {
    if (left-- === 0) {
      console.log(value);
    } else {
      receive(take);
      send(mix(value, rounds));
    }
  };
  take(handovers);
}

// Does a piece of work in each period.
function tickPeriodically(periodMs) {
  let left = Math.floor(TWIN_TIME_MS / periodMs);
  let value = left;
  const timer = setInterval(() => {
    value = mix(value, TICK_ROUNDS);
    if (--left === 0) {
      clearInterval(timer);
      console.log(value);
    }
  }, periodMs);
}

function main() {
  const [variant, seed] = process.argv.slice(2);
  const known = ['sick', 'fixed', 'twin'].includes(variant) && /^\d+$/.test(seed);
  if (!known || process.argv.length !== 4) {
    console.error('usage: set_timeout_poll.mjs sick|fixed|twin SEED');
    process.exit(2);
  }
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LIMIT_MS).unref();
  const next = numbers(Number(seed));
  const handovers = vary(next, HANDOVERS, 20);
  const rounds = vary(next, ROUNDS, 40);
  const periodMs = vary(next, PERIOD_MS, 40);
  if (variant === 'twin') tickPeriodically(periodMs);
  else passBackAndForth(variant === 'sick', handovers, rounds);
}

if (isMainThread) main();
else answer(workerData);
