//! `awk`.

use super::{Finding, Subject};

pub(super) fn class(_subject: &Subject<'_>) -> Finding {
    Err("it is not known yet whether it keeps anything from line to line".into())
}
