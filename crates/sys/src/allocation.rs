//! What the C library's allocator does with memory that is freed.

/// Gives allocations of this size or more, in bytes, pages of their own, which go back to the system
/// as soon as they are freed.
///
/// By itself glibc does so from 128 KiB on at first, but from more with each of them that is freed,
/// up to 32 MiB: a program that frees large pieces of memory again and again then keeps several of
/// them. Other C libraries are left as they are.
pub fn give_back_from(bytes: u32) {
    #[cfg(target_env = "gnu")]
    {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: `mallopt` takes numbers, and locks what it changes. What it does not take it
        // leaves as it was.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = bytes;
}

/// Gives back to the system what has been freed, as far as whole pages are free. Other C libraries than
/// glibc are left as they are.
pub fn give_back() {
    // SAFETY: `malloc_trim` takes a number, and locks what it changes: memory that nobody has.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
