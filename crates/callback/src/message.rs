//! Messages on their way.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "contents and blocks are aligned for what `is_inline` and `block_layout` say"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use crate::key::{Home, Key};
use crate::next::Never;

/// What stands in an envelope itself; larger messages are in a block.
const INLINE_BYTES: usize = 16;

/// What an envelope is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To hand a message to a unit.
    Message,
    /// To run a unit that has just been spawned, or whose wait for something outside is over.
    Start,
    /// To hand a unit the next message that was kept for it.
    Stashed,
    /// To end a unit.
    Cancel,
    /// To do something to the core.
    Control,
}

/// What is known of envelopes of one type: one constant for each.
#[derive(Debug)]
pub(crate) struct MessageVTable {
    pub purpose: Purpose,
    /// The type of the message or of the action, if it has one.
    content: TypeId,
    drop: unsafe fn(*mut u8),
}

/// Something that a core is to do, above all a message to hand over.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub to: Key,
    pub vtable: &'static MessageVTable,
    content: Content,
}

/// A message that is small, or a pointer to its block.
type Content = MaybeUninit<[u64; INLINE_BYTES / 8]>;

const _: () = assert!(size_of::<Envelope>() == 32);

// SAFETY: constructors take nothing that is not `Send`.
unsafe impl Send for Envelope {}

const fn is_inline<T>() -> bool {
    size_of::<T>() <= INLINE_BYTES && align_of::<T>() <= 8
}

/// The vtable of messages of this type.
pub(crate) const fn message_vtable<M: 'static>() -> &'static MessageVTable {
    Of::<M>::MESSAGE
}

/// The vtable of envelopes that hold a value of this type.
struct Of<T>(PhantomData<T>);

impl<T: 'static> Of<T> {
    const MESSAGE: &'static MessageVTable = &Self::of_purpose(Purpose::Message);
    const CONTROL: &'static MessageVTable = &Self::of_purpose(Purpose::Control);

    const fn of_purpose(purpose: Purpose) -> MessageVTable {
        MessageVTable { purpose, content: TypeId::of::<T>(), drop: drop_content::<T> }
    }
}

impl MessageVTable {
    /// Whether messages of both are of the same type.
    pub fn is_of_type_of(&self, other: &Self) -> bool {
        self.content == other.content
    }

    const fn empty(purpose: Purpose) -> Self {
        Self { purpose, content: TypeId::of::<Never>(), drop: |_| () }
    }
}

impl Envelope {
    /// A message for a unit that takes this type.
    #[inline]
    pub fn message<M: Send + 'static>(to: Key, message: M, pool: &mut Pool) -> Self {
        let mut content = Content::uninit();
        let at = content.as_mut_ptr().cast::<u8>();
        if is_inline::<M>() {
            // SAFETY: the content has room for it and is aligned.
            unsafe { at.cast::<M>().write(message) };
        } else {
            let block = pool.block(Layout::new::<M>()).cast::<M>();
            // SAFETY: the block has room for it and is aligned.
            unsafe { block.write(message) };
            // SAFETY: the content has room for a pointer and is aligned.
            unsafe { at.cast::<NonNull<M>>().write(block) };
        }
        Self { to, vtable: message_vtable::<M>(), content }
    }

    /// Runs the unit for the first time.
    pub fn start(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Start);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// Hands the unit the next message that was kept for it.
    pub fn stashed(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Stashed);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// Ends the unit.
    pub fn cancel(to: Key) -> Self {
        const VTABLE: &MessageVTable = &MessageVTable::empty(Purpose::Cancel);
        Self { to, vtable: VTABLE, content: Content::uninit() }
    }

    /// An action for the core of a Worker. [`into_action`](Self::into_action) takes it out.
    pub fn control<A: Send + 'static>(home: Home, action: A) -> Self {
        let to = Key::new(home, 0, 0, 0);
        let mut envelope = Self::message(to, action, &mut Pool::default());
        envelope.vtable = Of::<A>::CONTROL;
        envelope
    }

    /// For whom it is and what for.
    #[inline]
    pub fn label(&self) -> (Key, Purpose) {
        (self.to, self.vtable.purpose)
    }

    /// Where its content is, which is for whoever takes it from there to move out.
    ///
    /// # Safety
    /// An envelope is there, and is not used as one any more.
    #[inline]
    pub unsafe fn content(envelope: NonNull<Self>) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*envelope.as_ptr()).content).cast() }
    }

    /// Gives up what is in it to `taken`, who moves it out of there.
    pub fn open<R>(self, taken: impl FnOnce(*mut u8) -> R) -> R {
        let mut content = ManuallyDrop::new(self).content;
        taken(content.as_mut_ptr().cast())
    }

    /// The action in a control envelope.
    ///
    /// # Panics
    /// Panics if the envelope is for another purpose, or if its action is of another type.
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
        // SAFETY: the content is what the vtable's constructor wrote, and still there: `open`
        // prevents this drop.
        unsafe { (self.vtable.drop)(self.content.as_mut_ptr().cast()) };
    }
}

/// Moves a message out of an envelope's content.
///
/// # Safety
/// The content is that of [`Envelope::message`] or [`Envelope::control`] of this type, and is not used again.
pub(crate) unsafe fn take<M>(content: *mut u8, pool: &mut Pool) -> M {
    if is_inline::<M>() {
        // SAFETY: the caller's promise.
        return unsafe { content.cast::<M>().read() };
    }
    // SAFETY: as above, and a message of this size is in a block.
    let block = unsafe { content.cast::<NonNull<M>>().read() };
    // SAFETY: the block holds a message and is ours.
    let message = unsafe { block.read() };
    pool.give_back(block.cast(), Layout::new::<M>());
    message
}

