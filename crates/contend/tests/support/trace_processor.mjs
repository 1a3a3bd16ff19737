// Runs a query on a trace with Perfetto's trace processor, in its WebAssembly build, and prints the
// result as `trace_processor_shell -q QUERY TRACE` does.
//
// Usage: node trace_processor.mjs FOLDER QUERY TRACE
//
// FOLDER has `engine_bundle.js` and `trace_processor.wasm` of Perfetto's user interface.

import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

// Kinds of requests in perfetto/trace_processor/trace_processor.proto.
const APPEND = 1, FINALIZE = 2, QUERY = 3;

const [folder, query, trace] = process.argv.slice(2);

// The code of the trace processor is in one line, which Node.js would print with an error.
process.on("uncaughtException", (error) => {
  console.error(String(error));
  process.exit(1);
});

/** Encodes an integer. */
function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

/** Encodes a field with bytes, or with an integer. */
function field(number, value) {
  if (typeof value === "number") return Buffer.concat([varint(number * 8), varint(value)]);
  return Buffer.concat([varint(number * 8 + 2), varint(value.length), value]);
}

/** Decodes an integer as a BigInt. Returns it and the offset after it. */
function readVarint(bytes, offset) {
  let value = 0n, shift = 0n;
  for (;;) {
    const byte = bytes[offset++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [BigInt.asIntN(64, value), offset];
    shift += 7n;
  }
}

/** Decodes the fields of a message: pairs of a number and a BigInt or a buffer. */
function* fields(bytes) {
  for (let offset = 0; offset < bytes.length; ) {
    let key, value;
    [key, offset] = readVarint(bytes, offset);
    const kind = Number(key & 7n);
    let length = kind === 1 ? 8 : kind === 5 ? 4 : 0;
    [value, offset] = kind === 0 || kind === 2 ? readVarint(bytes, offset) : [0n, offset];
    if (kind === 2) length = Number(value);
    yield [Number(key >> 3n), kind === 0 ? value : bytes.subarray(offset, offset + length)];
    offset += length;
  }
}

function varints(bytes) {
  const values = [];
  for (let offset = 0, value; offset < bytes.length; values.push(value)) {
    [value, offset] = readVarint(bytes, offset);
  }
  return values;
}

/** Starts the trace processor. Returns the function to send bytes to it. */
async function start(receive) {
  const file = (url) => readFileSync(join(folder, basename(String(url))));
  // What the code expects of a worker of a browser. Without `process`, it does not take this for Node.js.
  const location = { href: "" };
  const worker = {
    self: { location },
    location,
    process: undefined,
    console: { log() {}, warn() {}, error: console.error },
    WorkerGlobalScope: Object,
    fetch: async (url) =>
      new Response(file(url), { headers: { "Content-Type": "application/wasm" } }),
    XMLHttpRequest: class {
      status = 200;
      open(_method, url) {
        this.response = new Uint8Array(file(url)).buffer;
      }
      send() {}
    },
  };
  new Function(...Object.keys(worker), file("engine_bundle.js").toString())(...Object.values(worker));
  const port = { postMessage: (bytes) => receive(Buffer.from(bytes)) };
  worker.self.onmessage({ data: port });
  return async (bytes) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return port.onmessage({ data: new Uint8Array(bytes) });
      } catch (error) {
        // It is still being compiled.
        if (attempt === 600 || !(error instanceof TypeError)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };
}

let received = Buffer.alloc(0);
const send = await start((bytes) => (received = Buffer.concat([received, bytes])));
let sequence = 0;

/** Sends a request, and returns the fields of all responses. */
async function request(kind, ...more) {
  received = Buffer.alloc(0);
  const message = Buffer.concat([field(1, ++sequence), field(2, kind), ...more]);
  await send(field(1, message));
  return [...fields(received)].flatMap(([, response]) => [...fields(response)]);
}

const CHUNK = 1 << 24;
const bytes = readFileSync(trace);
for (let offset = 0; offset < bytes.length; offset += CHUNK) {
  await request(APPEND, field(101, bytes.subarray(offset, offset + CHUNK)));
}
await request(FINALIZE);

const show = (value) => (typeof value === "string" ? `"${value}"` : String(value ?? "[NULL]"));
const names = [], cells = [];
for (const [number, result] of await request(QUERY, field(103, field(1, readFileSync(query))))) {
  if (number !== 203) continue;
  for (const [number, value] of fields(result)) {
    if (number === 1) names.push(value.toString());
    if (number === 2 && value.length > 0) {
      console.error(value.toString());
      process.exit(1);
    }
    if (number === 3) cells.push(...batch(value));
  }
}

/** Returns the cells of a batch in order. */
function batch(message) {
  let kinds = [], integers = [], floats = [], strings = [];
  for (const [number, value] of fields(message)) {
    if (number === 1) kinds = varints(value);
    if (number === 2) integers = varints(value);
    if (number === 3) {
      for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    }
    if (number === 5) strings = value.toString().split("\0");
  }
  const take = { 2: () => integers.shift(), 3: () => floats.shift(), 4: () => strings.shift() };
  return kinds.map((kind) => take[Number(kind)]?.());
}

console.log(names.map(show).join(","));
for (let at = 0; at < cells.length; at += names.length) {
  console.log(cells.slice(at, at + names.length).map(show).join(","));
}
process.exit(0);
