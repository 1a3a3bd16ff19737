//! What a descriptor leads to: the stage's own input or output, or something else.

use std::os::unix::fs::FileTypeExt;
use std::rc::Rc;

use contend_sys::Pid;
use contend_sys::pipe::{Fill, PipeProbe};
use contend_sys::procfs;
use contend_sys::syscall::{Waiting, pollfds};

use super::Wait;

/// One end of a stage, as it was when the stage began.
#[derive(Debug, Clone)]
pub struct End {
    /// Where the descriptor's link in `/proc` leads: `pipe:[123]`, `/dev/pts/0`, a path.
    link: String,
    /// Reading or writing it can wait for another process or person.
    stream: bool,
    /// It is a regular file.
    file: bool,
    /// A look into it, where it is a pipe.
    probe: Option<Rc<PipeProbe>>,
}

impl End {
    /// What descriptor `fd` of `pid` leads to; `None` when it is closed or not readable.
    pub fn of(pid: Pid, fd: i32) -> Option<Self> {
        let path = fd_path(pid, fd);
        let link = std::fs::read_link(&path).ok()?.to_str()?.to_owned();
        let kind = std::fs::metadata(&path).ok()?.file_type();
        let stream = kind.is_fifo() || kind.is_socket() || is_terminal(&link);
        let probe = kind.is_fifo().then(|| PipeProbe::open(pid, fd).ok().map(Rc::new)).flatten();
        Some(Self { link, stream, file: kind.is_file(), probe })
    }

    /// Whether one can wait for what is at the other side.
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.file
    }

    /// Counts the bytes inside, where it is a pipe that this user may look into.
    pub fn fill(&self) -> Option<Fill> {
        self.probe.as_ref()?.fill().ok()
    }
}

/// Both ends of a stage.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// Its standard input.
    pub input: Option<End>,
    /// Its standard output.
    pub output: Option<End>,
}

/// What a descriptor of a waiting task is to its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Input,
    Output,
    Pipe,
    Socket,
    Terminal,
    File,
    Other,
}

impl Ends {
    /// The ends of the process as they are now.
    pub fn of(pid: Pid) -> Self {
        Self { input: End::of(pid, 0), output: End::of(pid, 1) }
    }

    /// Whether the process's standard output is that of the stage, and a pipe.
    pub fn is_output_of(&self, pid: Pid) -> bool {
        let output = self.output.as_ref().filter(|output| output.probe.is_some());
        output.is_some_and(|output| {
            std::fs::read_link(fd_path(pid, 1))
                .is_ok_and(|link| link.to_str() == Some(&output.link))
        })
    }

    /// What a task of `pid` waits for in this call.
    pub fn wait_of(&self, pid: Pid, waiting: Waiting) -> Wait {
        match waiting {
            Waiting::Read(fd) => self.read_wait(self.target(pid, fd)),
            Waiting::Write(fd) => self.write_wait(self.target(pid, fd)),
            Waiting::Move(from, to) => self.move_wait(self.target(pid, from), self.target(pid, to)),
            Waiting::Poll { address, count } => self.poll_wait(pid, address, count),
            Waiting::Select { count, readable, writable } => {
                let readable = bits(pid, readable, count);
                let writable = bits(pid, writable, count);
                self.ready_wait(
                    pid,
                    readable
                        .map(|fd| (fd, true, false))
                        .chain(writable.map(|fd| (fd, false, true))),
                )
            }
            Waiting::Epoll(fd) => self.epoll_wait(pid, fd),
            Waiting::Sleep => Wait::Sleep,
            Waiting::Lock => Wait::Lock,
            Waiting::Child => Wait::Child,
            Waiting::Network => Wait::Network,
            Waiting::Disk => Wait::Disk,
            Waiting::Signal | Waiting::Other(_) => Wait::Other,
        }
    }

    /// A guess for a task whose calls may not be read: what its pipes allow.
    pub fn wait_by_fill(&self) -> Wait {
        let fill = |end: &Option<End>| end.as_ref().and_then(End::fill);
        match (fill(&self.input), fill(&self.output)) {
            (_, Some(output)) if output.bytes >= output.capacity => Wait::Blocked,
            (Some(input), _) if input.bytes == 0 => Wait::Starved,
            _ => Wait::Unknown,
        }
    }

    fn read_wait(&self, target: Target) -> Wait {
        match target {
            Target::Input => Wait::Starved,
            // A terminal is both ends at once.
            Target::Output if self.is_input_too() => Wait::Starved,
            Target::Output | Target::Pipe => Wait::Pipe,
            other => other.plain_wait(),
        }
    }

