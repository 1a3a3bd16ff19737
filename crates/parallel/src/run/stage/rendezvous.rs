//! Connects the processes of neighbouring stages.
//!
//! Two neighbours share a pipe, whose inode number is unique. The first process listens on an
//! abstract socket named after that number, and the other one connects. A neighbour counts as
//! absent if it does not arrive in time, or if it has ended, which closes its end of the pipe.
//!
//! Each stage sends to the next one the words of all stages so far and the standard input of the
//! first. The last stage answers with a [`Verdict`], which each stage passes on to the one before
//! it.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::stdio::dup2_stdin;

use super::words::Words;
use crate::plan::script::Position;

/// The decision of the last stage for all stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Each process executes its own command.
    AsWritten,
    /// The last process runs all stages.
    TakenOver,
}

impl Verdict {
    fn byte(self) -> u8 {
        match self {
            Self::AsWritten => b'w',
            Self::TakenOver => b't',
        }
    }
}

/// Number of attempts to listen or connect. Between binding a socket and listening on it, a process
/// refuses connections.
const RETRIES: u32 = 20;
/// Delay between two attempts.
const RETRY_AFTER: Duration = Duration::from_micros(50);

/// The state of the connection to a neighbour.
#[derive(Debug)]
enum Connection {
    Listening(UnixListener),
    Connected(UnixStream),
    /// There is no connection, and none is awaited.
    Absent,
}

impl Connection {
    /// Connects to the process at the other end of a pipe, or listens until that process connects.
    /// Returns `Absent` if that fails, or if the file is not a pipe.
    fn at(pipe: BorrowedFd<'_>) -> Self {
        Self::begin(pipe).unwrap_or(Self::Absent)
    }

    fn begin(pipe: BorrowedFd<'_>) -> io::Result<Self> {
        let stat = rustix::fs::fstat(pipe)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
            return Ok(Self::Absent);
        }
        let user = rustix::process::geteuid().as_raw();
        let name = format!("contend-{user}-{}-{}", stat.st_dev, stat.st_ino);
        let address = SocketAddr::from_abstract_name(name)?;
        for _ in 0..RETRIES {
            match UnixListener::bind_addr(&address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                listener => return listener.map(Self::Listening),
            }
            match UnixStream::connect_addr(&address) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::thread::sleep(RETRY_AFTER);
                }
                stream => return Ok(Self::of(stream?)),
            }
        }
        Ok(Self::Absent)
    }

    /// Returns the connection over `stream`, or `Absent` unless the other process certainly belongs
    /// to the same user.
    fn of(stream: UnixStream) -> Self {
        match socket_peercred(&stream) {
            Ok(peer) if peer.uid == rustix::process::geteuid() => Self::Connected(stream),
            _ => Self::Absent,
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Listening(_))
    }

    fn stream(&mut self) -> Option<&mut UnixStream> {
        match self {
            Self::Connected(stream) => Some(stream),
            _ => None,
        }
    }
}

