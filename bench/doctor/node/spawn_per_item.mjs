// Fault: the program starts an external command for each of many small items and waits for it.
// Starting and ending a process costs far more than the work of an item.
//
// fixed: the program checks the items itself.
// twin: the program starts only two children, and both of them compute for a long time.

import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LIMIT_MS = 30_000;
const ITEMS = 1_200;
const ROUNDS = 100_000;
const TWIN_CHILDREN = 2;
const TWIN_ROUNDS = 1_600_000_000;
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

// Asks an external command whether all is well.
function checkByCommand() {
  return spawnSync('true').status === 0;
}

// Gives the same answer without a process.
function checkInProcess() {
  return true;
}

// Mixes each item and adds those that pass the check.
function addItems(items, rounds, check) {
  let sum = 0;
  for (let item = 0; item < items; item++) {
    if (check()) sum = (sum + mix(item, rounds)) >>> 0;
    if (performance.now() > LIMIT_MS) process.exit(1);
  }
  console.log(sum);
}

// Computes as a child of the twin; ends early when the parent has ended.
function computeAsChild(seed, rounds) {
  const parent = process.ppid;
  let value = seed;
  for (let done = 0; done < rounds; done += CHUNK_ROUNDS) {
    value = mix(value, CHUNK_ROUNDS);
    if (process.ppid !== parent || performance.now() > LIMIT_MS) process.exit(1);
  }
  console.log(value);
}

// Starts children that compute, and adds their results.
function computeInChildren(seed, rounds) {
  let sum = 0;
  let running = TWIN_CHILDREN;
  for (let number = 0; number < TWIN_CHILDREN; number++) {
    const command = [fileURLToPath(import.meta.url), 'twin', seed + number, rounds];
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.on('data', (text) => { sum = (sum + Number(text)) >>> 0; });
    child.on('close', () => { if (--running === 0) console.log(sum); });
  }
}

function main() {
  const [variant, seed, childRounds] = process.argv.slice(2);
  if (childRounds) {
    computeAsChild(Number(seed), Number(childRounds));
    return;
  }
  const known = ['sick', 'fixed', 'twin'].includes(variant) && /^\d+$/.test(seed);
  if (!known || process.argv.length !== 4) {
    console.error('usage: spawn_per_item.mjs sick|fixed|twin SEED');
    process.exit(2);
  }
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LIMIT_MS).unref();
  const next = numbers(Number(seed));
  const items = vary(next, ITEMS, 20);
  const rounds = vary(next, ROUNDS, 40);
  const twinRounds = vary(next, TWIN_ROUNDS / CHUNK_ROUNDS, 15) * CHUNK_ROUNDS;
  if (variant === 'twin') computeInChildren(Number(seed), twinRounds);
  else addItems(items, rounds, variant === 'sick' ? checkByCommand : checkInProcess);
}

main();
