// Fault: the program derives many keys at once, but its thread pool has one thread only. The calls
// wait in a queue although a CPU idles.
//
// fixed: the pool has as many threads as there are CPUs.
// twin: the same pool as in `fixed` with more calls. Both threads are busy until the end.

'use strict';

const { pbkdf2 } = require('node:crypto');

const LIMIT_MS = 30_000;
const CPUS = 2;
const CALLS = 40;
const TOTAL_ITERATIONS = 8_000_000;
const KEY_BYTES = 32;
const TWIN_FACTOR = 2;

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

// Starts all calls and prints the sum of the keys when the last one has ended.
function deriveKeys(calls, iterations) {
  let sum = 0;
  let left = calls;
  for (let call = 0; call < calls; call++) {
    pbkdf2(`password ${call}`, 'salt', iterations, KEY_BYTES, 'sha512', (error, key) => {
      if (error) throw error;
      sum = (sum + key.readUInt32LE(0)) >>> 0;
      if (--left === 0) console.log(sum);
    });
  }
}

function main() {
  const [variant, seed] = process.argv.slice(2);
  const known = ['sick', 'fixed', 'twin'].includes(variant) && /^\d+$/.test(seed);
  if (!known || process.argv.length !== 4) {
    console.error('usage: pbkdf2_pool.cjs sick|fixed|twin SEED');
    process.exit(2);
  }
  process.env.UV_THREADPOOL_SIZE = String(variant === 'sick' ? 1 : CPUS);
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LIMIT_MS).unref();
  const next = numbers(Number(seed));
  const calls = 2 * vary(next, CALLS / 2, 40);
  const total = vary(next, TOTAL_ITERATIONS, 15);
  deriveKeys(calls, Math.floor(total / calls) * (variant === 'twin' ? TWIN_FACTOR : 1));
}

main();
