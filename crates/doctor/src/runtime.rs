//! Recognises the language runtime of a process by its program and the libraries that it maps.

use std::fs;
use std::io::Read as _;

use contend_record::doctor::Runtime;
use contend_sys::Pid;

/// Length of the start of a program in which its notes are, in bytes.
const START_BYTES: u64 = 8 << 10;

/// Returns the runtime of a process; `None` if none is recognised, or the process may not be examined.
pub fn recognise(process: Pid) -> Option<Runtime> {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let program = fs::read_link(format!("{folder}/exe")).ok()?;
    let name = program.file_name()?.to_str()?;
    let by_maps = || by_libraries(&fs::read_to_string(format!("{folder}/maps")).ok()?);
    let by_note = || {
        let mut start = Vec::new();
        let program = fs::File::open(format!("{folder}/exe")).ok()?;
        program.take(START_BYTES).read_to_end(&mut start).ok()?;
        has_go_note(&start).then_some(Runtime::Go)
    };
    by_name(name).or_else(by_maps).or_else(by_note)
}

/// Recognises a runtime by the name of its program, with or without a version.
fn by_name(name: &str) -> Option<Runtime> {
    // Builds without a global interpreter lock end in `t`.
    let name = name.strip_suffix('t').filter(|name| name.starts_with("python3.")).unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match stem {
        "python" => Some(Runtime::Python),
        "ruby" => Some(Runtime::Ruby),
        "java" => Some(Runtime::Java),
        "node" => Some(Runtime::Node),
        "bash" | "dash" | "sh" | "zsh" | "ksh" | "mksh" | "yash" => Some(Runtime::Shell),
        _ => None,
    }
}

/// Recognises a runtime that a program embeds, by its library.
fn by_libraries(maps: &str) -> Option<Runtime> {
    let table = [
        ("/libpython3", Runtime::Python),
        ("/libruby", Runtime::Ruby),
        ("/libjvm.so", Runtime::Java),
        ("/libnode.so", Runtime::Node),
    ];
    table.iter().find(|(library, _)| maps.contains(library)).map(|(_, runtime)| *runtime)
}

/// Returns whether the start of a program contains the ELF note with the build ID that Go's linker
/// writes: lengths of name and contents, type 4, name `Go`.
fn has_go_note(start: &[u8]) -> bool {
    let is_note = |note: &[u8]| {
        let (name_length, kind) = (&note[..4], &note[8..12]);
        name_length == 4_u32.to_ne_bytes()
            && kind == 4_u32.to_ne_bytes()
            && &note[12..] == b"Go\0\0"
    };
    start.windows(16).any(is_note)
}

/// Returns whether a thread with this name only serves the runtime, such as a compiler or a garbage
/// collector.
pub fn is_helper(runtime: Option<Runtime>, name: &str) -> bool {
    const JAVA: &[&str] = &[
        "Attach Listener",
        "C1 Compiler",
        "C2 Compiler",
        "Common-Cleaner",
        "Finalizer",
        "G1 ",
        "GC Thread",
        "Monitor Deflati",
        "Notification Th",
        "Reference Handl",
        "Service Thread",
        "Signal Dispatch",
        "Sweeper",
        "VM Periodic",
        "VM Thread",
    ];
    const NODE: &[&str] = &["DelayedTask", "SignalInspector", "V8Worker"];
    let names = match runtime {
        Some(Runtime::Java) => JAVA,
        Some(Runtime::Node) => NODE,
        _ => return false,
    };
    names.iter().any(|start| name.starts_with(start))
}

/// Returns whether a function with this name belongs to the runtime or its standard library rather than
/// to the program.
pub fn is_internal(runtime: Option<Runtime>, name: &str) -> bool {
    const PACKAGES: &[&str] = &["internal", "runtime", "sync", "time"];
    let package = name.split(['.', '/']).next().unwrap_or_default();
    runtime == Some(Runtime::Go) && (PACKAGES.contains(&package) || name.starts_with("_rt0_"))
}

/// Returns whether a function of Go with this name takes or releases a contended lock.
pub fn is_go_lock(name: &str) -> bool {
    const LOCKS: &[&str] = &[
        "internal/sync.(*Mutex).lockSlow",
        "internal/sync.(*Mutex).unlockSlow",
        "sync.(*Mutex).lockSlow",
        "sync.(*Mutex).unlockSlow",
        "internal/sync.runtime_Sem",
        "sync.runtime_SemacquireMutex",
        "sync.runtime_SemacquireRWMutex",
    ];
    LOCKS.iter().any(|start| name.starts_with(start))
}

/// Returns whether a function of the Java virtual machine with this name enters or leaves a contended
/// monitor.
pub fn is_java_lock(name: &str) -> bool {
    name.starts_with("ObjectMonitor::")
        || name.starts_with("ObjectSynchronizer::")
        || name == "SpinPause"
}

/// Returns whether a function of Go with this name sleeps.
pub fn is_go_sleep(name: &str) -> bool {
    name == "time.Sleep" || name == "runtime.timeSleep"
}

/// Returns whether a function of Go with this name sends to or receives from a channel.
pub fn is_go_channel(name: &str) -> bool {
    const CHANNELS: &[&str] = &["runtime.chansend", "runtime.chanrecv", "runtime.selectgo"];
    CHANNELS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognised_by_name_library_or_contents() {
        assert_eq!(by_name("python3.11"), Some(Runtime::Python));
        assert_eq!(by_name("python3.13t"), Some(Runtime::Python));
        assert_eq!(by_name("bash"), Some(Runtime::Shell));
        assert_eq!(by_name("pythonic"), None);
        let maps = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/jvm/lib/server/libjvm.so\n";
        assert_eq!(by_libraries(maps), Some(Runtime::Java));
        assert_eq!(by_libraries("7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n"), None);
        assert!(is_helper(Some(Runtime::Java), "GC Thread#0"));
        assert!(!is_helper(Some(Runtime::Java), "main") && !is_helper(None, "GC Thread#0"));
        assert!(is_go_lock("internal/sync.(*Mutex).lockSlow") && !is_go_lock("main.lock"));
        assert!(is_java_lock("ObjectMonitor::TrySpin") && !is_java_lock("Monitor::wait"));
        assert!(is_go_channel("runtime.chansend1") && !is_go_channel("runtime.mcall"));
        assert!(is_internal(Some(Runtime::Go), "runtime.mcall"));
        assert!(!is_internal(None, "runtime.mcall"));
        assert!(has_go_note(b"\x7fELF\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0abc"));
        assert!(!has_go_note(b"\x7fELF\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0abc"));
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        assert_eq!(recognise(own), None, "a program in Rust");
    }
}
