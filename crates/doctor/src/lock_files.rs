//! Which file a contended lock belongs to: the program or the library whose variable it is.
//!
//! A lock in the C library is that of its memory allocator or of a stream, which a program does not take
//! in its own code.

use std::collections::BTreeMap;
use std::fs;

use contend_sys::Pid;

/// Largest number of locks that are searched.
const MAX_LOCKS: usize = 64;

/// The files of locks by address. Locks on the heap or on a stack belong to none.
#[derive(Debug, Default)]
pub struct LockFiles(BTreeMap<u64, Option<String>>);

impl LockFiles {
    /// Finds the file of a lock at `address` of the process, unless that has been tried.
    pub fn note(&mut self, process: Pid, address: u64) {
        if self.0.len() < MAX_LOCKS {
            let read = || fs::read_to_string(format!("/proc/{}/maps", process.as_raw_nonzero()));
            self.0
                .entry(address)
                .or_insert_with(|| file_at(&read().ok()?, address).map(str::to_owned));
        }
    }

    /// Returns the names of the files, without folders, by address.
    pub fn known(&self) -> BTreeMap<u64, String> {
        let named = self.0.iter().filter_map(|(address, name)| Some((*address, name.clone()?)));
        named.collect()
    }
}

/// Returns the name of the file of which `address` is a variable, by the text of `/proc/PID/maps`.
fn file_at(maps: &str, address: u64) -> Option<&str> {
    let mut last = (0, None);
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let file = rest.split_once('/').map(|(_, path)| path.rsplit('/').next().unwrap_or(path));
        // Variables that begin as zero are in memory without a file, after those with one.
        let is_anonymous = rest.split_whitespace().nth(4).is_none();
        let file = if is_anonymous && start == last.0 { last.1 } else { file };
        if (start..end).contains(&address) {
            return file.map(|file| file.trim_end_matches(" (deleted)"));
        }
        last = (end, file);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_belong_to_the_file_before_them() {
        let maps = "\
            5000-6000 r-xp 00000000 08:01 1   /usr/bin/my program\n\
            6000-7000 rw-p 00001000 08:01 1   /usr/bin/my program\n\
            7000-8000 rw-p 00000000 00:00 0\n\
            9000-a000 rw-p 00000000 00:00 0   [heap]\n\
            b000-c000 rw-p 00000000 00:00 0 \n\
            d000-e000 rw-p 00002000 08:01 2   /lib/libc.so.6 (deleted)\n\
            e000-f000 rw-p 00000000 00:00 0 \n";
        assert_eq!(file_at(maps, 0x6800), Some("my program"));
        assert_eq!(file_at(maps, 0x7fff), Some("my program"), "zero at first");
        assert_eq!(file_at(maps, 0x8800), None, "not mapped");
        assert_eq!(file_at(maps, 0x9800), None, "the heap");
        assert_eq!(file_at(maps, 0xb800), None, "mapped on its own");
        assert_eq!(file_at(maps, 0xd000), Some("libc.so.6"));
        assert_eq!(file_at(maps, 0xe000), Some("libc.so.6"));
    }

    #[test]
    fn a_variable_of_this_process_is_found() {
        static VARIABLE: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let mut files = LockFiles::default();
        let address = std::ptr::from_ref(&VARIABLE).addr() as u64;
        files.note(own, address);
        let name = files.known().remove(&address).expect("a variable of the test");
        assert!(name.starts_with("contend_doctor-"), "{name}");
        let boxed = Box::new(1);
        files.note(own, std::ptr::from_ref(&*boxed).addr() as u64);
        assert_eq!(files.known().len(), 1, "the heap has no file");
    }
}
