//! Finds threads that wait by spinning: a spin loop contains the instruction that gives way to the
//! other hardware thread of the core (`PAUSE`, `YIELD`).
//!
//! For a busy thread, addresses are sampled for a while, and the code around them is read once. A loop
//! without the instruction cannot be distinguished from computing.

use std::collections::BTreeMap;

use contend_sys::Pid;
use contend_sys::memory;

/// Number of addresses that are sampled for a thread.
const SAMPLES: usize = 40;
/// Largest number of threads that are examined.
const MAX_THREADS: usize = 32;
/// Length of code on each side of an address that may belong to the same loop, in bytes.
const REACH_BYTES: u8 = 32;

/// Addresses of the busy threads.
#[derive(Debug, Default)]
pub struct Spins {
    threads: BTreeMap<i32, Examined>,
}

/// A thread that has been or is being examined.
#[derive(Debug)]
struct Examined {
    process: Pid,
    addresses: Vec<u64>,
    /// Share of the addresses in a spin loop; `None` while addresses are sampled.
    share: Option<f64>,
}

impl Spins {
    /// Returns whether addresses of this busy thread should be sampled from now on, and notes it.
    pub fn begin(&mut self, process: Pid, thread: i32) -> bool {
        if self.threads.len() >= MAX_THREADS || self.threads.contains_key(&thread) {
            return false;
        }
        let examined = Examined { process, addresses: Vec::new(), share: None };
        self.threads.insert(thread, examined);
        true
    }

    /// Notes an address that the thread has executed. Returns whether there are enough of them.
    pub fn note(&mut self, thread: i32, address: u64) -> bool {
        let Some(examined) = self.threads.get_mut(&thread) else { return false };
        if examined.share.is_none() {
            examined.addresses.push(address);
            if examined.addresses.len() >= SAMPLES {
                examined.finish();
                return true;
            }
        }
        false
    }

    /// Returns the share of the sampled addresses that are in a spin loop, by thread. Threads with too
    /// few samples are left out.
    pub fn shares(mut self) -> BTreeMap<i32, f64> {
        let open = self.threads.values_mut().filter(|examined| examined.share.is_none());
        open.filter(|examined| 2 * examined.addresses.len() >= SAMPLES).for_each(Examined::finish);
        self.threads.iter().filter_map(|(id, examined)| Some((*id, examined.share?))).collect()
    }
}

impl Examined {
    fn finish(&mut self) {
        let count = self.addresses.iter().filter(|address| self.is_in_spin_loop(**address)).count();
        self.share = Some(count as f64 / self.addresses.len().max(1) as f64);
    }

    fn is_in_spin_loop(&self, address: u64) -> bool {
        let mut code = [0; 2 * REACH_BYTES as usize];
        let start = address.saturating_sub(REACH_BYTES.into());
        let read = memory::read(self.process, start, &mut code).unwrap_or(0);
        gives_way(&code[..read])
    }
}

/// Returns whether the code contains the instruction that gives way to the other hardware thread.
fn gives_way(code: &[u8]) -> bool {
    let has = |instruction: &[u8]| code.windows(instruction.len()).any(|at| at == instruction);
    if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        has(&[0xf3, 0x90]) // PAUSE
    } else if cfg!(target_arch = "aarch64") {
        has(&[0x3f, 0x20, 0x03, 0xd5]) || has(&[0xdf, 0x3f, 0x03, 0xd5]) // YIELD, ISB
    } else {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_loop_has_the_instruction() {
        if cfg!(target_arch = "x86_64") {
            assert!(gives_way(&[0x8b, 0x07, 0xf3, 0x90, 0x85, 0xc0, 0x74, 0xf8]));
            assert!(!gives_way(&[0x48, 0x0f, 0xaf, 0xc1, 0x90, 0x75, 0xf9]));
        }
        assert!(!gives_way(&[]));
    }

    #[test]
    fn each_thread_is_examined_once() {
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let mut spins = Spins::default();
        assert!(spins.begin(own, 7));
        assert!(!spins.begin(own, 7));
        assert!(!spins.note(8, 0x1000), "not examined");
        let enough = (0..SAMPLES).filter(|_| spins.note(7, 0x10)).count();
        assert_eq!(enough, 1);
        assert_eq!(spins.shares(), BTreeMap::from([(7, 0.0)]), "nothing is mapped there");
    }
}
