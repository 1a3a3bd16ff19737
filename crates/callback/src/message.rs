//! Envelopes, which carry messages and other work for a core through queues.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "contents and blocks are aligned for what `is_inline` and `block_layout` say"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use crate::key::{Key, WorkerNumber};
use crate::next::Never;

/// Size in bytes of the largest message that fits into an envelope; larger messages, and those
/// aligned to more than 8 bytes, are stored in a block.
const INLINE_BYTES: usize = 16;

/// The effect of delivering an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Deliver a message to a unit.
    Message,
    /// Run a unit that has just been spawned, or whose wait for an event other than a timer or a
    /// message is over.
    Start,
    /// Deliver the next stashed message of a unit to it.
    Stashed,
    /// End a unit.
    Cancel,
    /// Run an action on the core.
    Control,
}

/// The properties shared by all envelopes with the same purpose and type of content. There is one
/// constant for each such pair.
#[derive(Debug)]
pub(crate) struct MessageVTable {
    pub purpose: Purpose,
    /// The type of the message or action; [`Never`] if the envelope has neither.
    content: TypeId,
    drop: unsafe fn(*mut u8),
}

/// An item of work for a core, usually a message to deliver.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub to: Key,
    pub vtable: &'static MessageVTable,
    content: Content,
}

/// A small message or action, or a pointer to a block with a large one; uninitialised if the
/// envelope has neither.
type Content = MaybeUninit<[u64; INLINE_BYTES / 8]>;

const _: () = assert!(size_of::<Envelope>() == 32);

// SAFETY: constructors accept only `Send` values.
unsafe impl Send for Envelope {}

const fn is_inline<T>() -> bool {
    size_of::<T>() <= INLINE_BYTES && align_of::<T>() <= 8
}

/// Returns the vtable of messages of type `M`.
pub(crate) const fn message_vtable<M: 'static>() -> &'static MessageVTable {
    VTables::<M>::MESSAGE
}

/// The vtables of envelopes that hold a value of type `T`.
struct VTables<T>(PhantomData<T>);

impl<T: 'static> VTables<T> {
    const MESSAGE: &'static MessageVTable = &Self::for_purpose(Purpose::Message);
    const CONTROL: &'static MessageVTable = &Self::for_purpose(Purpose::Control);

    const fn for_purpose(purpose: Purpose) -> MessageVTable {
        MessageVTable { purpose, content: TypeId::of::<T>(), drop: drop_content::<T> }
    }
}

impl MessageVTable {
    /// Returns whether the contents of both have the same type.
    pub fn has_same_type(&self, other: &Self) -> bool {
        self.content == other.content
    }

    const fn empty(purpose: Purpose) -> Self {
        Self { purpose, content: TypeId::of::<Never>(), drop: |_| () }
    }
}

impl Envelope {
    /// Creates an envelope with a message. If the message does not fit, takes a block from `pool`
    /// for it.
    #[inline]
    pub fn message<M: Send + 'static>(to: Key, message: M, pool: &mut Pool) -> Self {
        let mut content = Content::uninit();
        let at = content.as_mut_ptr().cast::<u8>();
        if is_inline::<M>() {
            // SAFETY: the content has room for the message and is aligned.
            unsafe { at.cast::<M>().write(message) };
        } else {
            let block = pool.allocate(Layout::new::<M>()).cast::<M>();
            // SAFETY: the block has room for the message and is aligned.
            unsafe { block.write(message) };
            // SAFETY: the content has room for a pointer and is aligned.
            unsafe { at.cast::<NonNull<M>>().write(block) };
        }
        Self { to, vtable: message_vtable::<M>(), content }
    }

    /// Creates an envelope that runs a unit that has been spawned or woken.
    pub fn start(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Start);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// Creates an envelope that delivers the next stashed message of a unit.
    pub fn stashed(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Stashed);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// Creates an envelope that ends a unit.
    pub fn cancel(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Cancel);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// Creates an envelope with an action for the core of a Worker.
    /// [`into_action`](Self::into_action) takes the action out.
    pub fn control<A: Send + 'static>(worker_number: WorkerNumber, action: A) -> Self {
        let to = Key::new(worker_number, 0, 0, 0);
        let mut envelope = Self::message(to, action, &mut Pool::default());
        envelope.vtable = VTables::<A>::CONTROL;
        envelope
    }

    /// Returns the envelope's receiver and purpose.
    #[inline]
    pub fn label(&self) -> (Key, Purpose) {
        (self.to, self.vtable.purpose)
    }

    /// Returns the address of the envelope's content, which the caller moves out.
    ///
    /// # Safety
    /// `envelope` points to a valid envelope, which is neither dropped nor used as an envelope
    /// afterwards.
    #[inline]
    pub unsafe fn content(envelope: NonNull<Self>) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*envelope.as_ptr()).content).cast() }
    }

    /// Passes the address of the content to `taken`, which must move the content out, and returns
    /// its result.
    pub fn open<R>(self, taken: impl FnOnce(*mut u8) -> R) -> R {
        let mut content = ManuallyDrop::new(self).content;
        taken(content.as_mut_ptr().cast())
    }

    /// Takes the action out of a control envelope.
    ///
    /// # Panics
    /// Panics if the envelope has another purpose, or its action another type.
    pub fn into_action<A: 'static>(self) -> A {
        assert_eq!(
            (self.vtable.purpose, self.vtable.content),
            (Purpose::Control, TypeId::of::<A>())
        );
        // SAFETY: `control` has written an action of this type, and `open` gives it up.
        self.open(|at| unsafe { take(at, &mut Pool::default()) })
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        // SAFETY: the content was written by a constructor with this vtable, and has not been moved
        // out: `open` prevents this drop.
        unsafe { (self.vtable.drop)(self.content.as_mut_ptr().cast()) };
    }
}

