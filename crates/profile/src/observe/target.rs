//! Classifies waits by the object that a descriptor refers to: the stage's own input or output, or
//! another one.

use std::os::unix::fs::FileTypeExt;
use std::rc::Rc;

use contend_sys::Pid;
use contend_sys::descriptor::{Kind, is_terminal};
use contend_sys::pipe::{Fill, PipeProbe};
use contend_sys::procfs;
use contend_sys::syscall::{Waiting, pollfds};

use super::Wait;

/// The standard input or output of a stage, as of the stage's start.
#[derive(Debug, Clone)]
pub struct End {
    /// The target of the descriptor's link in `/proc`: `pipe:[123]`, `/dev/pts/0`, a path.
    link: String,
    /// Whether reading or writing the object can wait for another process or a person.
    stream: bool,
    /// Whether the object is a regular file.
    file: bool,
    /// The probe that reads the fill of the pipe; `None` if the object is not a pipe, or cannot be
    /// opened.
    probe: Option<Rc<PipeProbe>>,
}

impl End {
    /// Returns the object that descriptor `fd` of `pid` refers to, or `None` if the descriptor is
    /// closed or cannot be examined.
    pub fn of(pid: Pid, fd: i32) -> Option<Self> {
        let path = fd_path(pid, fd);
        let link = std::fs::read_link(&path).ok()?.to_str()?.to_owned();
        let kind = std::fs::metadata(&path).ok()?.file_type();
        let stream = kind.is_fifo() || kind.is_socket() || is_terminal(&link);
        let probe = kind.is_fifo().then(|| PipeProbe::open(pid, fd).ok().map(Rc::new)).flatten();
        Some(Self { link, stream, file: kind.is_file(), probe })
    }

    /// Returns whether the object is a pipe, a socket or a terminal, where a task can wait for the
    /// other side.
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// Returns whether the object is a regular file.
    pub fn is_file(&self) -> bool {
        self.file
    }

    /// Returns the number of bytes in the pipe and its capacity, or `None` if the object is not a
    /// pipe or its fill cannot be read.
    pub fn fill(&self) -> Option<Fill> {
        self.probe.as_ref()?.fill().ok()
    }
}

/// The standard input and output of a stage.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// Standard input; `None` if it is closed or cannot be examined.
    pub input: Option<End>,
    /// Standard output; `None` if it is closed or cannot be examined.
    pub output: Option<End>,
}

/// The object that a descriptor of a waiting task refers to, in relation to the task's stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Target {
    kind: Kind,
    /// Whether the object is the stage's input.
    input: bool,
    /// Whether the object is the stage's output. A terminal is often both.
    output: bool,
}

impl Ends {
    /// Returns the current standard input and output of process `pid`.
    pub fn of(pid: Pid) -> Self {
        Self { input: End::of(pid, 0), output: End::of(pid, 1) }
    }

    /// Returns whether the standard output of process `pid` is a pipe, and the same as that of the
    /// stage. Returns `false` if this cannot be determined.
    pub fn is_output_of(&self, pid: Pid) -> bool {
        let output = self.output.as_ref().filter(|output| output.probe.is_some());
        output.is_some_and(|output| {
            std::fs::read_link(fd_path(pid, 1))
                .is_ok_and(|link| link.to_str() == Some(&output.link))
        })
    }

    /// Classifies what a task of process `pid` waits for in the call `waiting`.
    pub fn wait_of(&self, pid: Pid, waiting: Waiting) -> Wait {
        match waiting {
            Waiting::Read(fd) => self.target(pid, fd).read_wait(),
            Waiting::Write(fd) => self.target(pid, fd).write_wait(),
            Waiting::Move(from, to) => self.move_wait(self.target(pid, from), self.target(pid, to)),
            Waiting::Poll { address, count } => self.poll_wait(pid, address, count),
            Waiting::Select { count, readable, writable } => {
                let sets = bits(pid, readable, count).zip(bits(pid, writable, count));
                sets.map_or(Wait::Poll, |(readable, writable)| {
                    let readable = readable.into_iter().map(|fd| (fd, true, false));
                    let writable = writable.into_iter().map(|fd| (fd, false, true));
                    self.ready_wait(pid, readable.chain(writable))
                })
            }
            Waiting::Epoll(fd) => self.epoll_wait(pid, fd),
            Waiting::Sleep => Wait::Sleep,
            Waiting::Lock => Wait::Lock,
            Waiting::Child => Wait::Child,
            Waiting::Network => Wait::Network,
            Waiting::Disk => Wait::Disk,
            Waiting::Open { folder, path } => open_wait(pid, folder, path),
            Waiting::Signal | Waiting::Other(_) => Wait::Other,
            Waiting::Restarted => Wait::Unknown,
        }
    }

