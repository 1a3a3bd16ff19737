//! The process of a case, which creates the subject and takes samples on request.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use contend_sys::dispositions::Dispositions;
use contend_sys::{Signal, child, cpu, spawn};
use rustix::fs::{Mode, OFlags};

use crate::engine::experiment::{Subject, SubjectError};
use crate::engine::protocol::{Measurement, Reply, Request};
use crate::engine::registry::Registry;

/// Time for which this process may outlive the engine, to finish its sample and reap its children.
/// It is killed after that time.
const ORPHAN_LIFETIME_SECONDS: u32 = 20;

/// Answers requests from standard input on standard output, as [`serve`] does. First prepares this
/// process:
///
/// - Resets the dispositions of signals, except that SIGPIPE stays ignored, and unblocks all
///   signals.
/// - Lets this process outlive its parent by at most 20 s.
/// - Replaces both streams with `/dev/null`, so that children can neither read requests nor write
///   between replies.
///
/// # Errors
/// Returns the errors of [`serve`], or an error if the streams cannot be replaced.
pub fn serve_standard_streams(registry: &Registry) -> io::Result<()> {
    // Inherited dispositions must not affect measurements: with SIGCHLD ignored, wait(2) would not
    // report children. SIGPIPE stays ignored, as in every Rust program, so that a write to a closed
    // pipe returns an error.
    Dispositions::default().ignoring(Signal::PIPE).apply();
    spawn::outlive_parent_by(ORPHAN_LIFETIME_SECONDS);
    let requests = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    let replies = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    serve(registry, BufReader::new(File::from(requests)), File::from(replies))
}

/// Answers requests for experiments of `registry` until `requests` ends. The reply to a request
/// that fails is [`Reply::Failed`].
///
/// # Errors
/// Returns an error if a request cannot be read or parsed, or a reply cannot be written.
pub fn serve(
    registry: &Registry,
    requests: impl BufRead,
    mut replies: impl Write,
) -> io::Result<()> {
    let mut subject: Option<Box<dyn Subject>> = None;
    for line in requests.lines() {
        let reply = match serde_json::from_str(&line?)? {
            Request::Open { experiment, parameters, skip_slow_metrics } => {
                let found = registry.find(&experiment).ok_or_else(|| {
                    SubjectError::Unexpected(format!("no experiment '{experiment}'"))
                });
                match found.and_then(|found| (found.subject)(&parameters)) {
                    Ok(mut made) => {
                        if skip_slow_metrics {
                            made.skip_slow_metrics();
                        }
                        Reply::Ready(subject.insert(made).facts())
                    }
                    Err(error) => Reply::Failed(error.to_string()),
                }
            }
            Request::Sample { iterations } => match &mut subject {
                Some(subject) => {
                    sample(subject.as_mut(), iterations, &mut |reply| send(&mut replies, reply))
                }
                None => Reply::Failed("a sample was requested before a subject".to_owned()),
            },
        };
        send(&mut replies, &reply)?;
    }
    Ok(())
}

fn sample(
    subject: &mut dyn Subject,
    iterations: u64,
    send: &mut dyn FnMut(&Reply) -> io::Result<()>,
) -> Reply {
    let started = Instant::now();
    let result = subject.sample(iterations, &mut |step| {
        let _ = send(&Reply::Step(step)); // an error recurs when the sample is sent
    });
    let elapsed = started.elapsed();
    match result {
        Ok(sample) => {
            Reply::Sampled(Box::new(Measurement { sample, elapsed, cpu: cpu_time(subject) }))
        }
        Err(error) => Reply::Failed(error.to_string()),
    }
}

fn cpu_time(subject: &dyn Subject) -> Duration {
    cpu::own_time() + child::children_usage().cpu() + subject.living_children_cpu()
}

fn send(replies: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let line = serde_json::to_string(reply)? + "\n";
    replies.write_all(line.as_bytes())?;
    replies.flush()
}

#[cfg(test)]
mod tests {
    use contend_record::lab::{Step, Unit, View};
    use contend_record::parameters::Parameters;

    use super::*;
    use crate::engine::experiment::{
        Demands, Experiment, Fit, Sample, Sampling, always_available, never_alternates_cpus,
    };
    use crate::engine::registry::Calibrators;

    const COUNTER: Experiment = Experiment {
        name: "mock/counter",
        summary: "x",
        about: "x",
        view: View::Table,
        unit: Unit::Count,
        sampling: Sampling::Adaptive,
        fit: Fit::None,
        settings: &[],
        cases: |_| vec![Parameters::new()],
        unavailable: always_available,
        alternates_cpus: never_alternates_cpus,
        demands: Demands::NONE,
        subject: |_| Ok(Box::new(Counter(0))),
    };

    const REGISTRY: Registry = Registry {
        experiments: &[&COUNTER],
        suites: &[],
        calibration: Calibrators { empty: &COUNTER, distance: &COUNTER },
    };

    /// A subject that counts its iterations and returns the count as the value of a sample.
    struct Counter(u64);

    impl Subject for Counter {
        fn sample(
            &mut self,
            iterations: u64,
            _: &mut dyn FnMut(Step),
        ) -> Result<Sample, SubjectError> {
            self.0 += iterations;
            Ok(Sample::of(self.0 as f64))
        }
    }

    fn talk(requests: &[Request]) -> Vec<Reply> {
        let lines: Vec<_> =
            requests.iter().map(|r| serde_json::to_string(r).expect("JSON") + "\n").collect();
        let mut replies = Vec::new();
        serve(&REGISTRY, lines.concat().as_bytes(), &mut replies).expect("replies can be written");
        let replies = String::from_utf8(replies).expect("JSON");
        replies.lines().map(|line| serde_json::from_str(line).expect("a reply")).collect()
    }

    #[test]
    fn one_subject_takes_all_samples() {
        let open = |experiment: &str| Request::Open {
            experiment: experiment.to_owned(),
            parameters: Parameters::new(),
            skip_slow_metrics: false,
        };
        let sample = Request::Sample { iterations: 10 };
        let replies = talk(&[open("mock/counter"), sample.clone(), sample.clone()]);
        let [Reply::Ready(_), Reply::Sampled(first), Reply::Sampled(second)] = replies.as_slice()
        else {
            panic!("{replies:?}")
        };
        let values = [first, second].map(|taken| taken.sample.value.to_string());
        assert_eq!(values, ["10", "20"], "one subject took both");
        let replies = talk(&[sample, open("no/such")]);
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Failed(_))), "{replies:?}");
    }
}
