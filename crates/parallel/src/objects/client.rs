//! Reads and writes objects of a store.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek as _};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use contend_sys::interrupt::has_end_request;
use contend_sys::signal::Mask;
use futures_util::future::{Either, select};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hdfs_native::{Client, ClientBuilder, HdfsError};
use hdfs_native_object_store::HdfsObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload,
    WriteMultipart,
};
use rustix::io::Errno;
use tokio::runtime::{Builder, Runtime};

use super::{HDFS, IS_OVER, Properties, S3};

/// Largest number of requests at the same time.
const MAX_REQUESTS: usize = 32;
/// Size of the pieces in which a large object is written, in bytes. The client gives a request 30 seconds.
const PIECE_BYTES: usize = 8 << 20;
/// Largest number of pieces of an object.
const MAX_PIECES: u64 = 10_000;
/// Largest number of pieces that are sent at the same time.
const PIECES_AT_ONCE: usize = 2;

/// Runs requests, on the thread that waits for them. Names of hosts are resolved on other threads, which must leave signals to
/// the threads of contend.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().on_thread_start(|| Mask::all().restore()).build()
});

fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Time until a store has to be ready for a job, and until a removal is given up.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Permissions of a directory that only its owner can change.
const READABLE: u32 = 0o755;
/// Permissions of a directory that only its owner can use.
const PRIVATE: u32 = 0o700;
/// Time between two looks at whether the run is being ended.
const PAUSE: Duration = Duration::from_millis(50);
/// Settings for a server of HDFS that has no other to take its place. By default, requests to one that does not answer take minutes
/// to fail; with these, about 7 s.
const OF_ONE_SERVER: [(&str, &str); 1] = [("dfs.client.failover.max.attempts", "3")];

/// Waits for an operation, unless the run is being ended.
fn wait<T>(operation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let is_over = async {
        while !IS_OVER.load(Ordering::Relaxed) && !has_end_request() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    runtime()?.block_on(async {
        match select(pin!(operation), pin!(is_over)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(io::ErrorKind::Interrupted.into()),
        }
    })
}

/// Waits for requests, a limited number at the same time, unless the run is being ended. The results have their order.
fn wait_for_all<T>(
    requests: impl Iterator<Item = impl Future<Output = io::Result<T>>>,
) -> io::Result<Vec<io::Result<T>>> {
    let requests: Vec<_> = requests.collect();
    wait(async { Ok(stream::iter(requests).buffered(MAX_REQUESTS).collect().await) })
}

/// The clients of a store.
#[derive(Debug, Clone)]
struct Store {
    objects: Arc<dyn ObjectStore>,
    /// The client for what objects do not have, such as permissions; `None` unless it is a Hadoop file system.
    hdfs: Option<Client>,
}

impl Store {
    /// Creates the clients for a scheme and a server: the name of a bucket, or an address, which may be empty. The variables `AWS_…`
    /// configure a store of S3, and Hadoop's own configuration files one of HDFS.
    fn new(scheme: &str, server: &str) -> io::Result<Self> {
        if scheme != HDFS {
            let builder = AmazonS3Builder::from_env().with_bucket_name(server);
            let objects = Arc::new(builder.build().map_err(reason)?);
            return Ok(Self { objects, hdfs: None });
        }
        let mut builder = ClientBuilder::new().with_io_runtime(runtime()?.handle().clone());
        if !server.is_empty() {
            builder = builder.with_url(format!("{scheme}{server}"));
        }
        if server.contains(':') {
            builder = builder.with_config(OF_ONE_SERVER);
        }
        let client = builder.build().map_err(reason_of_hdfs)?;
        Ok(Self { objects: Arc::new(HdfsObjectStore::new(client.clone())), hdfs: Some(client) })
    }
}

/// Returns the store of an object, and its place there.
fn store(name: &str) -> io::Result<(Store, Path)> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Store>>> = LazyLock::new(Mutex::default);
    let scheme = if name.starts_with(HDFS) { HDFS } else { S3 };
    let place = name.strip_prefix(scheme).unwrap_or_default();
    let (server, key) = place.split_once('/').unwrap_or((place, ""));
    let path = Path::parse(key).map_err(io::Error::other)?;
    if path.as_ref() != key || key.is_empty() {
        return Err(io::Error::other(format!("'{key}' cannot be the key of an object")));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let url = format!("{scheme}{server}");
    if let Some(store) = known.get(&url) {
        return Ok((store.clone(), path));
    }
    let store = Store::new(scheme, server)?;
    known.insert(url, store.clone());
    Ok((store, path))
}

/// Asks the store for the properties of objects, in this order.
pub(super) fn properties<'a>(
    names: impl Iterator<Item = &'a str>,
) -> io::Result<Vec<io::Result<Properties>>> {
    let requests = names.map(|name| async {
        let (store, place) = store(name)?;
        let found = store.objects.head(&place).await.map_err(reason)?;
        let tag = found.e_tag.ok_or_else(|| io::Error::other("its store sends no ETag"))?;
        let modified = found.last_modified.timestamp_nanos_opt().unwrap_or_default().into();
        Ok(Properties { bytes: found.size, modified, tag })
    });
    wait_for_all(requests)
}

