//! Controls when glibc's allocator returns freed memory to the kernel.

/// Makes the allocator map blocks of `bytes` bytes or more with `mmap`, so that they return to the
/// kernel as soon as they are freed.
///
/// By default glibc starts at 128 KiB but raises the threshold, up to 32 MiB, each time such a
/// block is freed, so a program that repeatedly frees large blocks retains several of them. Does
/// nothing under other C libraries, or if glibc does not accept `bytes` (more than 32 MiB).
pub fn set_mmap_threshold(bytes: u32) {
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

/// Makes the allocator return whole pages of freed memory to the kernel. Does nothing under C
/// libraries other than glibc.
pub fn release_free_memory() {
    // SAFETY: `malloc_trim` takes a number, and locks the state that it changes; it releases only
    // memory that is not allocated.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
