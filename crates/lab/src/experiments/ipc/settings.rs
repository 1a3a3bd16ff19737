//! What can be chosen of partners that exchange messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use contend_record::parameters::{Parameters, names};

use super::channels::{self, ChannelConfig, Mechanism};
use super::exchange::Exchange;
use crate::engine::experiment::SubjectError;
use crate::engine::setting::Setting;
use crate::support::pair::settings::{PARTNERS, PLACEMENT, pair, placement};
use crate::support::pair::{Link, Placement};

/// What carries the messages.
pub const MECHANISM: Setting =
    Setting::named(names::MECHANISM, "what carries the messages", channels::names);

/// How long they are.
pub const BYTES: Setting = Setting::number(
    names::BYTES,
    "how long a message is; 1, 64, 4,096, 65,536 and 1,048,576 by itself",
    1,
    16 << 20,
);

/// All of them.
pub const SETTINGS: [&Setting; 4] = [&MECHANISM, &BYTES, &PARTNERS, &PLACEMENT];

/// A case with these.
pub fn case(mechanism: &Mechanism, bytes: u64, partners: &str, placement: Placement) -> Parameters {
    let parameters = Parameters::new().with(MECHANISM.name, mechanism.name);
    let parameters = parameters.with(BYTES.name, bytes).with(PARTNERS.name, partners);
    parameters.with(PLACEMENT.name, placement.name())
}

/// What the parameters say of the mechanism.
fn mechanism(parameters: &Parameters) -> Option<&'static Mechanism> {
    channels::find(parameters.text(MECHANISM.name)?)
}

fn bytes(parameters: &Parameters) -> usize {
    let bytes = parameters.number(BYTES.name).unwrap_or(1);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The exchange that they say, after so many messages.
///
/// # Errors
/// When there is no such mechanism.
pub fn exchange(parameters: &Parameters, warm_up: u64) -> Result<Exchange, SubjectError> {
    let mechanism = mechanism(parameters)
        .ok_or_else(|| SubjectError::Wrong("there is no such mechanism".to_owned()))?;
    let pair = pair(parameters, Placement::Free);
    Ok(Exchange { pair, mechanism, bytes: bytes(parameters), warm_up })
}

/// Why messages cannot be exchanged so here, if so.
pub fn unavailable(parameters: &Parameters) -> Option<String> {
    let (mechanism, bytes) = (mechanism(parameters)?, bytes(parameters));
    if bytes > mechanism.max_message_bytes {
        let most = mechanism.max_message_bytes;
        let bytes = if most == 1 { "byte" } else { "bytes" };
        return Some(format!("carries messages of {most} {bytes} at most"));
    }
    if !mechanism.between_threads && parameters.text(PARTNERS.name) == Some("thread") {
        return Some("makes sense between processes only".to_owned());
    }
    let placement = placement(parameters, Placement::Free);
    placement.unavailable().or_else(|| creation_error(mechanism, bytes))
}

/// Why a channel for messages of this length cannot be made here, if so: what is known to be in the way,
/// or what the kernel says when it is tried. Each is tried once.
fn creation_error(mechanism: &'static Mechanism, bytes: usize) -> Option<String> {
    type Cache = BTreeMap<(&'static str, usize), Option<String>>;
    static CACHE: Mutex<Cache> = Mutex::new(Cache::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let why = cache.entry((mechanism.name, bytes)).or_insert_with(|| {
        (mechanism.unavailable)(bytes).or_else(|| {
            let config = ChannelConfig { bytes, link: Arc::new(Link::new().ok()?) };
            let error = (mechanism.make)(config).err()?;
            Some(format!("cannot be made here: {error}"))
        })
    });
    why.clone()
}

/// Whether they are on two CPUs for sure.
pub fn hands_over(parameters: &Parameters) -> bool {
    placement(parameters, Placement::Free).crosses()
}
