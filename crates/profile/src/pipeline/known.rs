//! What is known of commands by their name, where observation cannot tell.

/// Commands that need all of their input before they can write any output.
const HOLDERS: &[&str] = &["cksum", "shuf", "sort", "tac", "tail", "tsort", "wc"];

/// Whether the command cannot but hold its output until its input ends.
pub fn holds_by_nature(command: &str) -> bool {
    let Some(program) = program(command) else { return false };
    let counts = program.ends_with("grep") && has_option(command, &['c'], &["--count"]);
    let digests = program.ends_with("sum");
    HOLDERS.contains(&program) || digests || counts
}

/// Whether the command sorts all of its input: what it writes before that has ended goes
/// to temporary files.
pub fn sorts(command: &str) -> bool {
    let other = has_option(command, &['m', 'c', 'C'], &["--merge", "--check"]);
    program(command) == Some("sort") && !other
}

/// The program's name without its folder, after assignments.
fn program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().find(|word| !word.contains('='))?;
    word.rsplit('/').next()
}

/// Whether an argument begins like this option or, among others, has this letter.
fn has_option(command: &str, letters: &[char], long: &[&str]) -> bool {
    command.split_whitespace().any(|word| match word.strip_prefix('-') {
        Some(options) if !options.starts_with('-') => options.contains(letters),
        _ => long.iter().any(|option| word.starts_with(option)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_name_and_options() {
        for held in ["LC_ALL=C sort -n", "/usr/bin/wc -l", "sha256sum", "grep -ic x"] {
            assert!(holds_by_nature(held), "{held}");
        }
        for streams in ["grep x", "cat", "awk '{ print }'", ""] {
            assert!(!holds_by_nature(streams), "{streams}");
        }
        assert!(sorts("LC_ALL=C sort -k 2,2n -u") && sorts("sort --parallel=2"));
        assert!(!sorts("sort -m a b") && !sorts("sort --check") && !sorts("tsort"));
    }
}
