//! Gives `sort` more memory, more threads or compression. A `sort` that reads a pipe starts with a
//! small buffer and spills to temporary files.

use contend_commands::sort::{COMPRESS, PARALLEL, Sort};
use contend_commands::{Simple, Word};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation, Variant};

/// Size in bytes up to which an input from a pipe fits into sort's initial buffer.
const INITIAL_BUFFER_BYTES: u64 = 8 << 20;
/// Number of bytes of memory that sort needs per byte of input with short lines.
const MEMORY_PER_BYTE: u64 = 3;
/// Maximum number of threads that sort uses by default.
const MAX_DEFAULT_THREADS: usize = 8;
/// Compression programs, fastest first.
const COMPRESSORS: [&str; 3] = ["lz4", "zstd", "gzip"];

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    if !situation.environment.is_gnu("sort") {
        return Vec::new();
    }
    situation.worthwhile(|index, stage| {
        let (simple, sort) = stage.read(Sort::read)?;
        let bytes =
            situation.measured(stage)?.bytes_in.filter(|&bytes| bytes > INITIAL_BUFFER_BYTES)?;
        let change = |variant: Variant, option: Vec<Word>, reason: String| {
            let text = with_options(simple, option);
            let safety = Safety::Environment;
            Change {
                variant,
                ..Change::of_one(RewriteId::SortResources, index, text, None, safety, reason)
            }
        };
        let wanted = (MEMORY_PER_BYTE * bytes).next_multiple_of(64 << 20);
        let fits = wanted <= situation.environment.memory_bytes / 2;
        let reads_pipe = sort.files.is_empty() && simple.input.is_none();
        let mut changes = Vec::new();
        if fits && reads_pipe && !sort.options.has('S') {
            let size = format!("{}M", wanted >> 20);
            let reason = format!(
                "with a {size} buffer sort writes no temporary files and uses all its threads"
            );
            let option = vec![Word::new("-S"), Word::new(size)];
            changes.push(change(Variant::Memory, option, reason));
        }
        if situation.environment.cpus > MAX_DEFAULT_THREADS && !sort.options.has(PARALLEL) {
            let count = situation.environment.cpus;
            let reason = format!("by default sort uses only {MAX_DEFAULT_THREADS} of {count} CPUs");
            let option = vec![Word::new(format!("--parallel={count}"))];
            changes.push(change(Variant::Threads, option, reason));
        }
        let compressor = COMPRESSORS.iter().find(|name| situation.environment.is_file(name));
        if let Some(name) = compressor.filter(|_| !fits && !sort.options.has(COMPRESS)) {
            let reason = "its temporary files do not fit into memory; compressed, they need less \
                          disk bandwidth";
            let option = Word::new(format!("--compress-program={name}"));
            changes.push(change(Variant::Compression, vec![option], reason.to_owned()));
        }
        Some(changes)
    })
}

fn with_options(simple: &Simple, options: Vec<Word>) -> String {
    simple.with(options.into_iter().chain(simple.arguments.iter().cloned()).collect()).text()
}

#[cfg(test)]
mod tests {
    use super::super::tests::draft;
    use super::super::tests::profile_of;
    use super::*;
    use contend_shell::environment::Environment;

    fn changed(text: &str, megabytes: u64, environment: &Environment) -> Vec<String> {
        let draft = draft(text, environment);
        let profile = profile_of(draft.stages.len(), megabytes << 20);
        let situation = Situation { draft: &draft, environment, profile: Some(&profile) };
        find(&situation).iter().map(|change| draft.changed(change, environment).text()).collect()
    }

    #[test]
    fn memory_for_what_comes_through_a_pipe() {
        let machine = Environment::for_tests("C");
        assert_eq!(changed("grep x f | sort -n", 100, &machine), ["grep x f | sort -S 320M -n"]);
        for text in ["sort f | uniq", "sort <f | uniq", "grep x f | sort -S 1G", "sort -m f g"] {
            assert_eq!(changed(text, 100, &machine), [""; 0], "{text}");
        }
        assert_eq!(changed("grep x f | sort", 2, &machine), [""; 0]);
    }

    #[test]
    fn compression_where_memory_does_not_suffice_and_threads_where_there_are_cpus() {
        let small = Environment { memory_bytes: 100 << 20, ..Environment::for_tests("C") };
        let changed_there = changed("grep x f | sort", 100, &small);
        assert_eq!(changed_there, ["grep x f | sort --compress-program=lz4"]);
        let large = Environment { cpus: 64, ..Environment::for_tests("C") };
        assert_eq!(changed("sort f | uniq", 100, &large), ["sort --parallel=64 f | uniq"]);
    }
}
