//! Puma: threads of one process, or of several in cluster mode.
//!
//! The default is Puma's own: 5 threads in one process. They share Ruby's global lock, so with many
//! more, requests that need CPU time wait for each other. More processes use more CPUs:
//! `--set processes=2`.
//!
//! After a response on a persistent connection, a thread waits 0.2 s for the next request on that
//! connection (`Puma::Client::FAST_TRACK_KA_TIMEOUT`) before it serves another one. So with more
//! connections than threads, requests wait up to 0.2 s for a thread although all threads are idle.

use super::super::client::Reuse;
use super::{
    BACKLOG, Concurrency, File, IDLE_TIMEOUT_S, Launch, Program, rack_application,
    supports_any_concurrency, supports_any_handler,
};

/// Number of threads that Puma has by default on Ruby's own interpreter.
const DEFAULT_THREADS: u64 = 5;

pub const ROW: Program = Program {
    name: "puma",
    package: "puma",
    summary: "Ruby on Puma: a thread for each request; a reactor keeps idle connections",
    unit: "thread",
    reuse: Reuse::Persistent,
    version: "-V",
    default: || Concurrency { processes: 1, threads: DEFAULT_THREADS },
    unsupported_concurrency: supports_any_concurrency,
    unsupported_handler: supports_any_handler,
    other_processes: |Concurrency { processes, .. }| if processes > 1 { processes } else { 0 },
    configured: |Concurrency { processes, threads }| match processes {
        1 => format!("threads {threads}, {threads}"),
        _ => format!("workers {processes}; threads {threads}, {threads}; preload_app!"),
    },
    files,
    arguments: &["-C", "puma.rb"],
};

fn files(launch: &Launch) -> Vec<File> {
    let Launch { port, handler, concurrency: Concurrency { processes, threads }, .. } = launch;
    let cluster = match processes {
        1 => String::new(),
        _ => format!("workers {processes}\npreload_app!\n"),
    };
    let text = format!(
        "directory __dir__\n\
         rackup \"config.ru\"\n\
         environment \"production\"\n\
         bind \"tcp://127.0.0.1:{port}?backlog={BACKLOG}\"\n\
         threads {threads}, {threads}\n\
         {cluster}\
         persistent_timeout {IDLE_TIMEOUT_S}\n\
         first_data_timeout {IDLE_TIMEOUT_S}\n\
         quiet\n"
    );
    vec![("puma.rb", text), rack_application(*handler)]
}