    fn write_wait(&self, target: Target) -> Wait {
        match target {
            Target::Output => Wait::Blocked,
            Target::Input if self.is_input_too() => Wait::Blocked,
            Target::Input | Target::Pipe => Wait::Pipe,
            other => other.plain_wait(),
        }
    }

    fn is_input_too(&self) -> bool {
        matches!((&self.input, &self.output), (Some(a), Some(b)) if a.link == b.link)
    }

    fn move_wait(&self, from: Target, to: Target) -> Wait {
        match (from, to) {
            (Target::Input, Target::Output) => match self.wait_by_fill() {
                Wait::Blocked => Wait::Blocked,
                _ => Wait::Starved,
            },
            (Target::Input, _) => Wait::Starved,
            (_, Target::Output) => Wait::Blocked,
            (from, _) => self.read_wait(from),
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

    /// Waiting for any of several descriptors: the stage's ends decide if among them,
    /// unless there is a socket too.
    fn ready_wait(&self, pid: Pid, fds: impl Iterator<Item = (i32, bool, bool)>) -> Wait {
        let (mut starved, mut blocked, mut network, mut any) = (false, false, false, false);
        for (fd, read, write) in fds {
            let target = self.target(pid, fd);
            any = true;
            starved |= read && self.read_wait(target) == Wait::Starved;
            blocked |= write && self.write_wait(target) == Wait::Blocked;
            network |= target == Target::Socket;
        }
        match (starved, blocked, network) {
            (_, _, true) => Wait::Network,
            (true, true, _) => self.move_wait(Target::Input, Target::Output),
            (true, false, _) => Wait::Starved,
            (false, true, _) => Wait::Blocked,
            (false, false, _) if any => Wait::Poll,
            (false, false, _) => Wait::Sleep,
        }
    }

    fn target(&self, pid: Pid, fd: i32) -> Target {
        let path = fd_path(pid, fd);
        let Ok(link) = std::fs::read_link(&path) else {
            return Target::Other;
        };
        let Some(link) = link.to_str() else {
            return Target::File;
        };
        let is = |end: &Option<End>| end.as_ref().is_some_and(|end| end.stream && end.link == link);
        if is(&self.input) {
            Target::Input
        } else if is(&self.output) {
            Target::Output
        } else if link.starts_with("pipe:") {
            Target::Pipe
        } else if link.starts_with("socket:") {
            Target::Socket
        } else if link.starts_with("anon_inode:") {
            Target::Other
        } else if is_terminal(link) {
            Target::Terminal
        } else if std::fs::metadata(&path).is_ok_and(|data| data.file_type().is_fifo()) {
            Target::Pipe
        } else {
            Target::File
        }
    }
}

impl Target {
    fn plain_wait(self) -> Wait {
        match self {
            Self::Input | Self::Output | Self::Pipe => Wait::Pipe,
            Self::Socket => Wait::Network,
            Self::Terminal => Wait::Terminal,
            Self::File => Wait::Disk,
            Self::Other => Wait::Other,
        }
    }
}

fn fd_path(pid: Pid, fd: i32) -> String {
    format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero())
}

fn is_terminal(link: &str) -> bool {
    link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") || link == "/dev/console"
}

/// Descriptors in an `fd_set` of another process.
fn bits(pid: Pid, address: u64, count: u64) -> impl Iterator<Item = i32> {
    let mut set = [0; 128];
    let length = usize::try_from(count.div_ceil(8)).unwrap_or(0).min(set.len());
    let read = match address {
        0 => 0,
        _ => contend_sys::memory::read(pid, address, &mut set[..length]).unwrap_or(0),
    };
    (0_i32..)
        .zip((0..read * 8).map(move |bit| set[bit / 8] & (1 << (bit % 8)) != 0))
        .filter_map(|(fd, is_set)| is_set.then_some(fd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn an_end_of_the_stage_is_told_from_another_pipe() {
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
        // Moving from an empty input to an empty output can only wait for the input.
        assert_eq!(of(Waiting::Move(input.as_raw_fd(), output.as_raw_fd())), Wait::Starved);
        let array: Vec<u8> = [(other.as_raw_fd(), 1_i16), (input.as_raw_fd(), 1)]
            .iter()
            .flat_map(|(fd, events)| {
                fd.to_ne_bytes().into_iter().chain(events.to_ne_bytes()).chain([0, 0])
            })
            .collect();
        let address = array.as_ptr().addr() as u64;
        assert_eq!(of(Waiting::Poll { address, count: 2 }), Wait::Starved);
        assert_eq!(of(Waiting::Poll { address, count: 1 }), Wait::Poll);
        assert_eq!(of(Waiting::Poll { address, count: 0 }), Wait::Sleep);
    }
}
