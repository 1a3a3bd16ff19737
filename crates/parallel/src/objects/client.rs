//! Reads objects of a store.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use contend_sys::signal::Mask;
use futures_util::{StreamExt as _, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _};
use tokio::runtime::{Builder, Runtime};

use super::{Properties, SCHEME};

/// Largest number of requests at the same time.
const MAX_REQUESTS: usize = 32;

/// Runs requests, on the thread that waits for them. Names of hosts are resolved on other threads, which must leave signals to
/// the threads of contend.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().on_thread_start(|| Mask::all().restore()).build()
});

fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Returns the store of an object, and its place there. The variables `AWS_…` configure the store.
fn store(name: &str) -> io::Result<(Arc<AmazonS3>, Path)> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<AmazonS3>>>> = LazyLock::new(Mutex::default);
    let place = name.strip_prefix(SCHEME).unwrap_or_default();
    let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
    let path = Path::parse(key).map_err(io::Error::other)?;
    if path.as_ref() != key || key.is_empty() {
        return Err(io::Error::other(format!("'{key}' cannot be the key of an object")));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = known.get(bucket) {
        return Ok((Arc::clone(store), path));
    }
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let store = Arc::new(builder.build().map_err(io::Error::other)?);
    known.insert(bucket.to_owned(), Arc::clone(&store));
    Ok((store, path))
}

/// Asks the store for the properties of objects, in this order.
pub(super) fn properties<'a>(
    names: impl Iterator<Item = &'a str>,
) -> io::Result<Vec<io::Result<Properties>>> {
    let requests = names.map(|name| async {
        let (store, place) = store(name)?;
        let found = store.head(&place).await.map_err(reason)?;
        let tag = found.e_tag.ok_or_else(|| io::Error::other("its store sends no ETag"))?;
        let modified = found.last_modified.timestamp_nanos_opt().unwrap_or_default().into();
        Ok(Properties { bytes: found.size, modified, tag })
    });
    let requests: Vec<_> = requests.collect();
    Ok(runtime()?.block_on(stream::iter(requests).buffered(MAX_REQUESTS).collect()))
}

/// Writes the bytes of an object in a range, if its tag is the given one.
pub(super) fn copy(
    name: &str,
    tag: &str,
    range: Range<u64>,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let (store, place) = store(name)?;
    let mut missing = range.end - range.start;
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        if_match: Some(tag.to_owned()),
        ..GetOptions::default()
    };
    runtime()?.block_on(async {
        let mut stream = store.get_opts(&place, options).await.map_err(reason)?.into_stream();
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(reason)?;
            missing = missing.saturating_sub(bytes.len() as u64);
            to.write_all(&bytes)?;
        }
        if missing == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
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
