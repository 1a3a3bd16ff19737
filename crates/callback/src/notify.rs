//! [`Notify`]: wake-ups without data, which never block the sender and need no room in an inbox.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::key::Key;
use crate::message::Envelope;
use crate::shared::Shared;
use crate::sync::lock_std;

/// A source of wake-ups for callback threads, usable from any thread, like tokio's `Notify`.
///
/// [`notify_one`](Self::notify_one) never blocks and never fails, even if inboxes are full.
/// Callbacks, destructors and [`Waker`](std::task::Waker)s may call it. All clones share one state.
///
/// A notification wakes the callback thread that has waited longest in
/// [`Context::when_notified`](crate::Context::when_notified). If none is waiting, the notification
/// is stored for the next waiter. At most one is stored: notifications carry no data and are not
/// counted, and a stored one uses no memory. If a callback thread ends after it was woken but
/// before its callback ran, the notification passes to the next waiter.
///
/// ```
/// use contend_callback::{Notify, Receptor};
///
/// let receptor = Receptor::start()?;
/// let notify = Notify::new();
/// let (waits, woken) = (notify.clone(), receptor.spawn_reply({
///     let notify = notify.clone();
///     move |context, reply| {
///         context.when_notified(&notify, move |context| {
///             reply.send("awake");
///             context.end()
///         })
///     }
/// })?);
/// waits.notify_one();
/// assert_eq!(woken.wait()?, "awake");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whether a notification is stored. If so, no unit is waiting.
    is_notified: bool,
    /// Waiting units by ticket number, lowest first: the first one has waited longest.
    waiting: BTreeMap<u64, (Arc<Shared>, Key)>,
    /// Ticket numbers of units that were woken but have not run yet.
    woken: HashSet<u64>,
    /// The number of the last ticket issued.
    next: u64,
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let (waiting, is_notified) = (state.waiting.len(), state.is_notified);
        f.debug_struct("Notify")
            .field("waiting", &waiting)
            .field("is_notified", &is_notified)
            .finish_non_exhaustive()
    }
}

impl Notify {
    /// Creates a `Notify` without waiters and without a stored notification.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the callback thread that has waited longest, or stores the notification for the next
    /// waiter. Never blocks.
    pub fn notify_one(&self) {
        let mut state = self.lock();
        let Some((ticket, (runtime, key))) = state.waiting.pop_first() else {
            state.is_notified = true;
            return;
        };
        state.woken.insert(ticket);
        drop(state); // before `post`, which may drop envelopes whose destructors notify
        runtime.post(Envelope::start(key));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_std(&self.0)
    }

    /// Returns a ticket for a unit that is about to wait.
    pub(crate) fn ticket(&self) -> Ticket {
        let mut state = self.lock();
        state.next += 1;
        Ticket { notify: self.clone(), number: state.next }
    }

    /// Registers a unit under its ticket number. If a notification is stored, consumes it for the
    /// unit instead and returns true: the unit need not wait.
    pub(crate) fn wait(&self, ticket: u64, runtime: Arc<Shared>, unit: Key) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_notified) {
            state.woken.insert(ticket);
            drop(state);
            return true;
        }
        state.waiting.insert(ticket, (runtime, unit));
        false
    }
}

/// The registration of a waiting unit, owned by its closure. If it is dropped before the closure
/// runs, it deregisters the unit and passes on any notification that the unit had received.
pub(crate) struct Ticket {
    pub notify: Notify,
    pub number: u64,
}

impl Ticket {
    /// Consumes the notification, because the unit runs now.
    pub fn redeem(self) {
        self.notify.lock().woken.remove(&self.number);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.notify.lock();
        let waiter = state.waiting.remove(&self.number);
        let was_woken = state.woken.remove(&self.number);
        drop(state);
        drop(waiter); // after the lock: this may be the last reference to a runtime
        if was_woken {
            self.notify.notify_one();
        }
    }
}
