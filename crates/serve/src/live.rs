//! Runs that are taking place: finds the files in which their programs publish their progress, and follows one.
//!
//! A program holds a lock on its file, `PID.live`, until it ends. It writes whole lines, the last one with the
//! end, and then removes the file. A file without a lock is left over from a program that was killed, and is
//! removed here.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use axum::response::sse::Event;
use contend_record::live::{End, FORMAT, Head, Line, Update};
use futures_util::Stream;
use futures_util::future::select;
use futures_util::stream::unfold;
use tokio::sync::watch;

/// Time between two looks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Maximum length of a line, in bytes. A longer one is not from contend.
const MAX_LINE_BYTES: usize = 1 << 20;
/// End of the names of files.
const SUFFIX: &str = ".live";
/// The end of a run whose program was killed.
const KILLED: &str = "the program was killed";

/// A run that is taking place.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// ID of its process.
    pub pid: u32,
    /// The verb, the subject and the charts.
    pub head: Head,
    /// The latest figures; the default without any.
    pub latest: Update,
}

/// Reads the lines that a program appends to its file.
#[derive(Debug)]
pub struct Tail {
    file: File,
    /// The beginning of a line whose end has not been written yet.
    partial: Vec<u8>,
}

/// Returns the runs that publish their progress in a directory, the newest first. Removes files of programs
/// that were killed.
pub fn list(folder: &Path) -> Vec<Running> {
    if !is_private(folder) {
        return Vec::new();
    }
    let names = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pid = |name: &str| name.strip_suffix(SUFFIX)?.parse().ok();
    let pids = names.filter_map(|name| pid(name.to_str()?));
    let mut runs: Vec<_> = pids.filter_map(|pid| Some(open(folder, pid)?.0)).collect();
    runs.sort_by(|one, other| other.head.started_at.cmp(&one.head.started_at));
    runs
}

