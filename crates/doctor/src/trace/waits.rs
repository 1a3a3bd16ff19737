//! The waits of a trace, each once.

use std::collections::HashMap;
use std::fs;

use contend_record::doctor::ThreadState;
use contend_record::trace::{Wait, WaitObject};

use crate::thread::Sampled;
use crate::wait::{self, Object};

/// Index of the unknown wait.
pub const UNKNOWN: u32 = 0;

/// The waits that have occurred so far.
#[derive(Debug)]
pub struct Waits {
    /// The waits in order of occurrence, after the unknown one.
    pub list: Vec<Wait>,
    indexes: HashMap<Wait, u32>,
}

impl Default for Waits {
    fn default() -> Self {
        let unknown = Wait { state: ThreadState::Unknown, object: None };
        Self { list: vec![unknown.clone()], indexes: HashMap::from([(unknown, UNKNOWN)]) }
    }
}

impl Waits {
    /// Returns the index of the wait of a thread of `process`; `None` if it does not wait.
    pub fn of_state(&mut self, process: i32, state: Sampled) -> Option<u32> {
        match state {
            Sampled::Waiting(wait) => Some(self.index(describe(process, wait))),
            Sampled::Active => None,
        }
    }

    fn index(&mut self, wait: Wait) -> u32 {
        if let Some(&index) = self.indexes.get(&wait) {
            return index;
        }
        let Ok(index) = u32::try_from(self.list.len()) else { return UNKNOWN };
        self.list.push(wait.clone());
        self.indexes.insert(wait, index);
        index
    }
}

fn describe(process: i32, wait: wait::Wait) -> Wait {
    let object = match wait.object {
        Object::Futex(futex) => Some(WaitObject::Futex { address: futex.address }),
        Object::Descriptor(fd) => {
            let link = fs::read_link(format!("/proc/{process}/fd/{fd}")).ok();
            let target = link.map(|link| link.to_string_lossy().into_owned());
            Some(WaitObject::Descriptor { fd, target })
        }
        Object::Time(limit) => Some(WaitObject::Timer { limit }),
        Object::Descriptors(limit) => Some(WaitObject::Descriptors { limit }),
        Object::Unknown => None,
    };
    Wait { state: wait.state, object }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::{Futex, Primitive};
    use crate::wait::Wait as Found;

    #[test]
    fn equal_waits_have_one_index() {
        let mut waits = Waits::default();
        let futex = |address| {
            let futex = Futex { address, primitive: Primitive::Lock, is_timed: false };
            Sampled::Waiting(Found { state: ThreadState::Lock, object: Object::Futex(futex) })
        };
        assert_eq!(waits.of_state(1, futex(16)), Some(1));
        assert_eq!(waits.of_state(1, futex(32)), Some(2));
        assert_eq!(waits.of_state(2, futex(16)), Some(1));
        assert_eq!(waits.of_state(1, Sampled::Waiting(Found::UNKNOWN)), Some(UNKNOWN));
        assert_eq!(waits.of_state(1, Sampled::Active), None);
        assert_eq!(waits.list.len(), 3);
    }

    #[test]
    fn a_descriptor_has_its_target() {
        let file = fs::File::open("/dev/null").expect("a device");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let process = std::process::id().cast_signed();
        let found = Found { state: ThreadState::Other, object: Object::Descriptor(fd) };
        let wait = describe(process, found);
        let target = Some("/dev/null".to_owned());
        assert_eq!(wait.object, Some(WaitObject::Descriptor { fd, target }));
    }
}
