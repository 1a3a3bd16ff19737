//! Node.js: one event loop, or one in each process of a cluster.
//!
//! The default is one process, as `node server.js` starts it.

use super::super::client::Reuse;
use super::super::http::{HANDLER_DELAY, Handler};
use super::{BACKLOG, Concurrency, File, INTERPRETER_FILE, Launch, Program, supports_any_handler};

pub const ROW: Program = Program {
    name: "node",
    package: "nodejs",
    summary: "JavaScript on Node.js: one event loop, in one thread",
    unit: "event loop",
    reuse: Reuse::Persistent,
    version: "--version",
    default: || Concurrency { processes: 1, threads: 1 },
    unsupported_concurrency: |concurrency| {
        (concurrency.threads > 1).then_some("node runs JavaScript in one thread a process")
    },
    unsupported_handler: supports_any_handler,
    other_processes: |Concurrency { processes, .. }| if processes > 1 { processes } else { 0 },
    configured: |Concurrency { processes, .. }| match processes {
        1 => "http.createServer".to_owned(),
        _ => format!("http.createServer in {processes} processes of a cluster"),
    },
    files,
    arguments: &["server.js"],
};

fn files(launch: &Launch) -> Vec<File> {
    let Launch { port, handler, concurrency: Concurrency { processes, .. }, .. } = launch;
    let answer = match handler {
        Handler::Hello => "answer(response)".to_owned(),
        Handler::Wait => format!("setTimeout(answer, {}, response)", HANDLER_DELAY.as_millis()),
    };
    let text = format!(
        "const cluster = require(\"cluster\");\n\
         const http = require(\"http\");\n\
         \n\
         require(\"fs\").writeFileSync({INTERPRETER_FILE:?}, \"V8 \" + process.versions.v8);\n\
         if (cluster.isPrimary && {processes} > 1) {{\n\
         \x20 for (let n = 0; n < {processes}; n++) cluster.fork();\n\
         }} else {{\n\
         \x20 const answer = (response) => {{\n\
         \x20   response.writeHead(200, {{ \"Content-Type\": \"text/plain\", \"Content-Length\": 6 }});\n\
         \x20   response.end(\"hello\\n\");\n\
         \x20 }};\n\
         \x20 const server = http.createServer((request, response) => {answer});\n\
         \x20 server.keepAliveTimeout = server.headersTimeout = server.requestTimeout = 0;\n\
         \x20 server.listen({port}, \"127.0.0.1\", {BACKLOG});\n\
         }}\n"
    );
    vec![("server.js", text)]
}