/// Moves a message or an action out of an envelope's content, and returns its block, if any, to
/// `pool`.
///
/// # Safety
/// The content was created by [`Envelope::message`] or [`Envelope::control`] with type `M`, and is
/// not used again.
pub(crate) unsafe fn take<M>(content: *mut u8, pool: &mut Pool) -> M {
    if is_inline::<M>() {
        // SAFETY: the caller's promise.
        return unsafe { content.cast::<M>().read() };
    }
    // SAFETY: as above, and a message of this size is in a block.
    let block = unsafe { content.cast::<NonNull<M>>().read() };
    // SAFETY: the block holds a message and belongs to this envelope.
    let message = unsafe { block.read() };
    pool.give_back(block.cast(), Layout::new::<M>());
    message
}

/// Drops a message or an action in an envelope's content, and frees its block, if any.
///
/// # Safety
/// See [`take`].
unsafe fn drop_content<M>(content: *mut u8) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<M>(content, &mut Pool::default()) });
}

/// Sizes of pooled blocks in bytes, ascending.
const BLOCK_BYTES: [usize; 4] = [32, 64, 128, 256];
/// Maximum number of free blocks of each size in a pool.
const MAX_POOLED_BLOCKS: usize = 256;

/// A pool of blocks for messages that do not fit into an envelope. A block may be returned to a
/// different pool from the one that it came from, or freed.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    blocks: [Vec<NonNull<u8>>; BLOCK_BYTES.len()],
}

// SAFETY: the blocks are free memory that belongs to the pool alone.
unsafe impl Send for Pool {}

/// Returns the layout of a message's block, and the index of its size in [`BLOCK_BYTES`], or `None`
/// as the index if such blocks are not pooled.
fn block_layout(message: Layout) -> (Layout, Option<usize>) {
    let size = BLOCK_BYTES.iter().position(|&size| message.size() <= size && message.align() <= 16);
    match size.and_then(|at| Layout::from_size_align(BLOCK_BYTES[at], 16).ok()) {
        Some(layout) => (layout, size),
        None => (message, None),
    }
}

impl Pool {
    fn allocate(&mut self, message: Layout) -> NonNull<u8> {
        let (layout, size) = block_layout(message);
        if let Some(block) = size.and_then(|size| self.blocks[size].pop()) {
            return block;
        }
        // SAFETY: `nonzero` makes the size nonzero: a message that is not inline may still be a
        // zero-sized one with a large alignment.
        let block = unsafe { alloc(nonzero(layout)) };
        NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
    }

    fn give_back(&mut self, block: NonNull<u8>, message: Layout) {
        let (layout, size) = block_layout(message);
        if let Some(kept) = size.map(|size| &mut self.blocks[size])
            && kept.len() < MAX_POOLED_BLOCKS
            && kept.capacity() > 0
        {
            kept.push(block);
            return;
        }
        // SAFETY: the block was allocated with this layout, which depends only on the message's.
        unsafe { dealloc(block.as_ptr(), nonzero(layout)) };
    }

    /// Makes the pool keep returned blocks from now on, up to [`MAX_POOLED_BLOCKS`] of each size. A
    /// new pool frees them.
    pub fn keep_blocks(&mut self) {
        for blocks in &mut self.blocks {
            blocks.reserve_exact(MAX_POOLED_BLOCKS);
        }
    }