/// # Safety
/// As [`take`].
unsafe fn drop_content<M>(content: *mut u8) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<M>(content, &mut Pool::default()) });
}

/// Sizes of blocks.
const BLOCK_BYTES: [usize; 4] = [32, 64, 128, 256];
/// Blocks of a size that are kept.
const MAX_POOLED_BLOCKS: usize = 256;

/// Memory for messages that do not fit into an envelope, used again by whoever sends next. A
/// block may be freed by another pool than the one it was taken from, or by none.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    blocks: [Vec<NonNull<u8>>; BLOCK_BYTES.len()],
}

// SAFETY: the blocks are free memory that belongs to the pool alone.
unsafe impl Send for Pool {}

/// The layout that a message's block has, and the place of its size among [`BLOCK_BYTES`].
fn block_layout(message: Layout) -> (Layout, Option<usize>) {
    let size = BLOCK_BYTES.iter().position(|&size| message.size() <= size && message.align() <= 16);
    match size.and_then(|at| Layout::from_size_align(BLOCK_BYTES[at], 16).ok()) {
        Some(layout) => (layout, size),
        None => (message, None),
    }
}

impl Pool {
    fn block(&mut self, message: Layout) -> NonNull<u8> {
        let (layout, size) = block_layout(message);
        if let Some(block) = size.and_then(|size| self.blocks[size].pop()) {
            return block;
        }
        // SAFETY: a message that is not inline is no zero-sized one, or needs alignment: see below.
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
        // SAFETY: it was allocated with this layout, as the same message leads to the same one.
        unsafe { dealloc(block.as_ptr(), nonzero(layout)) };
    }

    /// Keeps blocks from now on.
    pub fn keep(&mut self) {
        for blocks in &mut self.blocks {
            blocks.reserve_exact(MAX_POOLED_BLOCKS);
        }
    }

    /// Frees all blocks.
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

/// Messages of no size with a large alignment get a byte.
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
    use crate::key::Home;

    thread_local! {
        static DROPPED: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts itself when it is dropped, and is aligned as the type that it has none of.
    struct Message<const BYTES: usize, A>([u8; BYTES], [A; 0]);

    impl<const BYTES: usize, A> Drop for Message<BYTES, A> {
        fn drop(&mut self) {
            assert!(self.0.iter().all(|&byte| byte == 7) && std::ptr::from_ref(self).is_aligned());
            DROPPED.set(DROPPED.get() + 1);
        }
    }

    #[repr(align(16))]
    struct By16;
    #[repr(align(128))]
    struct By128;

    /// Drops one in its envelope, and one that was taken out.
    fn both<const BYTES: usize, A: Send + 'static>(pool: &mut Pool) {
        let to = Key::new(Home::new(0), 1, 0, 1);
        let before = DROPPED.get();
        let make = || Message::<BYTES, A>([7; BYTES], []);
        drop(Envelope::message(to, make(), pool));
        let envelope = Envelope::message(to, make(), pool);
        // SAFETY: this is the type that was put in.
        let taken = envelope.open(|at| unsafe { take::<Message<BYTES, A>>(at, pool) });
        assert_eq!(DROPPED.get(), before + 1, "{BYTES} bytes");
        drop(taken);
        assert_eq!(DROPPED.get(), before + 2, "{BYTES} bytes");
    }

    fn all<A: Send + 'static>(pool: &mut Pool) {
        both::<0, A>(pool);
        both::<1, A>(pool);
        both::<8, A>(pool);
        both::<16, A>(pool);
        both::<17, A>(pool);
        both::<32, A>(pool);
        both::<100, A>(pool);
        both::<256, A>(pool);
        both::<257, A>(pool);
        both::<5_000, A>(pool);
    }

    #[test]
    fn messages_of_all_sizes_and_alignments_are_dropped_once() {
        for keeps in [false, true] {
            let mut pool = Pool::default();
            if keeps {
                pool.keep();
            }
            for _ in 0..3 {
                all::<u8>(&mut pool);
                all::<u64>(&mut pool);
                all::<By16>(&mut pool);
                all::<By128>(&mut pool);
            }
        }
    }

    #[test]
    fn an_action_is_taken_out_or_dropped_once() {
        let home = Home::new(0);
        let before = DROPPED.get();
        drop(Envelope::control(home, Message::<8, u64>([7; 8], [])));
        assert_eq!(DROPPED.get(), before + 1);
        let action = Message::<8, u64>([7; 8], []);
        let action: Message<8, u64> = Envelope::control(home, action).into_action();
        assert_eq!(DROPPED.get(), before + 1);
        drop(action);
        assert_eq!(DROPPED.get(), before + 2);
    }

    #[test]
    fn what_is_no_action_of_a_type_is_not_taken_out_as_one() {
        let is_refused = |envelope: Envelope| {
            std::panic::catch_unwind(AssertUnwindSafe(|| envelope.into_action::<u64>())).is_err()
        };
        let to = Key::new(Home::new(0), 1, 0, 1);
        assert!(is_refused(Envelope::control(to.home(), 7_i64)), "another type");
        assert!(is_refused(Envelope::message(to, 7_u64, &mut Pool::default())), "a message");
        assert!(is_refused(Envelope::start(to)), "nothing at all");
        assert!(!is_refused(Envelope::control(to.home(), 7_u64)));
    }
}
