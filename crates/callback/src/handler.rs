//! Handlers: the closures run by units, and the vtables for their types.
//!
//! A slot holds a closure of any type. The closure's [`HandlerVTable`] has the functions that run
//! and drop it, and the events that may wake its unit:
//!
//! | made by | woken by | stays in its slot |
//! |---|---|---|
//! | [`once`] | spawn, timer, any other event but a message | no |
//! | [`receive_once`] | message | no |
//! | [`receive_within`] | message or timer | no |
//! | [`receive`] | message | yes |
//!
//! The function `run` of a vtable takes the core that calls it: see `core.rs` on imports.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};

use crate::context::Context;
use crate::core::Core;
use crate::message::{self, MessageVTable, message_vtable};
use crate::next::Next;
use crate::slab::Kind;

/// The event that made a unit run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WakeReason {
    /// The unit has been spawned, or an event other than a timer or a message has ended its wait.
    Start,
    /// The unit's timer is due.
    Due,
    /// A message has arrived. This is the address of its envelope's content, from which the handler
    /// moves the message out. The message has the type that the closure receives.
    Message(*mut u8),
}

/// The functions that run and drop the closures of one type, and the properties of that type. There
/// is one constant for each type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandlerVTable {
    /// Runs the closure in a slot; see [`Handler::call`].
    pub run: unsafe fn(*mut u8, &mut Core, WakeReason) -> Next,
    /// Drops the closure in a slot.
    pub drop: unsafe fn(*mut u8),
    /// Size of the closure in bytes.
    pub bytes: usize,
    /// Whether the closure stays in its slot while it runs and afterwards, rather than being moved
    /// out to run.
    pub stays: bool,
    /// Whether the closure receives messages.
    pub receives: bool,
    /// The vtable of the messages that the closure receives; not used unless `receives`.
    vtable: &'static MessageVTable,
    /// Whether a timer may wake the unit.
    pub timed: bool,
    /// Whether this is the placeholder in a reserved slot.
    pub reserved: bool,
}

impl HandlerVTable {
    /// Returns whether the closure receives messages of the type of `vtable`.
    #[inline]
    pub fn takes(&self, vtable: &'static MessageVTable) -> bool {
        // The compiler may emit several copies of a vtable, so the address alone does not decide.
        self.receives && (std::ptr::eq(self.vtable, vtable) || self.vtable.has_same_type(vtable))
    }
}

impl Kind for HandlerVTable {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A closure that a unit runs. Its constants state what may wake the unit and whether the closure
/// stays in its slot.
///
/// # Safety
/// `call` leaves the value in place if and only if `STAYS`.
pub(crate) unsafe trait Handler: Send + 'static {
    /// The type of the messages that the unit receives.
    type Message: 'static;
    const STAYS: bool;
    const RECEIVES: bool;
    const TIMED: bool;
    const RESERVED: bool = false;

    /// Runs the closure at `at`, and returns its request.
    ///
    /// # Safety
    /// `at` points to a value, which nothing else uses; unless `STAYS`, it is moved out, even if
    /// the closure panics. A message in `wake` is of the type that the handler takes, and is moved
    /// out.
    unsafe fn call(at: *mut Self, core: &mut Core, wake: WakeReason) -> Next;
}

/// Size in bytes of the largest closure that fits into a slot; larger ones, and those aligned more
/// strictly than slots, are boxed.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 64;
/// Alignment of all slots, in bytes.
const SLOT_ALIGNMENT: usize = 8;

/// Returns whether a closure of type `H` fits into a slot of `bytes` bytes.
pub(crate) const fn fits<H>(bytes: usize) -> bool {
    size_of::<H>() <= bytes && align_of::<H>() <= SLOT_ALIGNMENT
}

/// Returns the vtable of handlers of type `H`.
pub(crate) fn handler_vtable<H: Handler>() -> &'static HandlerVTable {
    struct Of<H>(PhantomData<H>);
    impl<H: Handler> Of<H> {
        const VTABLE: &'static HandlerVTable = &HandlerVTable {
            run: run::<H>,
            drop: drop_in_place::<H>,
            bytes: size_of::<H>(),
            stays: H::STAYS,
            receives: H::RECEIVES,
            vtable: message_vtable::<H::Message>(),
            timed: H::TIMED,
            reserved: H::RESERVED,
        };
    }
    Of::<H>::VTABLE
}

/// Runs the closure at `at`. Used as `run` of [`HandlerVTable`].
///
/// # Safety
/// `at` points to a value of type `H`; otherwise as for [`Handler::call`].
unsafe fn run<H: Handler>(at: *mut u8, core: &mut Core, wake: WakeReason) -> Next {
    // SAFETY: the caller has found this vtable in the slot or its page, so `at` holds the value
    // written with the vtable.
    unsafe { H::call(at.cast(), core, wake) }
}

/// Drops the closure at `at`. Used as `drop` of [`HandlerVTable`].
///
/// # Safety
/// `at` points to a value of type `H`, which is not used afterwards.
unsafe fn drop_in_place<H>(at: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<H>().drop_in_place() };
}

/// A handler that runs once; see [`once`], [`receive_once`] and [`receive_within`].
struct Single<F, M, const RECEIVES: bool, const TIMED: bool>(F, PhantomData<fn(M)>);