    /// Frees all blocks in the pool.
    pub fn trim(&mut self) {
        for (blocks, size) in self.blocks.iter_mut().zip(BLOCK_BYTES) {
            for block in blocks.drain(..) {
                if let Ok(layout) = Layout::from_size_align(size, 16) {
                    // SAFETY: blocks in the pool were allocated with this layout.
                    unsafe { dealloc(block.as_ptr(), layout) };
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.trim();
    }
}

/// Returns the layout, with a size of one byte if it is zero-sized.
fn nonzero(layout: Layout) -> Layout {
    if layout.size() > 0 {
        layout
    } else {
        Layout::from_size_align(1, layout.align()).unwrap_or(layout)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::panic::AssertUnwindSafe;

    use super::*;
    use crate::key::WorkerNumber;

    thread_local! {
        static DROPPED: Cell<u64> = const { Cell::new(0) };
    }

    /// A message of `BYTES` bytes with the alignment of `A`, which counts its drops and checks its
    /// bytes and alignment.
    struct Message<const BYTES: usize, A>([u8; BYTES], [A; 0]);

    impl<const BYTES: usize, A> Drop for Message<BYTES, A> {
        fn drop(&mut self) {
            assert!(self.0.iter().all(|&byte| byte == 7) && std::ptr::from_ref(self).is_aligned());
            DROPPED.set(DROPPED.get() + 1);
        }
    }

    #[repr(align(16))]
    struct Align16;
    #[repr(align(128))]
    struct Align128;

    /// Checks that a message is dropped exactly once, in its envelope or after it was taken out.
    fn check_drops<const BYTES: usize, A: Send + 'static>(pool: &mut Pool) {
        let to = Key::new(WorkerNumber::new(0), 1, 0, 1);
        let before = DROPPED.get();
        let make = || Message::<BYTES, A>([7; BYTES], []);
        drop(Envelope::message(to, make(), pool));
        let envelope = Envelope::message(to, make(), pool);
        // SAFETY: the envelope was created with a message of this type.
        let taken = envelope.open(|at| unsafe { take::<Message<BYTES, A>>(at, pool) });
        assert_eq!(DROPPED.get(), before + 1, "{BYTES} bytes");
        drop(taken);
        assert_eq!(DROPPED.get(), before + 2, "{BYTES} bytes");
    }

    fn check_all_sizes<A: Send + 'static>(pool: &mut Pool) {
        check_drops::<0, A>(pool);
        check_drops::<1, A>(pool);
        check_drops::<8, A>(pool);
        check_drops::<16, A>(pool);
        check_drops::<17, A>(pool);
        check_drops::<32, A>(pool);
        check_drops::<100, A>(pool);
        check_drops::<256, A>(pool);
        check_drops::<257, A>(pool);
        check_drops::<5_000, A>(pool);
    }

    #[test]
    fn messages_of_all_sizes_and_alignments_are_dropped_once() {
        for keeps in [false, true] {
            let mut pool = Pool::default();
            if keeps {
                pool.keep_blocks();
            }
            for _ in 0..3 {
                check_all_sizes::<u8>(&mut pool);
                check_all_sizes::<u64>(&mut pool);
                check_all_sizes::<Align16>(&mut pool);
                check_all_sizes::<Align128>(&mut pool);
            }
        }
    }

    #[test]
    fn an_action_is_taken_out_or_dropped_once() {
        let worker_number = WorkerNumber::new(0);
        let before = DROPPED.get();
        drop(Envelope::control(worker_number, Message::<8, u64>([7; 8], [])));
        assert_eq!(DROPPED.get(), before + 1);
        let action = Message::<8, u64>([7; 8], []);
        let action: Message<8, u64> = Envelope::control(worker_number, action).into_action();
        assert_eq!(DROPPED.get(), before + 1);
        drop(action);
        assert_eq!(DROPPED.get(), before + 2);
    }

    #[test]
    fn an_envelope_yields_no_action_of_another_type() {
        let is_refused = |envelope: Envelope| {
            std::panic::catch_unwind(AssertUnwindSafe(|| envelope.into_action::<u64>())).is_err()
        };
        let to = Key::new(WorkerNumber::new(0), 1, 0, 1);
        assert!(is_refused(Envelope::control(to.worker_number(), 7_i64)), "another type");
        assert!(is_refused(Envelope::message(to, 7_u64, &mut Pool::default())), "a message");
        assert!(is_refused(Envelope::start(to)), "nothing at all");
        assert!(!is_refused(Envelope::control(to.worker_number(), 7_u64)));
    }
}
