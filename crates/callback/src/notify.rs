//! Wake-ups that are never lost and never wait.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::key::Key;
use crate::message::Envelope;
use crate::receptor::Handle;

/// Wakes callback threads from anywhere, as tokio's `Notify` does: [`notify_one`](Self::notify_one) neither
/// blocks nor fails, whether or not inboxes are full, so that it can be called from any thread, from a callback,
/// from a destructor or from a [`Waker`](std::task::Waker). Clones are the same one.
///
/// A notification wakes the callback thread that has waited longest by
/// [`Context::when_notified`](crate::Context::when_notified). If there is none it is kept, for the next one that
/// waits. One is kept at most: notifications carry no data and are not counted, so that memory does not grow with
/// them. If a callback thread ends after it was woken and before its callback has run, the notification goes to the
/// next one.
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
    /// A notification is kept; then nobody waits.
    is_notified: bool,
    /// Who waits, by ticket: the lowest one has waited longest.
    waiting: BTreeMap<u64, (Handle, Key)>,
    /// Tickets of those that were woken and have not run yet.
    woken: HashSet<u64>,
    /// The next ticket.
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
    /// One that nobody waits for and that has not been notified.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the callback thread that has waited longest, or keeps the notification for the next one that waits.
    /// Never blocks.
    pub fn notify_one(&self) {
        let mut state = self.lock();
        let Some((ticket, (handle, key))) = state.waiting.pop_first() else {
            state.is_notified = true;
            return;
        };
        state.woken.insert(ticket);
        drop(state); // sending may drop what others have sent, which may notify
        handle.post(Envelope::start(key));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ticket for who is going to wait.
    pub(crate) fn ticket(&self) -> Ticket {
        let mut state = self.lock();
        state.next += 1;
        Ticket { notify: self.clone(), number: state.next }
    }

    /// Has the unit with this ticket wait. Returns whether there is nothing to wait for.
    pub(crate) fn wait(&self, ticket: u64, handle: Handle, unit: Key) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_notified) {
            state.woken.insert(ticket);
            drop(state);
            return true;
        }
        state.waiting.insert(ticket, (handle, unit));
        false
    }
}

/// Stands in the closure of a unit that waits. Dropped with it before that has run, it waits no more, and
/// a notification that it had got goes to the next one.
pub(crate) struct Ticket {
    pub notify: Notify,
    pub number: u64,
}

impl Ticket {
    /// Notes that the unit runs: what it was woken by has served its purpose.
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
        drop(waiter); // perhaps the last handle
        if was_woken {
            self.notify.notify_one();
        }
    }
}
