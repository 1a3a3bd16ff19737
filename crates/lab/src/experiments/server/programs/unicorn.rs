//! Unicorn: processes that are forked in advance and serve one request at a time.
//!
//! The default is two processes for each CPU and one more, as Gunicorn's documentation advises.
//! They share the memory of the application, which is loaded before the fork (`preload_app`).

use super::super::client::Reuse;
use super::{
    BACKLOG, Concurrency, File, Launch, Program, rack_application, supports_any_handler,
    worker_processes,
};

pub const ROW: Program = Program {
    name: "unicorn",
    package: "unicorn",
    summary: "Ruby on Unicorn: a process for each request, forked in advance",
    unit: "process",
    reuse: Reuse::PerRequest,
    version: "-v",
    default: || Concurrency { processes: worker_processes(), threads: 1 },
    unsupported_concurrency: |concurrency| {
        (concurrency.threads > 1).then_some("unicorn has one thread a process")
    },
    unsupported_handler: supports_any_handler,
    other_processes: |concurrency| concurrency.processes,
    configured: |concurrency| {
        format!("worker_processes {}; preload_app true", concurrency.processes)
    },
    files,
    // Without middleware for development and logging.
    arguments: &["-N", "-E", "none", "-c", "unicorn.rb", "config.ru"],
};

fn files(launch: &Launch) -> Vec<File> {
    let Launch { port, handler, concurrency: Concurrency { processes, .. }, .. } = launch;
    let text = format!(
        "worker_processes {processes}\n\
         listen \"127.0.0.1:{port}\", backlog: {BACKLOG}\n\
         preload_app true\n"
    );
    vec![("unicorn.rb", text), rack_application(*handler)]
}