impl<F, M, const RECEIVES: bool, const TIMED: bool> Single<F, M, RECEIVES, TIMED>
where
    F: FnOnce(&mut Context<'_, M>, Option<M>) -> Next + Send + 'static,
{
    fn new(closure: F) -> Self {
        Self(closure, PhantomData)
    }
}

// SAFETY: `call` always moves the value out.
unsafe impl<F, M, const RECEIVES: bool, const TIMED: bool> Handler for Single<F, M, RECEIVES, TIMED>
where
    F: FnOnce(&mut Context<'_, M>, Option<M>) -> Next + Send + 'static,
    M: Send + 'static,
{
    type Message = M;
    const STAYS: bool = false;
    const RECEIVES: bool = RECEIVES;
    const TIMED: bool = TIMED;

    unsafe fn call(at: *mut Self, core: &mut Core, wake: WakeReason) -> Next {
        // SAFETY: `at` points to a value, which the caller gives up.
        let Self(closure, _) = unsafe { at.read() };
        let message = match wake {
            WakeReason::Message(message) if RECEIVES => {
                // SAFETY: the message is of this type and given up by the caller.
                Some(unsafe { message::take::<M>(message, &mut core.pool) })
            }
            _ => None,
        };
        closure(&mut Context::new(core), message)
    }
}

/// Creates a handler that runs once, when its unit is spawned, its timer is due, or another event
/// that is not a message wakes it.
pub(crate) fn once<M, F>(callback: F) -> impl Handler
where
    F: FnOnce(&mut Context<'_, M>) -> Next + Send + 'static,
    M: Send + 'static,
{
    Single::<_, M, false, true>::new(move |context, _| callback(context))
}

/// Creates a handler that runs once, for a message.
pub(crate) fn receive_once<M, F>(callback: F) -> impl Handler
where
    F: FnOnce(&mut Context<'_, M>, M) -> Next + Send + 'static,
    M: Send + 'static,
{
    Single::<_, M, true, false>::new(move |context, message| match message {
        Some(message) => callback(context, message),
        None => context.keep_receiving(), // unreachable: the handler runs only for messages
    })
}

/// Creates a handler that runs once, for a message or when its timer is due.
pub(crate) fn receive_within<M, F>(callback: F) -> impl Handler
where
    F: FnOnce(&mut Context<'_, M>, Option<M>) -> Next + Send + 'static,
    M: Send + 'static,
{
    Single::<_, M, true, true>::new(callback)
}

/// A handler that runs for every message and stays in its slot.
struct Every<F, M>(F, PhantomData<fn(M)>);

// SAFETY: `call` never moves the value out.
unsafe impl<F, M> Handler for Every<F, M>
where
    F: FnMut(&mut Context<'_, M>, M) -> Next + Send + 'static,
    M: Send + 'static,
{
    type Message = M;
    const STAYS: bool = true;
    const RECEIVES: bool = true;
    const TIMED: bool = false;

    unsafe fn call(at: *mut Self, core: &mut Core, wake: WakeReason) -> Next {
        let WakeReason::Message(message) = wake else { return Next::keep_receiving() };
        // SAFETY: the message is of this type and given up by the caller.
        let message = unsafe { message::take::<M>(message, &mut core.pool) };
        // SAFETY: `at` holds a value, and the core does not touch it while its unit runs.
        let Self(closure, _) = unsafe { &mut *at };
        closure(&mut Context::new(core), message)
    }
}

/// Creates a handler that runs for every message and stays in its slot.
pub(crate) fn receive<M, F>(callback: F) -> impl Handler
where
    F: FnMut(&mut Context<'_, M>, M) -> Next + Send + 'static,
    M: Send + 'static,
{
    Every(callback, PhantomData)
}

/// A handler on the heap, because it is too large or too strictly aligned for its slot.
pub(crate) struct Boxed<H>(Box<MaybeUninit<H>>);

impl<H> Boxed<H> {
    pub fn new(handler: H) -> Self {
        Self(Box::new(MaybeUninit::new(handler)))
    }
}

impl<H> Drop for Boxed<H> {
    fn drop(&mut self) {
        // SAFETY: a dropped `Boxed` has either not run or runs in place, so it still holds its
        // value. `call` wraps one whose value it moves out in `ManuallyDrop`.
        unsafe { self.0.assume_init_drop() };
    }
}

// SAFETY: `call` treats the value in the box as the inner handler's `call` does.
unsafe impl<H: Handler> Handler for Boxed<H> {
    type Message = H::Message;
    const STAYS: bool = H::STAYS;
    const RECEIVES: bool = H::RECEIVES;
    const TIMED: bool = H::TIMED;

    unsafe fn call(at: *mut Self, core: &mut Core, wake: WakeReason) -> Next {
        if H::STAYS {
            // SAFETY: `at` holds a value that nothing else uses.
            let inner = unsafe { (*at).0.as_mut_ptr() };
            // SAFETY: the inner value, which nothing else uses either, stays in the box.
            return unsafe { H::call(inner, core, wake) };
        }
        // SAFETY: `at` points to a value, which the caller gives up.
        let moved = ManuallyDrop::new(unsafe { at.read() });
        // The memory is freed even if the closure panics, because the value has been moved out by
        // then.
        // SAFETY: `moved` is neither used nor dropped.
        let mut memory = unsafe { std::ptr::read(&raw const moved.0) };
        // SAFETY: the box holds a value, which this call moves out.
        unsafe { H::call(memory.as_mut_ptr(), core, wake) }
    }
}
