//! Puma: threads of one process, or of several in cluster mode.
//!
//! The default is one process with as many threads as our pools have, so that the cost of a thread
//! can be compared. All threads of a process share Ruby's global lock, and Puma's own default is 5:
//! `--set threads=5 --set processes=2`.

use super::super::client::Reuse;
use super::super::models::POOL_SIZE;
use super::{
    BACKLOG, Concurrency, File, IDLE_TIMEOUT_S, Launch, Program, accepts_all, can_answer,
    rack_application,
};

pub const ROW: Program = Program {
    name: "puma",
    package: "puma",
    summary: "Ruby on Puma: a thread for each request; a reactor keeps idle connections",
    unit: "thread",
    reuse: Reuse::Persistent,
    version: "-V",
    default: || Concurrency { processes: 1, threads: POOL_SIZE },
    refuses: accepts_all,
    cannot_answer: can_answer,
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
