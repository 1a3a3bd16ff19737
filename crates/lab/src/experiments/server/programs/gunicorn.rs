//! Gunicorn with sync workers: processes that are forked in advance and serve one request at a
//! time.
//!
//! The default is two processes for each CPU and one more, as Gunicorn's documentation advises.
//! They share the memory of the application, which is loaded before the fork (`preload_app`).

use super::super::client::Reuse;
use super::super::http::{HANDLER_DELAY, Handler};
use super::{
    BACKLOG, Concurrency, File, INTERPRETER_FILE, Launch, Program, supports_any_handler,
    worker_processes,
};

pub const ROW: Program = Program {
    name: "gunicorn",
    package: "gunicorn",
    summary: "Python on Gunicorn, sync workers: a process for each request, forked in advance",
    unit: "process",
    reuse: Reuse::PerRequest,
    version: "--version",
    default: || Concurrency { processes: worker_processes(), threads: 1 },
    unsupported_concurrency: |concurrency| {
        (concurrency.threads > 1).then_some("gunicorn's sync workers have one thread a process")
    },
    unsupported_handler: supports_any_handler,
    other_processes: |concurrency| concurrency.processes,
    configured: |concurrency| {
        format!("workers = {}; preload_app; worker_class sync", concurrency.processes)
    },
    files,
    arguments: &["-c", "gunicorn.conf.py", "app:app"],
};

fn files(launch: &Launch) -> Vec<File> {
    let Launch { port, handler, concurrency: Concurrency { processes, .. }, .. } = launch;
    let settings = format!(
        "bind = \"127.0.0.1:{port}\"\n\
         backlog = {BACKLOG}\n\
         workers = {processes}\n\
         worker_class = \"sync\"\n\
         preload_app = True\n\
         worker_tmp_dir = \".\"\n"
    );
    let pause = match handler {
        Handler::Hello => String::new(),
        Handler::Wait => format!("    time.sleep({})\n", HANDLER_DELAY.as_secs_f64()),
    };
    let application = format!(
        "import platform\n\
         import time\n\
         \n\
         with open({INTERPRETER_FILE:?}, \"w\") as file:\n\
         \x20   file.write(\"python \" + platform.python_version())\n\
         \n\
         \n\
         def app(environ, start_response):\n\
         {pause}\
         \x20   start_response(\"200 OK\", [(\"Content-Type\", \"text/plain\"), (\"Content-Length\", \"6\")])\n\
         \x20   return [b\"hello\\n\"]\n"
    );
    vec![("gunicorn.conf.py", settings), ("app.py", application)]
}
