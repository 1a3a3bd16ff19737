//! When the C library's allocator returns freed memory to the kernel.

/// Allocates blocks of at least this size, in bytes, with `mmap`, so that they return to the kernel
/// as soon as they are freed.
///
/// By default glibc starts at 128 KiB but raises that threshold, up to 32 MiB, each time such a
/// block is freed: a program that repeatedly frees large blocks then retains several of them. Does
/// nothing under other C libraries.
pub fn give_back_from(bytes: u32) {
    #[cfg(target_env = "gnu")]
    {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: `mallopt` takes numbers, and locks the state that it changes. It ignores values
        // that it does not accept.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = bytes;
}

/// Returns freed memory to the kernel, as far as it makes up whole pages. Does nothing under C
/// libraries other than glibc.
pub fn give_back() {
    // SAFETY: `malloc_trim` takes a number, and locks the state that it changes; it releases only
    // memory that is not allocated.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
