//! Copies a file through memory mappings.

use std::io;
use std::os::fd::AsFd;

use contend_sys::mapping::{Backing, Mapping};

use super::super::location::Location;
use super::{CopyJob, CopyMethod, MappingAdvice};
use crate::support::syscalls::Call;

const ADVICE_NAMES: &[&str] = &["none", "sequential", "populate", "huge-pages"];

/// The `mmap-bytes` method, which copies byte by byte, as in the article on mmap and shared memory.
pub const BY_BYTE: CopyMethod = CopyMethod {
    name: "mmap-bytes",
    summary: "both files mapped, copied byte by byte through pointers",
    blocks: &[],
    advices: ADVICE_NAMES,
    unavailable,
    prepare: None,
    copy: |job| copy_mapped(job, Mapping::copy_by_byte),
    counts_calls: true,
};

/// The `mmap-memcpy` method, which copies with the C library's `memmove(3)`. In glibc on x86-64,
/// `memcpy(3)` is the same code.
pub const BY_MEMCPY: CopyMethod = CopyMethod {
    name: "mmap-memcpy",
    summary: "both files mapped, copied by memcpy",
    blocks: &[],
    advices: ADVICE_NAMES,
    unavailable,
    prepare: None,
    copy: |job| copy_mapped(job, Mapping::copy),
    counts_calls: true,
};

/// The `mmap-write` method, which maps only the source and writes from the mapping.
pub const WRITE_FROM_MAPPING: CopyMethod = CopyMethod {
    name: "mmap-write",
    summary: "the source mapped, and written from the mapping, 1 MiB at a time",
    blocks: &[],
    advices: ADVICE_NAMES,
    unavailable,
    prepare: None,
    copy: |job| {
        const CHUNK_BYTES: usize = 1 << 20;
        let files = job.open()?;
        let source = job.map(Backing::FileToRead(files.0.as_fd()))?;
        let mut written = 0;
        while written < job.bytes {
            let bytes = CHUNK_BYTES.min(job.bytes - written);
            let write = || source.write_to(files.1.as_fd(), written, bytes);
            written += job.call(Call::Write, write)?;
        }
        job.unmap(source);
        job.close(files);
        Ok(())
    },
    counts_calls: true,
};

fn copy_mapped(job: &mut CopyJob<'_>, copy: fn(&Mapping, &Mapping, usize)) -> io::Result<()> {
    let files = job.open()?;
    let bytes = job.bytes;
    job.call(Call::Ftruncate, || Ok(rustix::fs::ftruncate(&files.1, bytes as u64)?))?;
    let source = job.map(Backing::FileToRead(files.0.as_fd()))?;
    let target = job.map(Backing::File(files.1.as_fd()))?;
    copy(&target, &source, bytes);
    job.unmap(target);
    job.unmap(source);
    job.close(files);
    Ok(())
}

/// Returns why huge pages cannot be used at `location`, or `None` if they can or `advice` does not
/// request them. A tmpfs supports huge pages if `shmem_enabled` permits them.
fn unavailable(location: Location, advice: MappingAdvice) -> Option<String> {
    if advice != MappingAdvice::HugePages {
        return None;
    }
    if location == Location::Disk {
        return Some("on a disk, only program code can use huge pages".to_owned());
    }
    let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    huge_pages_disabled(&std::fs::read_to_string(setting).unwrap_or_default())
}

/// Returns why files in tmpfs cannot have huge pages, or `None` if they can. `setting` is the
/// content of `shmem_enabled`, which lists all values, with the current one in brackets.
fn huge_pages_disabled(setting: &str) -> Option<String> {
    match setting.split(['[', ']']).nth(1) {
        Some("always" | "within_size" | "advise" | "force") => None,
        Some(other) => {
            Some(format!("huge pages are disabled for tmpfs (shmem_enabled is {other})"))
        }
        None => Some("this kernel does not support huge pages in tmpfs".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_in_tmpfs_depend_on_the_chosen_value() {
        let values = ["always", "within_size", "advise", "never", "deny", "force"];
        let disabled = values.map(|chosen| {
            let mark =
                |value: &str| if value == chosen { format!("[{value}]") } else { value.to_owned() };
            let all = values.map(mark);
            huge_pages_disabled(&all.join(" ")).is_some()
        });
        assert_eq!(disabled, [false, false, false, true, true, false]);
        assert!(huge_pages_disabled("").expect("a reason").contains("does not support"));
    }
}
