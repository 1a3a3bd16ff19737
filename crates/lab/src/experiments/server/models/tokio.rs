//! Server with a task of tokio for each connection. The task is a hand-written future, as small as
//! possible: a connection, its state and, if responses are delayed, a pointer to a timer that
//! exists only while it runs. Reads go into a buffer on the worker's stack.

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::{Sleep, sleep};

use super::super::http::{ConnectionState, HANDLER_DELAY, Handler, Stream, WaitFor, advance};
use super::super::limit_reporter::{LimitReporter, is_connection_error};
use super::wait_for_stdin_eof;

/// Serves connections with one worker thread for each CPU until standard input ends.
///
/// # Errors
/// Returns an error if the runtime cannot be started, `listener` cannot be made non-blocking, or
/// standard input cannot be read.
pub fn serve(listener: TcpListener, handler: Handler) -> io::Result<()> {
    let runtime = Builder::new_multi_thread().enable_io().enable_time().build()?;
    listener.set_nonblocking(true)?;
    let reporter = LimitReporter::watch(None);
    runtime.spawn(async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => accept(&listener, handler, &reporter).await,
            Err(error) => reporter.report("register", &error),
        }
    });
    wait_for_stdin_eof()
}

async fn accept(listener: &tokio::net::TcpListener, handler: Handler, reporter: &LimitReporter) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if stream.set_nodelay(true).is_err() => {}
            Ok((stream, _)) => match handler {
                Handler::Hello => {
                    drop(tokio::spawn(Hello { stream, state: ConnectionState::default() }));
                }
                Handler::Wait => {
                    drop(tokio::spawn(Wait {
                        stream,
                        state: ConnectionState::default(),
                        pause: None,
                    }));
                }
            },
            Err(error) if is_connection_error(&error) => {}
            // Usually the process is out of descriptors. Open connections are still served.
            Err(error) => {
                reporter.report("accept", &error);
                sleep(HANDLER_DELAY).await;
            }
        }
    }
}

/// Task that serves a connection with [`Handler::Hello`].
struct Hello {
    stream: TcpStream,
    state: ConnectionState,
}

impl Future for Hello {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, state } = self.get_mut();
        let mut stream = WorkerStream { stream, context };
        match advance(state, &mut stream, Handler::Hello) {
            None => Poll::Ready(()),
            // Let other tasks run before this one continues.
            Some(waits) => stream.wait(waits),
        }
    }
}

/// Task that serves a connection with [`Handler::Wait`].
struct Wait {
    stream: TcpStream,
    state: ConnectionState,
    /// Timer of the current delay, if any. Boxed, because most connections have none.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, state, pause } = self.get_mut();
        loop {
            if let Some(running) = pause {
                ready!(running.as_mut().poll(context));
                *pause = None;
            }
            let mut stream = WorkerStream { stream, context };
            match advance(state, &mut stream, Handler::Wait) {
                None => return Poll::Ready(()),
                Some(WaitFor::Pause) => *pause = Some(Box::pin(sleep(HANDLER_DELAY))),
                Some(waits) => return stream.wait(waits),
            }
        }
    }
}

/// A connection, and the context of the task that serves it, which is woken when the connection can
/// be read or written.
struct WorkerStream<'a, 'b> {
    stream: &'a mut TcpStream,
    context: &'a mut Context<'b>,
}

impl WorkerStream<'_, '_> {
    /// Arranges for the task to be woken when the connection can be read or written, at once if it
    /// already can, and returns `Pending`. For a pause, which needs a timer, only returns
    /// `Pending`.
    fn wait(&mut self, waits: WaitFor) -> Poll<()> {
        let ready = match waits {
            WaitFor::Read => self.stream.poll_read_ready(self.context),
            WaitFor::Write => self.stream.poll_write_ready(self.context),
            WaitFor::Pause => Poll::Pending,
        };
        if ready.is_ready() {
            self.context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

fn would_block<T>(done: Poll<io::Result<T>>) -> io::Result<T> {
    match done {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for WorkerStream<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        let read = pin!(&mut *self.stream).poll_read(self.context, &mut buffer);
        would_block(read.map_ok(|()| buffer.filled().len()))
    }
}

impl Write for WorkerStream<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        would_block(pin!(&mut *self.stream).poll_write(self.context, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for WorkerStream<'_, '_> {
    fn finish(&mut self) -> io::Result<()> {
        // `poll_shutdown` makes a system call that does not block.
        would_block(pin!(&mut *self.stream).poll_shutdown(self.context))
    }
}
