//! Enlarges pipes, so that stages that work in bursts wait for each other less often.

use contend_record::advice::{RewriteId, Safety};
use contend_record::pipe::{Boundary, WaitingSide};

use super::{Change, Replacement, Situation, Variant};

/// Requested pipe capacity in bytes: the most for an unprivileged process, unless
/// `/proc/sys/fs/pipe-max-size` has been changed.
const PIPE_BYTES: u64 = 1 << 20;
/// Smallest amount of data for which a larger pipe pays off, in bytes.
const MIN_TRANSFER_BYTES: u64 = 64 * PIPE_BYTES;

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    let Some(profile) = situation.profile.filter(|_| situation.environment.is_file("perl")) else {
        return Vec::new();
    };
    let changes = profile.boundaries.iter().filter(|boundary| balanced(boundary));
    let changes = changes.filter_map(|boundary| {
        let stages = &situation.draft.stages;
        let index = stages.iter().position(|stage| stage.origin == [boundary.from - 1])?;
        let simple = stages[index].simple.as_ref()?;
        let variables =
            simple.variables.iter().map(|(name, value)| format!("{name}={} ", value.raw));
        let mut rest = simple.clone();
        rest.variables.clear();
        // 1031 is F_SETPIPE_SZ. The shell cannot set the capacity of a pipe.
        let text = format!(
            "{}perl -e 'fcntl(STDOUT,1031,{PIPE_BYTES});exec{{$ARGV[0]}}@ARGV' {}",
            variables.collect::<String>(),
            rest.text()
        );
        Some(Change {
            rewrite: RewriteId::LargerPipe,
            at: index..index + 1,
            stages: vec![Replacement::of(text, [index])],
            safety: Safety::Environment,
            variant: Variant::Only,
            reasons: vec![format!(
                "the two sides of the pipe after stage {} wait for each other by turns; with a \
                 pipe of 1 MiB they switch less often",
                boundary.from
            )],
        })
    });
    changes.collect()
}

/// Returns whether both sides of the pipe are known to have waited, neither of them much longer
/// than the other, its capacity can grow, and it transferred enough data for that to pay off.
fn balanced(boundary: &Boundary) -> bool {
    boundary.waiting_side == WaitingSide::Neither
        && boundary.bytes.is_some_and(|bytes| bytes >= MIN_TRANSFER_BYTES)
        && boundary.writer_blocked_seconds > 0.0
        && boundary.reader_starved_seconds > 0.0
        && boundary.capacity_bytes.is_some_and(|capacity| capacity < PIPE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draft, profile_of};
    use super::*;
    use contend_shell::environment::Environment;

    #[test]
    fn only_pipes_at_which_both_sides_wait() {
        let machine = Environment::for_tests("C");
        let draft = draft("LC_ALL=C sed s/a/b/ f | grep c | wc -l", &machine);
        let mut profile = profile_of(3, 1 << 30);
        let boundary = &mut profile.boundaries[0];
        boundary.waiting_side = WaitingSide::Neither;
        (boundary.writer_blocked_seconds, boundary.reader_starved_seconds) = (0.2, 0.2);
        let situation = Situation { draft: &draft, environment: &machine, profile: Some(&profile) };
        let changed: Vec<_> =
            find(&situation).iter().map(|change| draft.changed(change, &machine).text()).collect();
        assert_eq!(
            changed,
            [
                "LC_ALL=C perl -e 'fcntl(STDOUT,1031,1048576);exec{$ARGV[0]}@ARGV' sed s/a/b/ f | grep c | wc -l"
            ]
        );
        let without = Situation { profile: None, ..situation };
        assert!(find(&without).is_empty());
    }
}
