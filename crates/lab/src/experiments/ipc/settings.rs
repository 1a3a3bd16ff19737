//! Parameters that `ipc/one-way`, `ipc/round-trip` and `ipc/rate` have in common, and the exchange
//! that they describe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use contend_record::parameters::{Parameters, names};

use super::channels::{self, ChannelConfig, Mechanism};
use super::exchange::Exchange;
use crate::engine::experiment::SubjectError;
use crate::engine::setting::Setting;
use crate::support::partners::settings::{PARTNERS, PLACEMENT, pair, placement};
use crate::support::partners::{Link, Placement};

/// Parameter that names the mechanism for the messages.
pub const MECHANISM: Setting =
    Setting::named(names::MECHANISM, "mechanism that carries the messages", channels::names);

/// Parameter that sets the length of a message, from 1 byte to 16 MiB.
pub const BYTES: Setting = Setting::number(
    names::BYTES,
    "length of a message in bytes [default: 1, 64, 4096, 65536, 1048576]",
    1,
    16 << 20,
);

/// Parameters of `ipc/one-way` and `ipc/round-trip`.
pub const SETTINGS: [&Setting; 4] = [&MECHANISM, &BYTES, &PARTNERS, &PLACEMENT];

/// Returns the case with the given mechanism, message length in bytes, partners and placement.
pub fn case(mechanism: &Mechanism, bytes: u64, partners: &str, placement: Placement) -> Parameters {
    let parameters = Parameters::new().with(MECHANISM.name, mechanism.name);
    let parameters = parameters.with(BYTES.name, bytes).with(PARTNERS.name, partners);
    parameters.with(PLACEMENT.name, placement.name())
}

/// Returns the mechanism of a case, or `None` if the parameters name none or an unknown one.
fn mechanism(parameters: &Parameters) -> Option<&'static Mechanism> {
    channels::find(parameters.text(MECHANISM.name)?)
}

fn bytes(parameters: &Parameters) -> usize {
    let bytes = parameters.number(BYTES.name).unwrap_or(1);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the exchange of a case, with `warm_up` messages before the measured ones.
///
/// # Errors
/// Returns an error if the parameters name no mechanism or an unknown one.
pub fn exchange(parameters: &Parameters, warm_up: u64) -> Result<Exchange, SubjectError> {
    let mechanism = mechanism(parameters)
        .ok_or_else(|| SubjectError::Unexpected("no such mechanism".to_owned()))?;
    let pair = pair(parameters, Placement::Free);
    Ok(Exchange { pair, mechanism, bytes: bytes(parameters), warm_up })
}

/// Returns why a case cannot be measured here, or `None` if it can or its mechanism is unknown.
pub fn unavailable(parameters: &Parameters) -> Option<String> {
    let (mechanism, bytes) = (mechanism(parameters)?, bytes(parameters));
    if bytes > mechanism.max_message_bytes {
        let max = mechanism.max_message_bytes;
        let bytes = if max == 1 { "byte" } else { "bytes" };
        return Some(format!("carries messages of at most {max} {bytes}"));
    }
    if !mechanism.between_threads && parameters.text(PARTNERS.name) == Some("thread") {
        return Some("works between processes only".to_owned());
    }
    let placement = placement(parameters, Placement::Free);
    placement.unavailable().or_else(|| creation_error(mechanism, bytes))
}

/// Returns why the mechanism cannot create a channel for messages of `bytes` bytes here: a known
/// limit, or the error of an attempt. Returns `None` if it can, or if there is no memory for an
/// attempt. Each combination is attempted once per process.
fn creation_error(mechanism: &'static Mechanism, bytes: usize) -> Option<String> {
    type Cache = BTreeMap<(&'static str, usize), Option<String>>;
    static CACHE: Mutex<Cache> = Mutex::new(Cache::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let why = cache.entry((mechanism.name, bytes)).or_insert_with(|| {
        (mechanism.unavailable)(bytes).or_else(|| {
            let config = ChannelConfig { bytes, link: Arc::new(Link::new().ok()?) };
            let error = (mechanism.make)(config).err()?;
            Some(format!("cannot be created here: {error}"))
        })
    });
    why.clone()
}

/// Returns whether the placement binds the partners to two different CPUs. Returns `false` for
/// `free`, although the scheduler may then run the partners on two CPUs.
pub fn alternates_cpus(parameters: &Parameters) -> bool {
    placement(parameters, Placement::Free).uses_two_cpus()
}
