//! Tests of callback threads that wait for file descriptors.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use contend_callback::{Context, Interest, Never, Next, Receptor, Source};

/// Echoes the input of a stream until it ends.
fn echo(context: &mut Context<'_>, source: Source<TcpStream>, mut rest: Vec<u8>) -> Next {
    let mut buffer = [0; 1000];
    loop {
        while !rest.is_empty() {
            match context.attempt(&source, Interest::Write, |mut stream| stream.write(&rest)) {
                Ok(written) => drop(rest.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return context.when_ready(source, Interest::Write, |context, source| {
                        echo(context, source, rest)
                    });
                }
                Err(_) => return context.end(),
            }
        }
        match context.attempt(&source, Interest::Read, |mut stream| stream.read(&mut buffer)) {
            Ok(0) => return context.end(),
            Ok(read) => rest.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return context.when_ready(source, Interest::Read, |context, source| {
                    echo(context, source, Vec::new())
                });
            }
            Err(_) => return context.end(),
        }
    }
}

fn accept(context: &mut Context<'_>, listener: Source<TcpListener>, left: usize) -> Next {
    let mut left = left;
    while left > 0 {
        match context.attempt(&listener, Interest::Read, TcpListener::accept) {
            Ok((stream, _)) => {
                left -= 1;
                let callback = |context: &mut Context<'_>| {
                    let source = context.register(stream).expect("a socket");
                    echo(context, source, Vec::new())
                };
                context.spawn(callback).expect("room");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return context.when_ready(listener, Interest::Read, move |context, listener| {
                    accept(context, listener, left)
                });
            }
            Err(error) => return context.fail(&error.to_string()),
        }
    }
    context.end()
}

#[test]
fn a_server_serves_fifty_clients_concurrently_and_ends() {
    const CLIENT_COUNT: usize = 50;
    let receptor = Receptor::builder().workers(2).start().expect("threads");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let serve = move |context: &mut Context<'_>| {
        let listener = context.register(listener).expect("a socket");
        accept(context, listener, CLIENT_COUNT)
    };
    receptor.spawn(serve).expect("it runs");
    // All clients connect before the first one sends.
    let mut clients: Vec<TcpStream> =
        (0..CLIENT_COUNT).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    for round in 0..3_u8 {
        for (n, client) in clients.iter_mut().enumerate() {
            client.write_all(&[round, u8::try_from(n).expect("small")]).expect("it reads");
        }
        for (n, client) in clients.iter_mut().enumerate() {
            let mut answer = [0; 2];
            client.read_exact(&mut answer).expect("it answers");
            assert_eq!(answer, [round, u8::try_from(n).expect("small")]);
        }
    }
    // This is more than a socket's buffers hold, so writing has to wait, too.
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut client = clients.pop().expect("fifty");
    let mut reader = client.try_clone().expect("a descriptor");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&large).expect("it reads");
            client.shutdown(std::net::Shutdown::Write).expect("open");
        });
        std::thread::sleep(Duration::from_millis(50));
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).expect("it answers");
        assert!(answer == large, "{} bytes came back", answer.len());
    });
    drop((client, reader, clients));
    receptor.wait();
}

#[test]
fn timers_and_messages_continue_while_a_unit_waits_for_a_descriptor() {
    let receptor = Receptor::builder().workers(1).start().expect("threads");
    let (mine, theirs) = UnixStream::pair().expect("sockets");
    let waits = receptor.spawn_reply(move |context, reply| {
        let source = context.register(theirs).expect("a socket");
        context.when_ready(source, Interest::Read, move |context, source| {
            let mut buffer = [0; 8];
            let read =
                context.attempt(&source, Interest::Read, |mut stream| stream.read(&mut buffer));
            reply.send(read.map_err(|error| error.kind()));
            context.end()
        })
    });
    let waits = waits.expect("it runs");
    for _ in 0..20 {
        let timer = receptor.spawn_reply(|context, reply| {
            context.after(Duration::from_millis(1), |context| {
                reply.send(());
                context.end()
            })
        });
        assert_eq!(timer.expect("it runs").wait(), Ok(()));
    }
    (&mine).write_all(b"abc").expect("open");
    assert_eq!(waits.wait(), Ok(Ok(3)));
    receptor.wait();
}

