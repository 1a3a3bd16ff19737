//! The process that creates units. Its size determines the cost of a fork.

use contend_record::parameters::Parameters;
use contend_sys::pages::{PageSize, Pages};
use contend_sys::procfs::{Rollup, Status};
use rustix::process::getpid;

use crate::engine::experiment::{ErrorContext, Facts, SubjectError};
use crate::support::limits;

/// Name of the parameter for the memory that the creator has touched, in MiB.
pub const PARENT_MIB: &str = "parent_mib";
/// Name of the parameter that selects huge pages for that memory.
pub const HUGE_PAGES: &str = "huge_pages";

const BYTES_PER_MIB: u64 = 1 << 20;

/// Memory that the creating process has touched, if any; freed on drop.
#[derive(Debug)]
pub struct Parent(Option<Pages>);

impl Parent {
    /// Allocates and touches as much memory as the parameters specify.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory, or huge pages are wanted but disabled.
    pub fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let bytes = bytes(parameters);
        if bytes == 0 {
            return Ok(Self(None));
        }
        // Other programs may have used the memory since the case was planned.
        if let Some(reason) = unavailable(parameters) {
            return Err(SubjectError::Unexpected(reason));
        }
        let huge = parameters.flag(HUGE_PAGES);
        let size = if huge { PageSize::Huge } else { PageSize::Base };
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Self(Some(Pages::touched(length, size).context("touch the parent's memory")?)))
    }

    /// Returns facts about the memory of this process, as the kernel reports it: 0 for numbers that
    /// cannot be read.
    pub fn facts(&self) -> Facts {
        let rollup = Rollup::of(getpid()).unwrap_or_default();
        let status = Status::of(getpid()).unwrap_or_default();
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mut facts = Facts::from([
            ("parent_rss_bytes".to_owned(), rollup.rss.into()),
            ("parent_mappings".to_owned(), (mappings.lines().count() as u64).into()),
            ("parent_page_tables_bytes".to_owned(), status.page_tables.into()),
        ]);
        if self.0.is_some() {
            facts.insert("parent_huge_bytes".to_owned(), huge_bytes().into());
        }
        facts
    }
}

fn bytes(parameters: &Parameters) -> u64 {
    parameters.number(PARENT_MIB).unwrap_or(0) * BYTES_PER_MIB
}

/// Returns why a parent with the given parameters cannot exist here, or `None` if it can.
pub fn unavailable(parameters: &Parameters) -> Option<String> {
    let bytes = bytes(parameters);
    let available = limits::memory_available();
    let needed = bytes + bytes / 4 + limits::memory_floor();
    if bytes > 0 && available < needed {
        let (need, have) = (needed / BYTES_PER_MIB, available / BYTES_PER_MIB);
        return Some(format!("needs {need} MiB of memory, but only {have} MiB are available"));
    }
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if parameters.flag(HUGE_PAGES) && setting.map_or(true, |text| text.contains("[never]")) {
        return Some("transparent huge pages are disabled".to_owned());
    }
    None
}

/// Returns why the memory of processes cannot be read here, or `None` if it can.
pub fn memory_unreadable() -> Option<String> {
    match Rollup::of(getpid()) {
        Ok(rollup) if rollup.rss > 0 => None,
        Ok(_) => Some("/proc/self/smaps_rollup does not report memory".to_owned()),
        Err(error) => Some(format!("cannot read /proc/self/smaps_rollup: {error}")),
    }
}

fn huge_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0) * 1024
}
