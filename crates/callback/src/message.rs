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

use crate::core::Core;
use crate::key::{Home, Key};
use crate::next::Nothing;

/// What stands in an envelope itself; larger messages are in a block.
const INLINE: usize = 16;

/// What an envelope is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To hand a message to a unit.
    Message,
    /// To run a unit that has just been spawned, or whose wait for something outside is over.
    Start,
    /// To hand a unit the next message that was kept for it.
    Kept,
    /// To end a unit.
    Cancel,
    /// To do something to the core.
    Control,
}

/// What is known of envelopes of one type: one constant for each.
#[derive(Debug)]
pub(crate) struct Form {
    pub purpose: Purpose,
    /// The type of the message, if it has one.
    message: TypeId,
    drop: unsafe fn(*mut u8),
}

/// Something that a core is to do, above all a message to hand over.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub to: Key,
    pub form: &'static Form,
    content: Content,
}

/// A message that is small, or a pointer to its block.
type Content = MaybeUninit<[u64; INLINE / 8]>;

const _: () = assert!(size_of::<Envelope>() == 32);

// SAFETY: constructors take nothing that is not `Send`.
unsafe impl Send for Envelope {}

/// An action on a core, from anywhere.
pub(crate) type Control = Box<dyn FnOnce(&mut Core) + Send>;

const fn is_inline<T>() -> bool {
    size_of::<T>() <= INLINE && align_of::<T>() <= 8
}

/// The form of messages of this type.
pub(crate) const fn form_of<M: 'static>() -> &'static Form {
    struct Of<M>(PhantomData<M>);
    impl<M: 'static> Of<M> {
        const FORM: &'static Form = &Form {
            purpose: Purpose::Message,
            message: TypeId::of::<M>(),
            drop: drop_message::<M>,
        };
    }
    Of::<M>::FORM
}

impl Form {
    /// Whether messages of both are of the same type.
    pub fn is_of_type_of(&self, other: &Self) -> bool {
        self.message == other.message
    }

    const fn without_message(purpose: Purpose, drop: unsafe fn(*mut u8)) -> Self {
        Self { purpose, message: TypeId::of::<Nothing>(), drop }
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
        Self { to, form: form_of::<M>(), content }
    }

    /// Runs the unit for the first time.
    pub fn start(to: Key) -> Self {
        const FORM: &Form = &Form::without_message(Purpose::Start, |_| ());
        Self { to, form: FORM, content: Content::uninit() }
    }

    /// Hands the unit the next message that was kept for it.
    pub fn kept(to: Key) -> Self {
        const FORM: &Form = &Form::without_message(Purpose::Kept, |_| ());
        Self { to, form: FORM, content: Content::uninit() }
    }

    /// Ends the unit.
    pub fn cancel(to: Key) -> Self {
        const FORM: &Form = &Form::without_message(Purpose::Cancel, |_| ());
        Self { to, form: FORM, content: Content::uninit() }
    }

    /// Has the core of a Worker do something.
    pub fn control(home: Home, action: impl FnOnce(&mut Core) + Send + 'static) -> Self {
        const FORM: &Form = &Form::without_message(Purpose::Control, drop_control);
        let mut content = Content::uninit();
        let action: Control = Box::new(action);
        // SAFETY: the content has room for a fat pointer and is aligned.
        unsafe { content.as_mut_ptr().cast::<Control>().write(action) };
        Self { to: Key::new(home, 0, 0, 0), form: FORM, content }
    }

    /// For whom it is and what for.
    #[inline]
    pub fn label(&self) -> (Key, Purpose) {
        (self.to, self.form.purpose)
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
    pub fn into_control(self) -> Control {
        assert_eq!(self.form.purpose, Purpose::Control);
        // SAFETY: only `control` makes envelopes of this purpose, with an action in them.
        self.open(|at| unsafe { at.cast::<Control>().read() })
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        // SAFETY: the content is what the form's constructor wrote, and still there: `open`
        // prevents this drop.
        unsafe { (self.form.drop)(self.content.as_mut_ptr().cast()) };
    }
}

/// Moves a message out of an envelope's content.
///
/// # Safety
/// The content is that of [`Envelope::message`] of this type, and is not used again.
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
unsafe fn drop_message<M>(content: *mut u8) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<M>(content, &mut Pool::default()) });
}

/// # Safety
/// The content is that of [`Envelope::control`], and is not used again.
unsafe fn drop_control(content: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { content.cast::<Control>().drop_in_place() };
}

/// Sizes of blocks.
const BLOCKS: [usize; 4] = [32, 64, 128, 256];
/// Blocks of a size that are kept.
const KEPT: usize = 256;

/// Memory for messages that do not fit into an envelope, used again by whoever sends next. A
/// block may be freed by another pool than the one it was taken from, or by none.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    blocks: [Vec<NonNull<u8>>; BLOCKS.len()],
}

// SAFETY: the blocks are free memory that belongs to the pool alone.
unsafe impl Send for Pool {}

/// The layout that a message's block has, and the place of its size among [`BLOCKS`].
fn block_layout(message: Layout) -> (Layout, Option<usize>) {
    let size = BLOCKS.iter().position(|&size| message.size() <= size && message.align() <= 16);
    match size.and_then(|at| Layout::from_size_align(BLOCKS[at], 16).ok()) {
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
            && kept.len() < KEPT
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
            blocks.reserve_exact(KEPT);
        }
    }

    /// Frees all blocks.
    pub fn trim(&mut self) {
        for (blocks, size) in self.blocks.iter_mut().zip(BLOCKS) {
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
}