#[test]
fn events_of_a_closed_descriptor_do_not_reach_its_successor() {
    let receptor = Receptor::builder().workers(1).start().expect("threads");
    for round in 0..300_u16 {
        let (mine, theirs) = UnixStream::pair().expect("sockets");
        let reads = receptor.spawn_reply::<u8, _>(move |context, reply| {
            let source = context.register(theirs).expect("a socket");
            context.when_ready(source, Interest::Read, move |context, source| {
                let mut byte = [0];
                let read = context.attempt(&source, Interest::Read, |mut one| one.read(&mut byte));
                read.expect("it is ready");
                reply.send(byte[0]);
                context.end()
            })
        });
        let byte = round.to_le_bytes()[0];
        (&mine).write_all(&[byte]).expect("open");
        assert_eq!(reads.expect("it runs").wait(), Ok(byte));
    }
    receptor.wait();
}

/// Reads a stream until it ends. After each read that returned input, declares the source drained;
/// then waits. Replies with the numbers of bytes and of reads that would have blocked.
fn count(
    context: &mut Context<'_>,
    source: Source<UnixStream>,
    so_far: [u64; 2],
    reply: contend_callback::Reply<[u64; 2]>,
) -> Next {
    let [mut bytes, mut blocked] = so_far;
    match context.attempt(&source, Interest::Read, |mut stream| stream.read(&mut [0; 100])) {
        Ok(0) => {
            reply.send([bytes, blocked]);
            return context.end();
        }
        Ok(read) => {
            bytes += read as u64;
            context.drained(&source);
        }
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            blocked += 1;
        }
    }
    context.when_ready(source, Interest::Read, move |context, source| {
        count(context, source, [bytes, blocked], reply)
    })
}

#[test]
fn a_drained_source_reports_more_input_and_the_end() {
    let receptor = Receptor::builder().workers(1).start().expect("threads");
    for round in 0..300 {
        let (mut mine, theirs) = UnixStream::pair().expect("sockets");
        let counted = receptor.spawn_reply(move |context, reply| {
            let source = context.register(theirs).expect("a socket");
            count(context, source, [0; 2], reply)
        });
        let pieces = round % 4;
        for piece in 0..pieces {
            mine.write_all(b"x").expect("open");
            if piece % 2 == 0 {
                // Usually long enough for a separate read.
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        drop(mine); // the end often arrives together with the last byte
        let [bytes, blocked] = counted.expect("it runs").wait().expect("it ends");
        assert_eq!(bytes, pieces);
        assert!(blocked <= 1, "{blocked} of {pieces}"); // the one before any input
    }
    receptor.wait();
}

#[test]
fn regular_files_and_sources_of_other_workers_are_refused() {
    let receptor = Receptor::builder().workers(2).start().expect("threads");
    let file = tempfile();
    let error = receptor.spawn_reply(move |context, reply| {
        reply.send(context.register(file).expect_err("a regular file").kind());
        context.end()
    });
    assert_eq!(error.expect("it runs").wait(), Ok(io::ErrorKind::PermissionDenied));
    // A source of another Worker is refused.
    let (source, is_source) = std::sync::mpsc::channel();
    let (_mine, theirs) = UnixStream::pair().expect("sockets");
    let make = move |context: &mut Context<'_>| {
        source.send(context.register(theirs).expect("a socket")).expect("somebody waits");
        context.end()
    };
    receptor.spawn_on::<Never, _>(0, make).expect("it runs");
    let source = is_source.recv().expect("made");
    let wrong = move |context: &mut Context<'_>| {
        context.when_ready(source, Interest::Read, |_, _| unreachable!("it fails"))
    };
    receptor.spawn_on::<Never, _>(1, wrong).expect("it runs");
    receptor.wait();
}

/// Creates an unnamed regular file in memory.
fn tempfile() -> std::fs::File {
    let memory = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC);
    std::fs::File::from(memory.expect("memory"))
}
