//! Whether wake-ups can be recorded, and if not, why.

use std::io;

use contend_sys::perf::Recorder;
use contend_sys::waking::{Unavailable, Waking};
use contend_sys::{Pid, cpu};

/// How to get wake-ups recorded where only a privilege is missing.
const PRIVILEGE: &str = "to record them, run contend as root, or with CAP_PERFMON and read access to \
                         /sys/kernel/tracing";

/// Returns the tracepoint for wake-ups.
///
/// # Errors
/// Returns a text that says why they cannot be recorded, or that they were not requested.
pub fn find(is_requested: bool) -> Result<Waking, String> {
    if !is_requested {
        return Err("it was not requested".to_owned());
    }
    Waking::find().map_err(|error| {
        inferred(&match &error {
            Unavailable::NotReadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "tracefs is not mounted at /sys/kernel/tracing".to_owned()
            }
            Unavailable::NotReadable(_) => PRIVILEGE.to_owned(),
            Unavailable::PidNamespace => {
                "in a container, the kernel does not name the threads; to record them, run contend \
                 outside of it"
                    .to_owned()
            }
            Unavailable::OtherFormat => error.to_string(),
        })
    })
}

/// Starts to record the context switches of `thread` and, with `waking`, if that is permitted, its
/// wake-ups.
///
/// # Errors
/// As for [`Recorder::new`].
pub fn recorder(thread: Pid, waking: Option<Waking>) -> io::Result<Recorder> {
    let cpus = cpu::online_list();
    match waking.map(|waking| Recorder::with_wakes(thread, &cpus, waking)) {
        Some(Ok(recorder)) => Ok(recorder),
        Some(Err(_)) | None => Recorder::new(thread, &cpus),
    }
}

/// Returns why `recorder` does not record wake-ups; `None` if it does.
pub fn missing(waking: Result<Waking, String>, recorder: Option<&Recorder>) -> Option<String> {
    match (waking, recorder) {
        (_, Some(recorder)) if recorder.has_wakes() => None,
        (Err(reason), _) => Some(reason),
        (Ok(_), Some(_)) => Some(inferred(PRIVILEGE)),
        (Ok(_), None) => Some("they need context switches".to_owned()),
    }
}

fn inferred(reason: &str) -> String {
    format!("inferred from the order of context switches: {reason}")
}
