//! Runs operators one after another on blocks of input, without processes or pipes.

use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use contend_sys::child::ExitStatus;
use contend_sys::cpu;

use super::chunk_input::ChunkInput;
use super::ended::{Cost, Ended, has_succeeded};
use super::error::GroupError;
use super::sink::OutputSink;
use crate::operators::Operation;
use crate::plan::ir::{Command, StatusRule};

/// Block size in bytes. A block and the operators' output for it fit into the CPU's second-level
/// cache.
const BLOCK_BYTES: usize = 128 << 10;

/// A running chain of operators.
pub(super) struct Chain {
    links: Vec<Link>,
    /// Buffer for blocks read from a file.
    block: Vec<u8>,
    /// Output of the operator that ran last.
    current: Vec<u8>,
    /// Buffer for the output of the next operator.
    next: Vec<u8>,
}

/// One operator of a chain.
struct Link {
    operation: Box<dyn Operation>,
    rule: StatusRule,
    /// Exit code of the operator, or `None` until its input has ended.
    code: Option<i32>,
    /// CPU time that the operator has used so far.
    cpu: Duration,
}

impl Chain {
    /// Starts the operators for `commands`. Returns `None` if there is no command, or if a command
    /// has no operator.
    pub(super) fn start(commands: &[Command]) -> Option<Self> {
        let link = |command: &Command| {
            let operation = command.operator.as_ref()?.start();
            Some(Link { operation, rule: command.status, code: None, cpu: Duration::ZERO })
        };
        let links = commands.iter().map(link).collect::<Option<Vec<_>>>();
        let links = links.filter(|links| !links.is_empty())?;
        Some(Self { links, block: Vec::new(), current: Vec::new(), next: Vec::new() })
    }

    /// Processes `left` and forwards the output. Stops early and returns `Break` if the reader
    /// wants no more output.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or the output cannot be written.
    pub(super) fn feed(
        &mut self,
        left: &mut ChunkInput<'_>,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        while !left.is_empty() {
            let mut buffer = std::mem::take(&mut self.block);
            let wanted = match left.take(BLOCK_BYTES, &mut buffer) {
                Ok(block) => self.pass(0, block, output),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Continue(())),
                Err(error) => Err(error.into()),
            };
            self.block = buffer;
            if wanted?.is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    /// Ends the input, and forwards the remaining output. Returns `Break` if the reader wants no
    /// more output.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn drain(
        &mut self,
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        for at in 0..self.links.len() {
            let mut rest = Vec::new();
            let link = &mut self.links[at];
            if link.code.is_none() {
                link.finish(&mut rest);
            }
            if !rest.is_empty() && self.pass(at + 1, &rest, output)?.is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    /// Passes a block through the operators from index `from` on, if any, and forwards the result.
    /// Returns `Break` if the reader wants no more output.
    fn pass(
        &mut self,
        from: usize,
        block: &[u8],
        output: &mut impl OutputSink,
    ) -> Result<ControlFlow<()>, GroupError> {
        let Some((first, rest)) = self.links[from..].split_first_mut() else {
            return output.write(block);
        };
        self.current.clear();
        first.push(block, &mut self.current);
        for link in rest {
            self.next.clear();
            link.push(&self.current, &mut self.next);
            std::mem::swap(&mut self.current, &mut self.next);
        }
        if self.current.is_empty() { Ok(Continue(())) } else { output.write(&self.current) }
    }

    /// Returns whether the first `links` operators succeeded. One that has not finished counts as
    /// successful.
    pub(super) fn wait_for_first(&self, links: usize) -> bool {
        self.links[..links].iter().all(Link::succeeded)
    }

    /// Returns the exit codes and costs of the operators. An operator that has not finished,
    /// because its reader stopped reading, counts as successful.
    pub(super) fn end(self) -> Ended {
        let codes = self.links.iter().map(|link| link.code.unwrap_or(0));
        Ended {
            statuses: codes.map(ExitStatus::Exited).collect(),
            costs: self.links.iter().map(Link::cost).collect(),
            succeeded: self.links.iter().all(Link::succeeded),
            stderr: Vec::new(),
        }
    }
}

impl Link {
    fn push(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let begun = cpu::own_thread_time();
        self.operation.push(input, output);
        self.cpu += cpu::own_thread_time().saturating_sub(begun);
    }

