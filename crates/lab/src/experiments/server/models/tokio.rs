//! Tasks of tokio. Each is a future written by hand, as small as it can be: a connection, and what has begun on
//! it. What is read goes into a buffer on the worker's stack, and a timer is there only while it runs.

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::{Sleep, sleep};

use super::super::exhaustion::{Trouble, concerns_one};
use super::super::http::{Answer, Kept, PAUSE, Stream, Waits, advance};
use super::until_told;

/// Serves with a worker for each CPU.
///
/// # Errors
/// When the runtime cannot be started.
pub fn serve(listener: TcpListener, answer: Answer) -> io::Result<()> {
    let runtime = Builder::new_multi_thread().enable_io().enable_time().build()?;
    listener.set_nonblocking(true)?;
    let trouble = Trouble::watch(None);
    runtime.spawn(async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => accept(&listener, answer, &trouble).await,
            Err(error) => trouble.tell("register", &error),
        }
    });
    until_told()
}

async fn accept(listener: &tokio::net::TcpListener, answer: Answer, trouble: &Trouble) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if stream.set_nodelay(true).is_err() => {}
            Ok((stream, _)) => match answer {
                Answer::Hello => drop(tokio::spawn(Hello { stream, kept: Kept::default() })),
                Answer::Wait => {
                    drop(tokio::spawn(Wait { stream, kept: Kept::default(), pause: None }));
                }
            },
            Err(error) if concerns_one(&error) => {}
            // Out of descriptors, above all: those that are open go on.
            Err(error) => {
                trouble.tell("accept", &error);
                sleep(PAUSE).await;
            }
        }
    }
}

/// A connection that is answered at once.
struct Hello {
    stream: TcpStream,
    kept: Kept,
}

impl Future for Hello {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, kept } = self.get_mut();
        let mut stream = OnWorker { stream, context };
        match advance(kept, &mut stream, Answer::Hello) {
            None => Poll::Ready(()),
            // Whoever has had its turn comes behind the others; if there is nothing, it is woken then.
            Some(waits) => stream.wait(waits),
        }
    }
}

/// A connection that is answered after a pause.
struct Wait {
    stream: TcpStream,
    kept: Kept,
    /// It is apart, since most connections have none.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, kept, pause } = self.get_mut();
        loop {
            if let Some(running) = pause {
                ready!(running.as_mut().poll(context));
                *pause = None;
            }
            let mut stream = OnWorker { stream, context };
            match advance(kept, &mut stream, Answer::Wait) {
                None => return Poll::Ready(()),
                Some(Waits::Pause) => *pause = Some(Box::pin(sleep(PAUSE))),
                Some(waits) => return stream.wait(waits),
            }
        }
    }
}

/// A connection, and who is to be woken when it can go on.
struct OnWorker<'a, 'b> {
    stream: &'a mut TcpStream,
    context: &'a mut Context<'b>,
}

impl OnWorker<'_, '_> {
    /// Has the task woken when it can go on: at once if it can already, behind the others.
    fn wait(&mut self, waits: Waits) -> Poll<()> {
        let ready = match waits {
            Waits::Read => self.stream.poll_read_ready(self.context),
            Waits::Write => self.stream.poll_write_ready(self.context),
            Waits::Pause => Poll::Pending,
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

impl Read for OnWorker<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        let read = pin!(&mut *self.stream).poll_read(self.context, &mut buffer);
        would_block(read.map_ok(|()| buffer.filled().len()))
    }
}

impl Write for OnWorker<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        would_block(pin!(&mut *self.stream).poll_write(self.context, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for OnWorker<'_, '_> {
    fn finish(&mut self) -> io::Result<()> {
        // It is a system call that does not wait.
        would_block(pin!(&mut *self.stream).poll_shutdown(self.context))
    }
}
