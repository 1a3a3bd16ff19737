//! nginx: an event loop in each worker process, with a fixed response.
//!
//! The default is one process for each CPU, as with `worker_processes auto`.

use contend_sys::cpu;

use super::super::client::Reuse;
use super::super::http::Handler;
use super::{BACKLOG, Concurrency, File, IDLE_TIMEOUT_S, Launch, Program};

pub const ROW: Program = Program {
    name: "nginx",
    package: "nginx-light",
    summary: "nginx with a fixed response: an event loop in each process, one for each CPU",
    unit: "event loop",
    reuse: Reuse::Persistent,
    version: "-v",
    default: || Concurrency { processes: cpu::allowed() as u64, threads: 1 },
    unsupported_concurrency: |concurrency| {
        (concurrency.threads > 1).then_some("nginx has one thread a process")
    },
    unsupported_handler: |handler| match handler {
        Handler::Hello => None,
        Handler::Wait => Some("nginx cannot delay a response without a module"),
    },
    other_processes: |concurrency| concurrency.processes,
    configured: |concurrency| {
        format!("worker_processes {}; return 200 \"hello\\n\"", concurrency.processes)
    },
    files,
    arguments: &["-e", "stderr", "-p", ".", "-c", "nginx.conf"],
};

/// Returns the value of nginx's `worker_connections` for a load of `of_load` connections. One
/// worker may get all of these, in addition to its listeners and channels. At least a sixteenth
/// must stay free: otherwise, nginx would close idle connections.
fn worker_connections(of_load: u64) -> u64 {
    const SPARE_CONNECTIONS: u64 = 64;
    of_load + of_load / 8 + SPARE_CONNECTIONS
}

fn files(launch: &Launch) -> Vec<File> {
    let Launch { port, connections, concurrency: Concurrency { processes, .. }, .. } = launch;
    let connections = worker_connections(*connections);
    // Without this line, workers started by root would run as another user.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let text = format!(
        "daemon off;\n\
         {user}\
         worker_processes {processes};\n\
         pid nginx.pid;\n\
         error_log stderr error;\n\
         events {{ worker_connections {connections}; }}\n\
         http {{\n\
         \x20 access_log off;\n\
         \x20 client_body_temp_path body;\n\
         \x20 proxy_temp_path proxy;\n\
         \x20 fastcgi_temp_path fastcgi;\n\
         \x20 uwsgi_temp_path uwsgi;\n\
         \x20 scgi_temp_path scgi;\n\
         \x20 keepalive_requests 1000000000;\n\
         \x20 keepalive_timeout {IDLE_TIMEOUT_S}s;\n\
         \x20 client_header_timeout {IDLE_TIMEOUT_S}s;\n\
         \x20 server {{\n\
         \x20   listen 127.0.0.1:{port} backlog={BACKLOG};\n\
         \x20   default_type text/plain;\n\
         \x20   location / {{ return 200 \"hello\\n\"; }}\n\
         \x20 }}\n\
         }}\n"
    );
    vec![("nginx.conf", text)]
}