    /// Guesses from the fill of the stage's pipes what a task waits for. This is needed if its
    /// system call cannot be read, or may wait for either pipe. Returns [`Wait::Unknown`] if
    /// neither pipe explains it.
    pub fn wait_by_fill(&self) -> Wait {
        let fill = |end: &Option<End>| end.as_ref().and_then(End::fill);
        match (fill(&self.input), fill(&self.output)) {
            (_, Some(output)) if output.bytes >= output.capacity => Wait::Blocked,
            (Some(input), _) if input.bytes == 0 => Wait::Starved,
            _ => Wait::Unknown,
        }
    }

    fn move_wait(&self, from: Target, to: Target) -> Wait {
        match (from.input, to.output) {
            (true, true) => match self.wait_by_fill() {
                Wait::Blocked => Wait::Blocked,
                _ => Wait::Starved,
            },
            (true, false) => Wait::Starved,
            (false, true) => Wait::Blocked,
            (false, false) => from.read_wait(),
        }
    }

    fn poll_wait(&self, pid: Pid, address: u64, count: u64) -> Wait {
        if count == 0 {
            return Wait::Sleep;
        }
        let mut array = [0; 8 * 64];
        let length =
            array.len().min(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(8));
        match contend_sys::memory::read(pid, address, &mut array[..length]) {
            Ok(read) => self.ready_wait(pid, pollfds(&array[..read])),
            Err(_) => Wait::Poll,
        }
    }

    fn epoll_wait(&self, pid: Pid, fd: i32) -> Wait {
        let path = format!("/proc/{}/fdinfo/{fd}", pid.as_raw_nonzero());
        let mut buffer = [0; 4096];
        let Ok(text) = procfs::read_once(&path, &mut buffer) else {
            return Wait::Poll;
        };
        let text = String::from_utf8_lossy(text);
        let watched = text.lines().filter_map(|line| {
            let mut fields = line.strip_prefix("tfd:")?.split_whitespace();
            let fd = fields.next()?.parse().ok()?;
            let events = u32::from_str_radix(fields.nth(1)?, 16).ok()?;
            Some((fd, events & 1 != 0, events & 4 != 0))
        });
        self.ready_wait(pid, watched)
    }

    /// Classifies a wait for any of several descriptors. Each item of `fds` is a descriptor,
    /// whether the task waits to read from it, and whether it waits to write to it.
    fn ready_wait(&self, pid: Pid, fds: impl Iterator<Item = (i32, bool, bool)>) -> Wait {
        let mut waits = Vec::new();
        for (fd, read, write) in fds {
            let target = self.target(pid, fd);
            waits.extend(read.then(|| target.read_wait()));
            waits.extend(write.then(|| target.write_wait()));
            waits.extend((!read && !write).then_some(Wait::Poll));
        }
        match combine_waits(&waits) {
            CombinedWait::One(wait) => wait,
            CombinedWait::InputOrOutput => match self.wait_by_fill() {
                Wait::Blocked => Wait::Blocked,
                _ => Wait::Starved,
            },
        }
    }

    fn target(&self, pid: Pid, fd: i32) -> Target {
        let path = fd_path(pid, fd);
        let Ok(link) = std::fs::read_link(&path) else {
            return Target { kind: Kind::Unknown, input: false, output: false };
        };
        let link = link.to_string_lossy();
        let is = |end: &Option<End>| end.as_ref().is_some_and(|end| end.stream && end.link == link);
        Target { kind: Kind::of(&path, &link), input: is(&self.input), output: is(&self.output) }
    }
}

impl Target {
    fn read_wait(self) -> Wait {
        if self.input { Wait::Starved } else { wait_on(self.kind) }
    }

    fn write_wait(self) -> Wait {
        if self.output { Wait::Blocked } else { wait_on(self.kind) }
    }
}

/// Returns the wait caused by reading or writing an object of this kind that is neither the stage's
/// input nor its output.
fn wait_on(kind: Kind) -> Wait {
    match kind {
        Kind::Pipe => Wait::Pipe,
        Kind::Socket => Wait::Network,
        Kind::Terminal => Wait::Terminal,
        Kind::File => Wait::Disk,
        Kind::Timer => Wait::Sleep,
        Kind::Counter => Wait::Lock,
        Kind::Other => Wait::Other,
        Kind::Unknown => Wait::Unknown,
    }
}

/// The result of combining waits for several descriptors.
enum CombinedWait {
    One(Wait),
    /// The stage's input or output; the fill of the pipes decides which.
    InputOrOutput,
}

