//! Fault: the program reads a file byte by byte and writes a few bytes per record, and each of
//! these steps is a system call. The kernel takes most of the time.
//! `fixed` puts a `BufReader` and a `BufWriter` between the program and the files.
//! `twin` sends messages of a few bytes through a pair of sockets and thinks between them.
//! It is healthy: the client needs each reply, and the think time fills the run, not the calls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The bytes of one record.
const RECORD_BYTES: u64 = 10;
/// The bytes of the file.
const FILE_BYTES: u64 = 200_000;
/// System calls per millisecond.
const CALLS_PER_MS: u64 = 2_500;
/// The steps of mixing for one byte.
const BYTE_ROUNDS: u64 = 8;
/// The mean think time of the client in `twin`.
const THINK_US: u64 = 2_000;
/// The computing for one reply in `twin`.
const REPLY_US: u64 = 20;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    record_bytes: u64,
    records: u64,
    passes: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let record_bytes = vary(&mut state, RECORD_BYTES);
    let records = vary(&mut state, FILE_BYTES) / record_bytes;
    // One read per byte and one write per record.
    let calls = records * (record_bytes + 1);
    Plan {
        seed,
        record_bytes,
        records,
        passes: TOTAL_US * CALLS_PER_MS / 1_000 / calls,
    }
}

/// Makes the input: a file without a name, which goes away when the program ends.
fn make_input(plan: &Plan) -> io::Result<File> {
    let name = format!("unbuffered-{}-{}", std::process::id(), plan.seed);
    let path = std::env::temp_dir().join(name);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    let bytes = plan.records * plan.record_bytes;
    let data: Vec<u8> = (0..bytes).map(|at| mix(plan.seed ^ at, 2) as u8).collect();
    file.write_all(&data)?;
    Ok(file)
}

/// Reads the records byte by byte and writes 4 bytes for each.
fn convert(plan: &Plan, mut input: impl Read, mut output: impl Write) -> io::Result<u64> {
    let mut digest = plan.seed;
    let mut byte = [0];
    for _ in 0..plan.records {
        for _ in 0..plan.record_bytes {
            input.read_exact(&mut byte)?;
            digest = mix(digest ^ u64::from(byte[0]), BYTE_ROUNDS);
        }
        output.write_all(&(digest as u32).to_le_bytes())?;
    }
    output.flush()?;
    Ok(digest)
}

fn run_files(plan: &Plan, buffered: bool) -> io::Result<u64> {
    let mut input = make_input(plan)?;
    let output = OpenOptions::new().write(true).open("/dev/null")?;
    let mut sum = 0u64;
    for _ in 0..plan.passes {
        input.rewind()?;
        let digest = if buffered {
            convert(plan, BufReader::new(&input), BufWriter::new(&output))?
        } else {
            convert(plan, &input, &output)?
        };
        sum = sum.wrapping_add(digest);
    }
    Ok(sum)
}

/// Answers each message of 8 bytes until the client closes its side.
fn serve(mut stream: UnixStream) {
    let mut message = [0; 8];
    while stream.read_exact(&mut message).is_ok() {
        let reply = mix(u64::from_le_bytes(message), REPLY_US * ROUNDS_PER_US);
        stream.write_all(&reply.to_le_bytes()).expect("the client waits");
    }
}

fn run_twin(plan: &Plan) -> io::Result<u64> {
    let (mut stream, server_side) = UnixStream::pair()?;
    let server = thread::spawn(move || serve(server_side));
    let mut state = plan.seed;
    let mut message = plan.seed.to_le_bytes();
    for _ in 0..TOTAL_US / THINK_US {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        thread::sleep(Duration::from_micros(vary(&mut state, THINK_US)));
    }
    drop(stream);
    server.join().expect("the server does not panic");
    Ok(u64::from_le_bytes(message))
}

fn main() -> io::Result<()> {
    let (variant, seed) = arguments();
    let plan = plan(seed);
    let result = match variant.as_str() {
        "sick" => run_files(&plan, false),
        "fixed" => run_files(&plan, true),
        _ => run_twin(&plan),
    }?;
    println!("{result:016x}");
    Ok(())
}

/// Returns 60 % to 140 % of `base`; `state` decides.
fn vary(state: &mut u64, base: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    base * (60 + (*state >> 33) % 81) / 100
}

/// Does `rounds` steps of integer mixing, each of which needs the one before it.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    }
    x
}

unsafe extern "C" {
    fn alarm(seconds: u32) -> u32;
}

/// Reads the variant and the seed, and sets the alarm that ends a run that hangs.
fn arguments() -> (String, u64) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [variant, seed] = args.as_slice()
        && ["sick", "fixed", "twin"].contains(&variant.as_str())
        && let Ok(seed) = seed.parse()
    {
        // SAFETY: `alarm` takes a number and touches no memory of ours.
        unsafe { alarm(LIMIT_S) };
        return (variant.clone(), seed);
    }
    eprintln!("usage: unbuffered sick|fixed|twin SEED");
    std::process::exit(2);
}
