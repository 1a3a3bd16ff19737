use std::collections::BTreeSet;

use super::*;
use crate::pipelines::{program, stages};
use crate::support::installed;

const SEED: u64 = 1;
const COUNT: usize = 500;

/// Programs that the pipelines of [`pairs`] use.
const PROGRAMS: [&str; 13] =
    ["awk", "cat", "cut", "grep", "head", "nl", "rev", "sed", "sort", "tail", "tr", "uniq", "wc"];

/// Returns the pipelines and shapes of the first `count` pairs, without making their inputs, which
/// would take long.
fn texts(seed: u64, count: usize) -> Vec<(String, Option<(&'static str, Form)>)> {
    let mut random = Rng::with_seed(seed);
    let mut text = |_| {
        let mut random = random.fork();
        let (text, shape) = body(&mut random);
        (feed(text, &mut random).0, shape)
    };
    (0..count).map(&mut text).collect()
}

#[test]
fn a_seed_gives_the_same_pairs_and_a_smaller_count_a_prefix() {
    let few: Vec<Pair> = pairs(SEED, 20).collect();
    let more: Vec<Pair> = pairs(SEED, 30).collect();
    assert_eq!(few[..], more[..20]);
    assert_ne!(texts(SEED, 20), texts(SEED + 1, 20));
    let pipelines = |pairs: &[Pair]| pairs.iter().map(|p| p.pipeline.clone()).collect::<Vec<_>>();
    let texts: Vec<String> = texts(SEED, 30).into_iter().map(|(text, _)| text).collect();
    assert_eq!(pipelines(&more), texts);
}

#[test]
fn all_kinds_programs_and_shapes_in_both_forms_appear() {
    let kinds: BTreeSet<Kind> = Kind::ALL.into_iter().cycle().take(COUNT).collect();
    assert_eq!(kinds.len(), Kind::ALL.len());
    let texts = texts(SEED, COUNT);
    let shapes: BTreeSet<_> = texts.iter().filter_map(|(_, shape)| *shape).collect();
    assert_eq!(shapes.len(), 2 * SHAPES.len(), "{shapes:?}");
    let used: BTreeSet<&str> =
        texts.iter().flat_map(|(text, _)| stages(text)).map(program).collect();
    assert_eq!(used, BTreeSet::from(PROGRAMS));
    let distinct: BTreeSet<_> = texts.iter().map(|(text, _)| text).collect();
    assert!(distinct.len() > COUNT * 9 / 10, "{}", distinct.len());
}

#[test]
fn pipelines_have_two_to_five_stages_and_write_nothing() {
    for (text, _) in texts(SEED, 20 * COUNT) {
        assert!((2..=MAX_STAGES).contains(&stages(&text).len()), "{text}");
        let bare: String = text.split('\'').step_by(2).collect();
        assert!(!bare.contains(['>', ';', '&', '$', '`', '(', '@', '*']), "{text}");
        assert!(
            stages(&text).into_iter().all(|stage| PROGRAMS.contains(&program(stage))),
            "{text}"
        );
    }
}

/// Checks what `pipelines_have_two_to_five_stages_and_write_nothing` does not: scripts within
/// quotation marks. `sed --sandbox` refuses the commands that write, read or execute.
#[test]
fn no_script_runs_a_program_or_touches_a_file() {
    let texts = texts(SEED, 10 * COUNT);
    let all: BTreeSet<&str> = texts.iter().flat_map(|(text, _)| stages(text)).collect();
    for stage in all {
        let ways: &[&str] = match program(stage) {
            "sed" => {
                passes_the_sandbox(stage);
                &[" -i"]
            }
            "awk" => &["system", "print >", "getline", "| \""],
            "sort" => &[" -o", " -T", "--compress"],
            _ => &[],
        };
        assert!(!ways.iter().any(|way| stage.contains(way)), "{stage}");
    }
}

fn passes_the_sandbox(stage: &str) {
    let alone =
        stage.replacen("sed ", "sed --sandbox ", 1).replace(" input", "").replace("<input", "");
    let done = crate::bash_command(&alone).stdin(Stdio::null()).output().expect("bash starts");
    assert!(done.status.success(), "{stage}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_name_in_a_template_is_known() {
    for template in SHAPES.iter().flat_map(Shape::templates) {
        let text = stages::fill(template, &mut Rng::with_seed(SEED));
        assert!(!text.contains('@'), "{template}: {text}");
    }
}

#[test]
fn inputs_have_the_property_of_their_kind() {
    let mut random = Rng::with_seed(SEED);
    let more = [Kind::AllEqual, Kind::HugeLine, Kind::JsonLines];
    for kind in Kind::ALL.into_iter().chain(more) {
        for _ in 0..if matches!(kind, Kind::LongLine | Kind::HugeLine) { 1 } else { 10 } {
            let bytes = kind.bytes(&mut random);
            assert!(holds(kind, &bytes), "{kind:?}");
        }
    }
}

fn holds(kind: Kind, bytes: &[u8]) -> bool {
    let lines = || bytes.split(|&byte| byte == b'\n');
    let text = std::str::from_utf8(bytes);
    match kind {
        Kind::Plain => text.is_ok_and(|text| text.is_ascii() && text.ends_with('\n')),
        Kind::Empty => bytes.is_empty(),
        Kind::OneLine => bytes.ends_with(b"\n") && lines().count() == 2,
        Kind::NoFinalNewline => !bytes.is_empty() && !bytes.ends_with(b"\n"),
        Kind::CarriageReturns => bytes.ends_with(b"\r\n"),
        Kind::Nul => bytes.contains(&0),
        Kind::InvalidUtf8 => text.is_err(),
        Kind::Multibyte => text.is_ok_and(|text| !text.is_ascii()),
        Kind::LongLine => lines().any(|line| line.len() >= 9_999_990) && lines().count() == 4,
        Kind::OnlyNewlines => !bytes.is_empty() && bytes.iter().all(|&byte| byte == b'\n'),
        Kind::TinyLines => lines().count() > 200_000 && lines().all(|line| line.len() <= 2),
        Kind::Blanks => lines().any(|line| line.ends_with(b" ") || line.ends_with(b"\t")),
        Kind::Binary => !bytes.is_empty(),
        Kind::HugeLine => lines().any(|line| line.len() >= 49_999_990) && lines().count() == 4,
        Kind::AllEqual => {
            let first = lines().next();
            bytes.ends_with(b"\n") && lines().all(|line| line.is_empty() || Some(line) == first)
        }
        Kind::JsonLines => lines().all(|line| line.is_empty() || line.starts_with(b"{\"a\":")),
        Kind::Metacharacters => text.is_ok_and(|text| text.ends_with('\n')),
    }
}

#[test]
fn parallel_pipelines_use_all_stages_and_stay_in_their_folder() {
    for template in parallel::templates() {
        let text = stages::fill(template, &mut Rng::with_seed(SEED));
        assert!(!text.contains('@'), "{template}: {text}");
        let bare = ["length >", "NF >", "s/^/> /", "<\\1>"]
            .iter()
            .fold(text.clone(), |text, harmless| text.replace(harmless, ""));
        let ways = [">", "sed -i", "sort -o", "tee", "system", "| \"", "w f"];
        assert!(!ways.iter().any(|way| bare.contains(way)), "{text}");
    }
    let few: Vec<Pair> = parallel::pairs(SEED, 5).collect();
    assert_eq!(few[..], parallel::pairs(SEED, 7).collect::<Vec<_>>()[..5]);
}

/// Runs each pipeline twice, because only repeatable output can be compared with that of a rewrite.
#[test]
fn a_pipeline_prints_the_same_every_time() {
    let folder = tempfile::tempdir().expect("a folder");
    for pair in pairs(SEED, 70) {
        if !installed("a_pipeline_prints_the_same_every_time", &pair.pipeline) {
            continue;
        }
        let run = || {
            let (mut command, stdin) = pair.command(folder.path()).expect("the input is written");
            let done = command.stdin(stdin).output().expect("bash starts");
            assert!(done.status.code().is_some_and(|code| code < 126), "{}", pair.pipeline);
            (done.status.code(), done.stdout)
        };
        assert!(run() == run(), "{}", pair.pipeline);
    }
}