/// Combines the waits for any of several descriptors. A network peer has precedence, then the
/// stage's input and output. Descriptors that usually only wake the process up (timers, counters,
/// other pipes) decide only if there are no others. If the deciding waits differ, the result is
/// [`Wait::Poll`]. Without descriptors, it is a sleep.
fn combine_waits(waits: &[Wait]) -> CombinedWait {
    let has = |wait| waits.contains(&wait);
    if has(Wait::Network) {
        return CombinedWait::One(Wait::Network);
    }
    match (has(Wait::Starved), has(Wait::Blocked)) {
        (true, true) => return CombinedWait::InputOrOutput,
        (true, false) => return CombinedWait::One(Wait::Starved),
        (false, true) => return CombinedWait::One(Wait::Blocked),
        (false, false) => {}
    }
    let wakes = |wait: &&Wait| matches!(wait, Wait::Sleep | Wait::Lock | Wait::Pipe | Wait::Other);
    let mut main: Vec<Wait> = waits.iter().filter(|wait| !wakes(wait)).copied().collect();
    if main.is_empty() {
        main = waits.to_vec();
    }
    match main.first() {
        None => CombinedWait::One(Wait::Sleep), // only the timeout can end the call
        Some(&first) if main.iter().all(|&wait| wait == first) => CombinedWait::One(first),
        Some(_) => CombinedWait::One(Wait::Poll),
    }
}

/// Classifies the wait of a call that opens a file. Returns [`Wait::Unknown`] if the path cannot be
/// read, and [`Wait::Disk`] if the file cannot be examined.
fn open_wait(pid: Pid, folder: Option<i32>, address: u64) -> Wait {
    match Kind::opened_by(pid, folder, address) {
        None => Wait::Unknown,
        Some(Kind::Unknown) => Wait::Disk,
        Some(kind) => wait_on(kind),
    }
}

fn fd_path(pid: Pid, fd: i32) -> String {
    format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero())
}

/// Returns the descriptors in the `fd_set` of `count` bits, at most 1,024, at `address` in the
/// memory of `pid`. The set is empty if `address` is 0. Returns `None` if the memory cannot be
/// read.
fn bits(pid: Pid, address: u64, count: u64) -> Option<Vec<i32>> {
    let mut set = [0; 128];
    let length = usize::try_from(count.div_ceil(8)).unwrap_or(0).min(set.len());
    let read = match address {
        0 => 0,
        _ => contend_sys::memory::read(pid, address, &mut set[..length]).ok()?,
    };
    let is_set = |bit: &usize| set[bit / 8] & (1 << (bit % 8)) != 0;
    Some((0..read * 8).filter(is_set).filter_map(|bit| i32::try_from(bit).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_stage_s_ends_are_distinguished_from_other_pipes() {
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let (input, _w) = std::io::pipe().expect("a pipe");
        let (_r, output) = std::io::pipe().expect("a pipe");
        let (other, _w2) = std::io::pipe().expect("a pipe");
        let file = tempfile::tempfile().expect("a file");
        let ends = Ends {
            input: End::of(own, input.as_raw_fd()),
            output: End::of(own, output.as_raw_fd()),
        };
        let of = |waiting| ends.wait_of(own, waiting);
        assert_eq!(of(Waiting::Read(input.as_raw_fd())), Wait::Starved);
        assert_eq!(of(Waiting::Write(output.as_raw_fd())), Wait::Blocked);
        assert_eq!(of(Waiting::Read(other.as_raw_fd())), Wait::Pipe);
        assert_eq!(of(Waiting::Read(file.as_raw_fd())), Wait::Disk);
        // A call that moves data from an empty input to an empty output can only wait for the
        // input.
        assert_eq!(of(Waiting::Move(input.as_raw_fd(), output.as_raw_fd())), Wait::Starved);
        let array: Vec<u8> = [(other.as_raw_fd(), 1_i16), (input.as_raw_fd(), 1)]
            .iter()
            .flat_map(|(fd, events)| {
                fd.to_ne_bytes().into_iter().chain(events.to_ne_bytes()).chain([0, 0])
            })
            .collect();
        let address = array.as_ptr().addr() as u64;
        assert_eq!(of(Waiting::Poll { address, count: 2 }), Wait::Starved);
        assert_eq!(of(Waiting::Poll { address, count: 1 }), Wait::Pipe);
        assert_eq!(of(Waiting::Read(9_999)), Wait::Unknown, "no such descriptor");
        assert_eq!(of(Waiting::Restarted), Wait::Unknown);
        assert_eq!(of(Waiting::Poll { address, count: 0 }), Wait::Sleep);
    }

    #[test]
    fn a_poll_is_classified_by_its_most_significant_descriptor() {
        let of = |waits: &[Wait]| match combine_waits(waits) {
            CombinedWait::One(wait) => Some(wait),
            CombinedWait::InputOrOutput => None,
        };
        assert_eq!(of(&[Wait::Starved, Wait::Network]), Some(Wait::Network));
        assert_eq!(of(&[Wait::Starved, Wait::Blocked]), None);
        assert_eq!(of(&[Wait::Terminal, Wait::Starved]), Some(Wait::Starved));
        assert_eq!(of(&[Wait::Terminal, Wait::Pipe, Wait::Lock]), Some(Wait::Terminal));
        assert_eq!(of(&[Wait::Lock]), Some(Wait::Lock));
        assert_eq!(of(&[Wait::Lock, Wait::Sleep]), Some(Wait::Poll));
        assert_eq!(of(&[]), Some(Wait::Sleep));
    }
}
