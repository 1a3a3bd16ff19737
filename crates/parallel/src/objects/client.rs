//! Reads objects of a store.

use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, parse_url_opts};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::Properties;

/// Begin of the names of environment variables that configure the client, such as `AWS_REGION`.
const VARIABLES: &str = "AWS_";

/// Runs requests, on the thread that waits for them.
static RUNTIME: LazyLock<Result<Runtime, io::Error>> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build());

fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Returns the store of an object, and its place there.
fn store(name: &str) -> io::Result<(Box<dyn ObjectStore>, Path)> {
    let url = Url::parse(name).map_err(io::Error::other)?;
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        name.starts_with(VARIABLES).then(|| (name.to_lowercase(), value))
    });
    parse_url_opts(&url, variables).map_err(io::Error::other)
}

/// Asks the store for the properties of an object.
pub(super) fn properties(name: &str) -> io::Result<Properties> {
    let (store, place) = store(name)?;
    let found = runtime()?.block_on(store.head(&place)).map_err(reason)?;
    Ok(Properties {
        bytes: found.size,
        modified: found.last_modified.timestamp_nanos_opt().unwrap_or_default().into(),
        tag: found.e_tag.unwrap_or_default(),
    })
}

/// Writes the bytes of an object in a range, if its tag is the given one.
pub(super) fn copy(
    name: &str,
    tag: &str,
    range: Range<u64>,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let (store, place) = store(name)?;
    let if_match = (!tag.is_empty()).then(|| tag.to_owned());
    let options =
        GetOptions { range: Some(GetRange::Bounded(range)), if_match, ..GetOptions::default() };
    runtime()?.block_on(async {
        let mut stream = store.get_opts(&place, options).await.map_err(reason)?.into_stream();
        while let Some(bytes) = stream.next().await {
            to.write_all(&bytes.map_err(reason)?)?;
        }
        Ok(())
    })
}

fn reason(error: object_store::Error) -> io::Error {
    match &error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound.into(),
        object_store::Error::Precondition { .. } => {
            io::Error::other("it has changed since the job was planned")
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied.into(),
        _ => io::Error::other(error),
    }
}
