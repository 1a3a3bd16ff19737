//! `iconv`.

use super::{Finding, Subject};

pub(super) fn class(_subject: &Subject<'_>) -> Finding {
    Err("nothing is known of it yet".into())
}
