//! A test that lowers the limit on open files, in a process of its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use contend_callback::{Builder, Receptor};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Starts a runtime with one Worker, and registers a socket while no further descriptor can be
/// opened.
fn register_at_limit(builder: Builder) -> io::Result<()> {
    let receptor = builder.workers(1).start()?;
    let (socket, _other) = UnixStream::pair()?;
    let initial = getrlimit(Resource::Nofile);
    let lowest_free = File::open("/dev/null")?.as_raw_fd();
    let full = Rlimit { current: u64::try_from(lowest_free).ok(), maximum: initial.maximum };
    setrlimit(Resource::Nofile, full)?;
    let no_file = File::open("/dev/null").map(drop);
    let registered = receptor.spawn_reply(move |context, reply| {
        reply.send(context.register(socket).map(drop));
        context.end()
    });
    let registered = registered.expect("room").wait().expect("it replies");
    setrlimit(Resource::Nofile, initial)?;
    let error = no_file.expect_err("no descriptor is left").raw_os_error();
    assert_eq!(error, Some(rustix::io::Errno::MFILE.raw_os_error()));
    registered
}

#[test]
fn a_worker_with_io_enabled_needs_no_descriptors_to_register() {
    let late = register_at_limit(Receptor::builder()).expect_err("epoll needs a descriptor");
    assert_eq!(late.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    register_at_limit(Receptor::builder().enable_io()).expect("the Worker has its descriptors");
}