/// Waits until each of the given neighbours has connected or ended, for at most `timeout`. A
/// neighbour that has not connected after that counts as absent.
fn await_all(connections: &mut [(&mut Connection, BorrowedFd<'_>)], timeout: Duration) {
    let begun = Instant::now();
    while connections.iter().any(|(connection, _)| connection.is_open()) {
        let rest = timeout.saturating_sub(begun.elapsed());
        if rest.is_zero() || poll_once(connections, rest).is_err() {
            connections
                .iter_mut()
                .filter(|(it, _)| it.is_open())
                .for_each(|(it, _)| **it = Connection::Absent);
        }
    }
}

fn poll_once(
    connections: &mut [(&mut Connection, BorrowedFd<'_>)],
    rest: Duration,
) -> rustix::io::Result<()> {
    let (came, gone): (Vec<bool>, Vec<bool>) = {
        let mut fds = Vec::new();
        for (connection, pipe) in connections.iter() {
            if let Connection::Listening(listener) = &**connection {
                fds.push(PollFd::new(listener, PollFlags::IN));
                fds.push(PollFd::new(pipe, PollFlags::empty()));
            }
        }
        match poll(&mut fds, Timespec::try_from(rest).ok().as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            result => result?,
        };
        let of = |fd: &PollFd<'_>| !fd.revents().is_empty();
        fds.chunks(2).map(|pair| (of(&pair[0]), of(&pair[1]))).unzip()
    };
    let open = connections.iter_mut().filter(|(connection, _)| connection.is_open());
    for ((connection, _), (came, gone)) in open.zip(came.into_iter().zip(gone)) {
        if let (Connection::Listening(listener), true) = (&**connection, came) {
            **connection = match listener.accept() {
                Ok((stream, _)) => Connection::of(stream),
                Err(_) => Connection::Absent,
            };
        } else if gone {
            **connection = Connection::Absent;
        }
    }
    Ok(())
}

/// The connections to the neighbours of a stage.
#[derive(Debug)]
pub(super) struct Neighbours {
    previous: Connection,
    next: Connection,
    /// Standard input of the first stage. `None` if this stage is the first one, or once that input
    /// has been used or sent.
    first_input: Option<OwnedFd>,
    /// This process's own standard input, while that of the first stage replaces it.
    own_input: Option<OwnedFd>,
}

impl Neighbours {
    /// Connects to the neighbours of a stage at the given position. Waits for them up to
    /// `timeout`.
    pub(super) fn connect(position: Position, timeout: Duration) -> Self {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let (stdin, stdout) = (stdin.as_fd(), stdout.as_fd());
        let at = |has: bool, pipe| if has { Connection::at(pipe) } else { Connection::Absent };
        let mut previous = at(position.has_previous(), stdin);
        let mut next = at(position.has_next(), stdout);
        await_all(&mut [(&mut previous, stdin), (&mut next, stdout)], timeout);
        Self { previous, next, first_input: None, own_input: None }
    }

    /// Returns the words of the stages before this one that can be taken over with it. There may be
    /// none.
    pub(super) fn stages_before(&mut self) -> Vec<Words> {
        let received = self.previous.stream().and_then(|stream| receive(stream).ok().flatten());
        if let Some((stages, input)) = received {
            self.first_input = Some(input);
            stages
        } else {
            self.previous = Connection::Absent;
            Vec::new()
        }
    }

    /// Sends `stages`, which end with this one, to the next stage and waits for its verdict.
    /// Returns `None` if there is no next stage that can be reached. If the next stage ends without
    /// a verdict, returns `Verdict::AsWritten`: the stages then find that their output pipe has no
    /// reader.
    pub(super) fn ask_next(&mut self, stages: &[Words]) -> Option<Verdict> {
        let stream = self.next.stream()?;
        let stdin = io::stdin();
        let input = self.first_input.as_ref().map_or(stdin.as_fd(), AsFd::as_fd);
        if send(stream, stages, input).is_err() {
            return None;
        }
        self.first_input = None;
        let mut verdict = [0];
        match stream.read_exact(&mut verdict) {
            Ok(()) if verdict[0] == Verdict::TakenOver.byte() => Some(Verdict::TakenOver),
            _ => Some(Verdict::AsWritten),
        }
    }

    /// Sends the verdict to the previous stage, if any, and closes the connection. Also closes this
    /// stage's own standard input if that has been replaced.
    pub(super) fn answer(&mut self, verdict: Verdict) {
        if let Some(stream) = self.previous.stream() {
            let _ = stream.write_all(&[verdict.byte()]); // the process may have been killed
        }
        self.previous = Connection::Absent;
        self.own_input = None;
    }

    /// Replaces standard input with that of the first stage. Returns whether standard input is that
    /// of the first stage now.
    pub(super) fn use_first_input(&mut self) -> bool {
        let Some(input) = self.first_input.take() else { return true };
        let own = io::stdin().as_fd().try_clone_to_owned();
        match own.and_then(|own| Ok(dup2_stdin(&input).map(|()| own)?)) {
            Ok(own) => {
                self.own_input = Some(own);
                true
            }
            Err(_) => false,
        }
    }

    /// Restores this stage's own standard input, if another one has replaced it.
    pub(super) fn put_own_input_back(&mut self) {
        self.first_input = None;
        if let Some(own) = self.own_input.take() {
            let _ = dup2_stdin(&own); // cannot fail: descriptor 0 is open
        }
    }
}

/// Sends the words of the given stages, and the standard input of the first one.
fn send(stream: &mut UnixStream, stages: &[Words], input: BorrowedFd<'_>) -> io::Result<()> {
    let mut message = stages.len().to_le_bytes().to_vec();
    for stage in stages {
        stage.write(&mut message);
    }
    let length = message.len().to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [input];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    // The descriptor is sent with the first bytes, for which a new connection always has room.
    let sent = sendmsg(&*stream, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL)?;
    if sent != length.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    stream.write_all(&message)
}

/// Receives the words of stages and the standard input of the first one. Returns `None` if the
/// message is incomplete or malformed.
fn receive(stream: &mut UnixStream) -> io::Result<Option<(Vec<Words>, OwnedFd)>> {
    let mut length = [0; size_of::<usize>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(&*stream, &mut [IoSliceMut::new(&mut length)], &mut control, flags)?;
    let mut fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let (true, Some(input)) = (got.bytes == length.len(), fds.next()) else { return Ok(None) };
    let mut message = Vec::new();
    let length = usize::from_le_bytes(length) as u64;
    io::Read::by_ref(stream).take(length).read_to_end(&mut message)?;
    Ok(read_stages(&message).map(|stages| (stages, input)))
}

fn read_stages(message: &[u8]) -> Option<Vec<Words>> {
    let (count, mut rest) = message.split_first_chunk()?;
    (0..usize::from_le_bytes(*count)).map(|_| Words::read(&mut rest)).collect()
}