/// Writes the bytes of an object in a range, if its tag is the given one.
pub(super) fn copy(
    name: &str,
    tag: &str,
    range: Range<u64>,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let (store, place) = store(name)?;
    let wanted = range.end - range.start;
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        if_match: Some(tag.to_owned()),
        ..GetOptions::default()
    };
    wait(async {
        let found = store.objects.get_opts(&place, options).await.map_err(reason)?;
        write(found, wanted, to).await
    })
}

/// Writes what a store sends: `wanted` bytes.
async fn write(found: GetResult, wanted: u64, to: &mut dyn io::Write) -> io::Result<()> {
    let (mut stream, mut missing) = (found.into_stream(), wanted);
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(reason)?;
        missing = missing.saturating_sub(bytes.len() as u64);
        to.write_all(&bytes)?;
    }
    if missing == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns the contents of small objects, in this order.
pub(super) fn contents(names: &[String]) -> io::Result<Vec<io::Result<Vec<u8>>>> {
    let requests = names.iter().map(|name| async {
        let (store, place) = store(name)?;
        let found = store.objects.get(&place).await.map_err(reason)?;
        Ok(found.bytes().await.map_err(reason)?.to_vec())
    });
    wait_for_all(requests)
}

/// Creates or replaces an object, with the contents of a file. It appears as a whole.
pub(super) fn put(name: &str, mut from: &File) -> io::Result<()> {
    let result = put_once(name, from);
    // The client of HDFS does not repeat requests that write, although the connection may be one that has been idle for too long.
    let is_worth_it = name.starts_with(HDFS)
        && result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Other);
    if !is_worth_it {
        return result;
    }
    from.rewind()?;
    put_once(name, from)
}

fn put_once(name: &str, mut from: &File) -> io::Result<()> {
    let (store, place) = store(name)?;
    let least = usize::try_from(from.metadata()?.len() / MAX_PIECES + 1).unwrap_or(usize::MAX);
    let mut piece = vec![0; least.max(PIECE_BYTES)];
    let read = fill(&mut from, &mut piece)?;
    wait(async {
        if read < piece.len() {
            piece.truncate(read);
            store.objects.put(&place, PutPayload::from(piece)).await.map_err(reason)?;
            return Ok(());
        }
        let upload = store.objects.put_multipart(&place).await.map_err(reason)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, piece.len());
        match send(&mut upload, &mut piece, from).await {
            Ok(()) => upload.finish().await.map(|_| ()).map_err(reason),
            Err(error) => {
                let _ = upload.abort().await; // the error matters more
                Err(error)
            }
        }
    })
}

/// Sends a piece, and the rest of a file after it.
async fn send(upload: &mut WriteMultipart, piece: &mut [u8], mut from: &File) -> io::Result<()> {
    let mut read = piece.len();
    while read > 0 {
        upload.write(&piece[..read]);
        upload.wait_for_capacity(PIECES_AT_ONCE).await.map_err(reason)?;
        read = fill(&mut from, piece)?;
    }
    Ok(())
}