/// Opens the file of a process. Returns the run, and its updates since the start; `None` if it publishes
/// nothing.
pub fn open(folder: &Path, pid: u32) -> Option<(Running, Tail)> {
    let path = folder.join(format!("{pid}{SUFFIX}"));
    // Opening a FIFO would block.
    if !is_private(folder) || !path.symlink_metadata().is_ok_and(|data| data.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    if !is_locked(&file) {
        remove_if_same(&path, &file);
        return None;
    }
    let mut tail = Tail { file, partial: Vec::new() };
    let (mut head, mut latest) = (None, Update::default());
    while let Ok(lines) = tail.read()
        && !lines.is_empty()
    {
        for line in lines {
            match line {
                Line::Head(found) => head = head.or(Some(found).filter(|it| it.format == FORMAT)),
                Line::Update(update) => latest = update,
                Line::End(_) => {}
            }
        }
    }
    let running = Running { pid, head: head?, latest };
    tail.file.seek(SeekFrom::Start(0)).ok()?;
    tail.partial.clear();
    Some((running, tail))
}

/// Removes a file at a path, unless the path now names another one: a new process may have got the same ID.
fn remove_if_same(path: &Path, file: &File) {
    let identity = |data: Metadata| (data.dev(), data.ino());
    let [there, opened] =
        [path.symlink_metadata(), file.metadata()].map(|it| it.map(identity).ok());
    if there.is_some() && there == opened {
        let _ = std::fs::remove_file(path); // another server may have removed it
    }
}

/// Returns whether only this user can have written to a directory.
fn is_private(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    folder
        .metadata()
        .is_ok_and(|data| data.is_dir() && data.uid() == own && data.mode() & 0o022 == 0)
}

/// Returns whether a program holds the lock on its file.
fn is_locked(file: &File) -> bool {
    let locked = file.try_lock_shared();
    if locked.is_ok() {
        let _ = file.unlock(); // closing the file unlocks it, too
    }
    matches!(locked, Err(TryLockError::WouldBlock))
}

impl Tail {
    /// Returns the lines that have been completed since the last call, but not all if there are many. An empty
    /// list means that there is no new line. Skips lines of other formats.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has a line that is too long.
    fn read(&mut self) -> io::Result<Vec<Line>> {
        loop {
            let before = self.partial.len();
            let read = self.file.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.partial)?;
            let Some(end) = self.partial[before..].iter().rposition(|&byte| byte == b'\n') else {
                if read == 0 {
                    return Ok(Vec::new());
                }
                if self.partial.len() > MAX_LINE_BYTES {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                continue;
            };
            let rest = self.partial.split_off(before + end + 1);
            let complete = std::mem::replace(&mut self.partial, rest);
            let lines = complete.split(|&byte| byte == b'\n');
            let lines: Vec<_> =
                lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
            if !lines.is_empty() {
                return Ok(lines);
            }
        }
    }
}

/// The state of a stream of events.
struct Following {
    tail: Tail,
    due: VecDeque<Event>,
    /// Whether the events that are due are the last ones.
    is_over: bool,
    /// Whether the server is to end.
    end: watch::Receiver<bool>,
}

/// Returns the updates of a run as events, from its start. The last one is `end`, or `closing` if the server is to
/// end.
pub fn events(
    tail: Tail,
    end: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let state = Following { tail, due: VecDeque::new(), is_over: false, end };
    unfold(state, |mut state| async move {
        loop {
            if let Some(event) = state.due.pop_front() {
                return Some((Ok(event), state));
            }
            if state.is_over {
                return None;
            }
            state.advance();
            if state.due.is_empty() {
                let wait = pin!(tokio::time::sleep(POLL_INTERVAL));
                let ended = pin!(state.end.changed());
                select(wait, ended).await;
            }
        }
    })
}

impl Following {
    /// Reads new lines. The file is in memory, or was written a moment ago, so that this does not block.
    fn advance(&mut self) {
        if *self.end.borrow() {
            return self.finish(Event::default().event("closing").data("{}"));
        }
        // A program writes its last line before it releases the lock.
        let is_running = is_locked(&self.tail.file);
        let Ok(lines) = self.tail.read() else {
            return self.finish(end_event(&End { ending: KILLED.to_owned(), run: None }));
        };
        if lines.is_empty() && !is_running {
            return self.finish(end_event(&End { ending: KILLED.to_owned(), run: None }));
        }
        for line in lines {
            match line {
                Line::Head(_) => {}
                Line::Update(update) => {
                    let data = serde_json::to_string(&update).unwrap_or_default();
                    self.due.push_back(Event::default().data(data));
                }
                Line::End(end) => return self.finish(end_event(&end)),
            }
        }
    }

    fn finish(&mut self, event: Event) {
        self.due.push_back(event);
        self.is_over = true;
    }
}

fn end_event(end: &End) -> Event {
    Event::default().event("end").data(serde_json::to_string(end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn line(line: &Line) -> String {
        serde_json::to_string(line).expect("JSON") + "\n"
    }

    fn head(subject: &str) -> Line {
        let (format, subject) = (FORMAT.to_owned(), subject.to_owned());
        Line::Head(Head { format, subject, ..Head::default() })
    }

    fn update(seconds: f64) -> Line {
        Line::Update(Update { seconds, ..Update::default() })
    }

    /// Returns a directory with the locked file of a process, and the file.
    fn publish(pid: u32, text: &str) -> (tempfile::TempDir, File) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("own");
        let mut file = File::create(folder.path().join(format!("{pid}.live"))).expect("room");
        file.lock().expect("a lock");
        file.write_all(text.as_bytes()).expect("room");
        (folder, file)
    }

    #[test]
    fn lines_are_read_once_they_are_complete() {
        let (folder, mut file) = publish(7, &(line(&head("x")) + "{\"upd"));
        let (running, mut tail) = open(folder.path(), 7).expect("it runs");
        assert_eq!((running.pid, running.head.subject.as_str()), (7, "x"));
        assert_eq!(tail.read().expect("readable"), [head("x")]);
        assert!(tail.read().expect("readable").is_empty());
        let rest = line(&update(1.5));
        file.write_all(rest.trim_start_matches("{\"upd").as_bytes()).expect("room");
        file.write_all(b"not a line\n").expect("room");
        assert_eq!(tail.read().expect("readable"), [update(1.5)]);
        let (running, _) = open(folder.path(), 7).expect("it runs");
        assert_eq!(Line::Update(running.latest), update(1.5));
    }

    #[test]
    fn many_lines_are_read_in_turn() {
        let lines: String = (0..5000).map(|n| line(&update(f64::from(n)))).collect();
        let (folder, _file) = publish(7, &(line(&head("x")) + &lines));
        let (running, mut tail) = open(folder.path(), 7).expect("it runs");
        assert_eq!(Line::Update(running.latest), update(4999.0));
        let mut count = 0;
        loop {
            let lines = tail.read().expect("readable");
            if lines.is_empty() {
                break;
            }
            count += lines.len();
        }
        assert_eq!(count, 5001);
    }

    #[test]
    fn files_of_killed_programs_are_removed() {
        let (folder, file) = publish(7, &line(&head("x")));
        assert_eq!(list(folder.path()).len(), 1);
        drop(file);
        assert!(list(folder.path()).is_empty() && open(folder.path(), 7).is_none());
        assert!(!folder.path().join("7.live").exists());
    }

    #[test]
    fn the_file_of_a_new_process_is_not_removed() {
        let (folder, old) = publish(7, &line(&head("old")));
        let path = folder.path().join("7.live");
        fs::rename(&path, folder.path().join("kept")).expect("own folder");
        fs::write(&path, line(&head("new"))).expect("room");
        remove_if_same(&path, &old);
        assert!(path.exists());
        remove_if_same(&path, &File::open(&path).expect("there"));
        assert!(!path.exists());
    }

    #[test]
    fn directories_that_others_can_write_are_ignored() {
        let (folder, _file) = publish(7, &line(&head("x")));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("own");
        assert!(list(folder.path()).is_empty() && open(folder.path(), 7).is_none());
        assert!(list(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_not_read_forever() {
        let (folder, _file) = publish(7, &"x".repeat(2 * MAX_LINE_BYTES));
        assert!(open(folder.path(), 7).is_none());
    }
}
