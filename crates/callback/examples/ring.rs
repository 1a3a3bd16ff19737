//! Passes messages around a ring of callback threads and prints the time per message, which
//! includes building the ring.
//!
//! ```text
//! cargo run --release -p contend-callback --example ring [UNITS] [MESSAGES]
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Next, Receptor, Reply, SpawnError};

/// Messages between members of the ring.
enum Word {
    /// The neighbour that the receiver passes tokens to.
    Next(Address<Word>),
    /// A token, with the number of steps left.
    Token(u64),
}

/// Spawns a member of the ring, which passes each token on to its neighbour. A member without a
/// neighbour gets one from [`Word::Next`]. When a token arrives that has no steps left, or that
/// cannot be passed on because there is no neighbour yet, the member sends the time since its spawn
/// to `last_step`, if any, and ends.
fn member(
    context: &mut Context<'_>,
    mut next: Option<Address<Word>>,
    mut last_step: Option<Reply<Duration>>,
) -> Result<Address<Word>, SpawnError> {
    let begun = Instant::now();
    context.spawn_handler(move |context, word| match (word, next) {
        (Word::Next(address), _) => {
            next = Some(address);
            context.keep_receiving()
        }
        (Word::Token(left), Some(next)) if left > 0 => {
            match context.send(next, Word::Token(left - 1)) {
                Ok(()) => context.keep_receiving(),
                Err(error) => context.fail(&error.to_string()),
            }
        }
        (Word::Token(_), _) => {
            if let Some(reply) = last_step.take() {
                reply.send(begun.elapsed());
            }
            context.end()
        }
    })
}

/// Builds the ring from its end, and sends a token around it. Each member is spawned with the
/// address of its neighbour, except for the last one, which gets the address of the first in a
/// message.
fn ring(context: &mut Context<'_>, units: u64, steps: u64, reply: Reply<Duration>) -> Next {
    let built = member(context, None, Some(reply)).and_then(|end| {
        let mut first = end;
        for _ in 1..units {
            first = member(context, Some(first), None)?;
        }
        Ok((first, end))
    });
    let Ok((first, end)) = built else { return context.fail("there is no room") };
    // The number of steps is a multiple of `units`, so the token ends where it began, at `end`.
    let sent = context.send(end, Word::Next(first)).is_ok()
        && context.send(end, Word::Token(steps.next_multiple_of(units))).is_ok();
    if sent { context.end() } else { context.fail("the ring has ended") }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ring: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text:?} is no number"));
    let mut arguments = std::env::args().skip(1).map(number);
    let units = arguments.next().unwrap_or(Ok(1000))?.max(1);
    let messages = arguments.next().unwrap_or(Ok(100_000))?;
    let receptor = Receptor::start()?;
    let done = receptor.spawn_reply(move |context, reply| ring(context, units, messages, reply))?;
    let took = done.wait()?;
    let steps = messages.next_multiple_of(units);
    let each = took.as_secs_f64() * 1e9 / steps as f64;
    println!("{steps} messages round {units} callback threads in {took:.2?}, {each:.1} ns each");
    Ok(())
}