/// Reads until `data` is full, or there is no more. Returns the number of bytes.
fn fill(from: &mut impl io::Read, data: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < data.len() {
        match from.read(&mut data[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns the names of the objects below a prefix, without the prefix.
pub(super) fn list(prefix: &str) -> io::Result<Vec<String>> {
    let (store, place) = store(prefix)?;
    let name = |found: &ObjectMeta| {
        let names: Vec<_> = found.location.prefix_match(&place)?.collect();
        if let [name] = names.as_slice() { Some(name.as_ref().to_owned()) } else { None }
    };
    let found =
        async { store.objects.list(Some(&place)).try_collect::<Vec<_>>().await.map_err(reason) };
    Ok(wait(found)?.iter().filter_map(name).collect())
}

/// Prepares a prefix for a job, and checks that objects can be written: creates one without contents. In HDFS, the prefix is a
/// directory, which only this user can read from then on.
pub(super) fn open(prefix: &str, object: &str) -> io::Result<()> {
    let (store, place) = store(prefix)?;
    let is_made = Cell::new(false);
    let open = async {
        if let Some(client) = &store.hdfs {
            let path = format!("/{place}");
            // What was there must not be removed if something fails.
            let found = client.get_file_info(&path).await;
            let is_new = matches!(found, Err(HdfsError::FileNotFound(_)));
            // Directories above it that are missing get these permissions, too.
            client.mkdirs(&path, READABLE, true).await.map_err(reason_of_hdfs)?;
            is_made.set(is_new);
            client.set_permission(&path, PRIVATE).await.map_err(reason_of_hdfs)?;
        }
        let payload = PutPayload::default();
        store.objects.put(&place.join(object), payload).await.map_err(reason).map(|_| ())
    };
    let opened = wait(async {
        let opened = tokio::time::timeout(TIMEOUT, open).await;
        opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    });
    if opened.is_err() && is_made.get() {
        let _ = remove(prefix); // the error matters more
    }
    opened
}

/// Removes all objects below a prefix. In S3, repeats that until there are none, because attempts may still write some.
pub(super) fn remove(prefix: &str) -> io::Result<()> {
    let (store, place) = store(prefix)?;
    let remove = async {
        if let Some(client) = &store.hdfs {
            let path = format!("/{place}");
            // The client does not repeat requests that write, but those that read.
            if let Err(HdfsError::FileNotFound(_)) = client.get_file_info(&path).await {
                return Ok(());
            }
            return client.delete(&path, true).await.map_err(reason_of_hdfs).map(|_| ());
        }
        loop {
            let found = store.objects.list(Some(&place)).map_ok(|it| it.location);
            let found: Vec<_> = found.try_collect().await.map_err(reason)?;
            if found.is_empty() {
                return Ok(());
            }
            let found = stream::iter(found.into_iter().map(Ok)).boxed();
            let mut removed = store.objects.delete_stream(found);
            while let Some(removed) = removed.next().await {
                match removed {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(reason(error)),
                }
            }
        }
    };
    runtime()?.block_on(async {
        let removed = tokio::time::timeout(TIMEOUT, remove).await;
        removed.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    })
}

/// Returns an error of the client of HDFS.
fn reason_of_hdfs(error: HdfsError) -> io::Error {
    match error {
        HdfsError::FileNotFound(_) => Errno::NOENT.into(),
        error => io::Error::other(error.to_string()),
    }
}

/// Returns an error whose message has the causes.
fn reason(error: object_store::Error) -> io::Error {
    use object_store::Error::{Generic, NotFound, PermissionDenied, Precondition, Unauthenticated};

    match error {
        NotFound { .. } => Errno::NOENT.into(),
        Precondition { .. } => io::Error::other("it has changed since the job was planned"),
        PermissionDenied { .. } | Unauthenticated { .. } => Errno::ACCESS.into(),
        Generic { source, .. } => io::Error::other(source.to_string()),
        error => io::Error::other(error.to_string()),
    }
}
