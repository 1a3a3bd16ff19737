//! Channels of queued signals, each of which carries a number.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};
use contend_sys::signal::Wake;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::{ChannelConfig, Endpoint, Mechanism, WaitStrategy};
use crate::support::syscalls::{Call, Tally};

/// Real-time signals with a value, sent as by `sigqueue(3)`, but to a thread. The kernel limits the
/// number of a user's queued signals. So each message costs the sender one unit of credit, and the
/// receiver returns the credit by acknowledging messages in groups.
pub const MECHANISM: Mechanism = Mechanism {
    name: "signal",
    summary: "real-time signals that carry a number (sigqueue), at most 32 in flight",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: 7,
    between_threads: true,
    unavailable: |_| {
        let max =
            getrlimit(Resource::Sigpending).current.filter(|&max| max < MIN_PENDING_SIGNALS)?;
        Some(format!("RLIMIT_SIGPENDING limits queued signals to {max}"))
    },
    make: |config| {
        let threads = Arc::new(Shared::new([const { Line(AtomicU32::new(0)) }; 4])?);
        let endpoint = |who: usize| -> Box<dyn Endpoint> {
            Box::new(SignalEndpoint {
                config: config.clone(),
                who,
                threads: Arc::clone(&threads),
                wake: None,
                credit: WINDOW_MESSAGES,
                uncredited: 0,
                draft: [0; 8],
                message: [0; 8],
                tally: Tally::default(),
            })
        };
        Ok([endpoint(0), endpoint(1)])
    },
};

/// Maximum number of messages in flight, in each direction.
const WINDOW_MESSAGES: u32 = 32;
/// Minimum `RLIMIT_SIGPENDING`: enough for the messages and acknowledgements of both directions,
/// and a reserve for other programs of the user.
const MIN_PENDING_SIGNALS: u64 = 4 * WINDOW_MESSAGES as u64;
/// Last byte of a number that acknowledges messages and grants credit. The last byte of a message
/// is 0.
const CREDIT_MARK: u8 = 1;

struct SignalEndpoint {
    config: ChannelConfig,
    /// 0 for main, 1 for sub.
    who: usize,
    /// Process id and thread id of main, then of sub; 0 until the endpoint is bound.
    threads: Arc<Shared<[Line<AtomicU32>; 4]>>,
    /// The signal that carries the numbers; `None` until the endpoint is bound.
    wake: Option<Wake>,
    /// Number of messages that may be sent before the next acknowledgement.
    credit: u32,
    /// Number of messages received but not yet acknowledged.
    uncredited: u32,
    draft: [u8; 8],
    message: [u8; 8],
    tally: Tally,
}

impl SignalEndpoint {
    fn send_number(&mut self, number: [u8; 8]) -> io::Result<()> {
        let partner = 2 * (1 - self.who);
        let [process, thread] = [partner, partner + 1];
        let [process, thread] =
            [process, thread].map(|of| self.threads[of].load(Ordering::Acquire));
        let wake = self.wake.ok_or(io::ErrorKind::NotConnected)?;
        let send = || wake.send_number(process, thread, u64::from_le_bytes(number));
        self.config.retry_interrupted(&mut self.tally, Call::Sigqueue, send)
    }

    /// Waits for a number and returns it, or adds the credit and returns `None` if the number is an
    /// acknowledgement.
    fn wait(&mut self) -> io::Result<Option<[u8; 8]>> {
        let wake = self.wake.ok_or(io::ErrorKind::NotConnected)?;
        let wait = || wake.wait_for_number();
        let number =
            self.config.retry_interrupted(&mut self.tally, Call::Sigwait, wait)?.to_le_bytes();
        if number[7] == CREDIT_MARK {
            self.credit += WINDOW_MESSAGES / 2;
            return Ok(None);
        }
        Ok(Some(number))
    }
}

impl Endpoint for SignalEndpoint {
    fn bind_to_thread(&mut self) -> io::Result<()> {
        let wake = Wake::block()?;
        wake.drain(); // signals of an earlier exchange
        self.wake = Some(wake);
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        self.threads[2 * self.who].store(std::process::id(), Ordering::Release);
        self.threads[2 * self.who + 1].store(thread, Ordering::Release);
        Ok(())
    }

    fn draft(&mut self) -> io::Result<&mut [u8]> {
        while self.credit == 0 {
            if self.wait()?.is_some() {
                // Both sides are sending without receiving, which no exchange does.
                return Err(io::ErrorKind::Deadlock.into());
            }
        }
        Ok(&mut self.draft[..self.config.bytes])
    }

    fn send(&mut self) -> io::Result<()> {
        self.send_number(self.draft)?;
        self.credit -= 1;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        if self.uncredited == WINDOW_MESSAGES / 2 {
            match self.send_number([0, 0, 0, 0, 0, 0, 0, CREDIT_MARK]) {
                // The sender may have exited after its last message.
                Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                sent => sent?,
            }
            self.uncredited = 0;
        }
        self.message = loop {
            if let Some(number) = self.wait()? {
                break number;
            }
        };
        self.uncredited += 1;
        Ok(&self.message[..self.config.bytes])
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