    fn finish(&mut self, output: &mut Vec<u8>) {
        let begun = cpu::own_thread_time();
        self.code = Some(self.operation.finish(output));
        self.cpu += cpu::own_thread_time().saturating_sub(begun);
    }

    fn cost(&self) -> Cost {
        Cost { cpu: self.cpu, has_process: false }
    }

    fn succeeded(&self) -> bool {
        has_succeeded(ExitStatus::Exited(self.code.unwrap_or(0)), self.rule)
    }
}

#[cfg(test)]
mod tests {
    use contend_commands::testing::simple;
    use contend_shell::environment::Environment;

    use super::super::testing::{command, file};
    use super::*;
    use crate::plan::ir::Operator;

    /// Returns a command that has the operator for the given shell text, but no existing program.
    fn with_operator(text: &str) -> Command {
        let operator = Operator::read(&simple(text), &Environment::for_tests("C"));
        assert!(operator.is_some(), "{text}");
        Command { operator, ..command("not-a-program", &[]) }
    }

    fn over(commands: &[&str], mut input: ChunkInput<'_>) -> (String, Ended) {
        let commands: Vec<Command> = commands.iter().map(|text| with_operator(text)).collect();
        let mut chain = Chain::start(&commands).expect("operators");
        let mut written = Vec::new();
        let mut take = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(Continue(()))
        };
        assert!(chain.feed(&mut input, &mut take).expect("fed").is_continue());
        assert!(chain.drain(&mut take).expect("drained").is_continue());
        (String::from_utf8(written).expect("text"), chain.end())
    }

    #[test]
    fn each_operator_takes_what_the_one_before_it_writes() {
        let stages = ["tr a-z A-Z", "tr -d X", "tr -s '\\n'", "wc -lc"];
        let input = "ax\n\nb\n".repeat(100_000);
        let (written, ended) = over(&stages, ChunkInput::Bytes(input.as_bytes()));
        assert_eq!(written, " 200000  400000\n");
        assert!(ended.succeeded && ended.statuses == [ExitStatus::Exited(0); 4]);
        let does_its_work_here = |cost: &Cost| !cost.has_process && cost.cpu > Duration::ZERO;
        assert!(ended.costs.len() == 4 && ended.costs.iter().all(does_its_work_here), "{ended:?}");
    }

    #[test]
    fn an_input_may_be_a_place_in_a_file() {
        let text = file("0123456789");
        let (written, _) = over(&["tr 4 x"], ChunkInput::File(&text, 3..7));
        assert_eq!(written, "3x56");
        let (written, _) = over(&["wc -c"], ChunkInput::File(&text, 8..99));
        assert_eq!(written, "2\n", "a file that has become shorter");
    }

    #[test]
    fn a_command_without_an_operator_needs_processes() {
        assert!(Chain::start(&[with_operator("wc -l"), command("cat", &[])]).is_none());
        assert!(Chain::start(&[]).is_none());
    }

    #[test]
    fn nothing_goes_on_when_nobody_wants_it() {
        let mut chain = Chain::start(&[with_operator("tr a b")]).expect("an operator");
        let mut blocks = 0;
        let input = vec![b'a'; 4 * BLOCK_BYTES];
        let mut enough = |_: &[u8]| {
            blocks += 1;
            Ok(Break(()))
        };
        let fed = chain.feed(&mut ChunkInput::Bytes(&input), &mut enough);
        assert!(fed.expect("fed").is_break());
        assert_eq!(blocks, 1);
    }
}
