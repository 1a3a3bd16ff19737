// Fault: the main thread computes everything. The workers only ask it for results by tiny messages
// and add them up, so they wait while one thread is busy.
//
// fixed: the workers compute the items themselves, and the main thread waits.
// twin: one thread computes without workers. It has nothing to share and nobody waits for it.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const LIMIT_MS = 30_000;
const WORKERS = 3;
const ITEMS = 160;
const TOTAL_ROUNDS = 1_600_000_000;
const CHUNK_ROUNDS = 10_000_000;

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
  return value >>> 0;
}

// Answers the workers' requests, if any, and prints the sum of all results.
function startWorkers(workers, data) {
  let sum = 0;
  let running = workers;
  for (let number = 0; number < workers; number++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: data });
    worker.on('message', (message) => {
      if (message.item !== undefined) {
        worker.postMessage(mix(message.item, data.rounds));
        return;
      }
      sum = (sum + message.sum) >>> 0;
      if (--running === 0) console.log(sum);
    });
  }
}

// Takes items and lets the main thread compute them.
function askForItems({ counter, items }) {
  let sum = 0;
  const next = () => {
    const item = Atomics.add(counter, 0, 1);
    if (item < items) {
      parentPort.postMessage({ item });
    } else {
      parentPort.postMessage({ sum });
      parentPort.close();
    }
  };
  parentPort.on('message', (result) => {
    sum = (sum + result) >>> 0;
    next();
  });
  next();
}

// Takes items and computes them in this thread.
function computeItems({ counter, items, rounds }) {
  let sum = 0;
  for (let item; (item = Atomics.add(counter, 0, 1)) < items;) {
    sum = (sum + mix(item, rounds)) >>> 0;
  }
  parentPort.postMessage({ sum });
}

// Computes in this thread only.
function computeAlone(rounds) {
  let value = rounds;
  for (let done = 0; done < rounds; done += CHUNK_ROUNDS) {
    value = mix(value, CHUNK_ROUNDS);
    if (performance.now() > LIMIT_MS) process.exit(1);
  }
  console.log(value);
}

function main() {
  const [variant, seed] = process.argv.slice(2);
  const known = ['sick', 'fixed', 'twin'].includes(variant) && /^\d+$/.test(seed);
  if (!known || process.argv.length !== 4) {
    console.error('usage: event_loop.mjs sick|fixed|twin SEED');
    process.exit(2);
  }
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LIMIT_MS).unref();
  const next = numbers(Number(seed));
  const workers = vary(next, WORKERS, 34);
  const items = vary(next, ITEMS, 40);
  const total = vary(next, TOTAL_ROUNDS / 1000, 15) * 1000;
  if (variant === 'twin') {
    computeAlone(total);
  } else {
    const counter = new Int32Array(new SharedArrayBuffer(4));
    startWorkers(workers, { variant, counter, items, rounds: Math.floor(total / items) });
  }
}

if (isMainThread) main();
else if (workerData.variant === 'sick') askForItems(workerData);
else computeItems(workerData);
