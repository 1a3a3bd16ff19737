// Makes a thread wait for each primitive of Node.js. The thread's name says which. Ends with its standard
// input.
const fs = require("node:fs");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

const HOUR_MS = 3_600_000;
const TASKS = "/proc/self/task";
const waits = {
  atomics: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  atomics_timed: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HOUR_MS),
  loop: () => parentPort.on("message", () => {}),
  timer: () => setTimeout(() => {}, HOUR_MS),
};

// Synchronous functions run on the current thread.
const setName = (name, task = "/proc/thread-self") => fs.writeFileSync(`${task}/comm`, name);

if (isMainThread) {
  const before = new Set(fs.readdirSync(TASKS));
  // Starts the threads of the pool.
  fs.stat(__filename, () => {
    const threads = fs.readdirSync(TASKS).filter((id) => !before.has(id));
    threads.forEach((id) => setName("pool", `${TASKS}/${id}`));
    setName("main_loop");
    Object.keys(waits).forEach((name) => new Worker(__filename, { workerData: name }));
  });
  process.stdin.on("end", () => process.exit(0)).resume();
} else {
  setName(workerData);
  waits[workerData]();
}
