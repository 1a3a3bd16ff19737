//! Shrinks a script on which contend differs: simplifies its setting, and removes fragments, lines,
//! commands and words, while the difference remains.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::generate::{Part, Script, Stdin, Stdout};

/// Shrinks `script` for at most `time`, and returns the smallest script found that still fails:
/// `script` itself if no smaller or simpler one does.
///
/// # Errors
/// Returns the error of `fails`.
pub fn shrink(
    script: Script,
    time: Duration,
    mut fails: impl FnMut(&Script) -> Result<bool>,
) -> Result<Script> {
    let deadline = Instant::now() + time;
    let mut fails =
        |candidate: &Script| if Instant::now() < deadline { fails(candidate) } else { Ok(false) };
    let mut small = simpler_setting(script, &mut fails)?;
    loop {
        let before = small.text().len();
        for split in [fragments, lines, commands, words] {
            small = fewer_pieces(small, split, &mut fails)?;
        }
        if small.text().len() == before {
            return Ok(small);
        }
    }
}

/// Replaces unusual settings with usual ones, one at a time, as long as the script still fails.
fn simpler_setting(
    mut small: Script,
    fails: &mut impl FnMut(&Script) -> Result<bool>,
) -> Result<Script> {
    let changes: [fn(&mut Script); 6] = [
        |script| script.setting.stdin = Stdin::Null,
        |script| script.setting.stdin = Stdin::File,
        |script| script.setting.stdout = Stdout::File,
        |script| "C.UTF-8".clone_into(&mut script.setting.locale),
        |script| script.setting.bash_env = false,
        |script| script.setting.arguments = &[],
    ];
    for change in changes {
        let mut candidate = small.clone();
        change(&mut candidate);
        if candidate != small && fails(&candidate)? {
            small = candidate;
        }
    }
    Ok(small)
}

/// Removes pieces of the source, as `split` divides it, while the script still fails: halves,
/// quarters, and so on down to single pieces (a simple form of delta debugging, Zeller &
/// Hildebrandt 2002).
fn fewer_pieces(
    mut small: Script,
    split: fn(&Script) -> Vec<String>,
    fails: &mut impl FnMut(&Script) -> Result<bool>,
) -> Result<Script> {
    let mut width = split(&small).len().div_ceil(2);
    while width > 0 {
        let mut begin = 0;
        loop {
            let pieces = split(&small);
            if begin >= pieces.len() {
                break;
            }
            let end = (begin + width).min(pieces.len());
            let candidate = with_text(&small, [&pieces[..begin], &pieces[end..]].concat().concat());
            // A source without a command differs by definition.
            let text = candidate.text();
            if !text.trim().is_empty() && text != small.text() && fails(&candidate)? {
                small = candidate;
            } else {
                begin = end;
            }
        }
        width /= 2;
    }
    Ok(small)
}

fn with_text(script: &Script, text: String) -> Script {
    let feature = script.parts.first().map_or("", |part| part.feature);
    Script { parts: vec![Part { feature, text }], ..script.clone() }
}

fn fragments(script: &Script) -> Vec<String> {
    script.parts.iter().map(|part| format!("{}\n", part.text)).collect()
}

fn lines(script: &Script) -> Vec<String> {
    script.text().split_inclusive('\n').map(str::to_owned).collect()
}

fn commands(script: &Script) -> Vec<String> {
    script.text().split_inclusive([';', '|']).map(str::to_owned).collect()
}

fn words(script: &Script) -> Vec<String> {
    script.text().split_inclusive(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(texts: &[&str]) -> Script {
        let mut script = Script::new(1, 1, &["C".to_owned()]);
        script.parts =
            texts.iter().map(|text| Part { feature: "x", text: (*text).to_owned() }).collect();
        script
    }

    #[test]
    fn shrinking_keeps_the_cause_of_the_difference() {
        let long = script(&["cat a | sort", "exec <a; sort nofile | tr a b; echo $?", "wc b"]);
        let fails = |script: &Script| Ok(script.text().contains("tr a b;"));
        let small = shrink(long, Duration::from_mins(1), fails).expect("it cannot fail");
        assert_eq!(small.text().trim(), "tr a b;");
    }

    #[test]
    fn an_irreducible_script_stays_unchanged() {
        let whole = script(&["cat a | sort", "wc b"]);
        let fails = |candidate: &Script| Ok(*candidate == whole);
        let small = shrink(whole.clone(), Duration::from_mins(1), fails).expect("it cannot fail");
        assert_eq!(small, whole);
    }

    #[test]
    fn no_attempt_is_made_after_the_time_limit() {
        let whole = script(&["cat a | sort", "wc b"]);
        let small = shrink(whole.clone(), Duration::ZERO, |_| panic!("it is over"));
        assert_eq!(small.expect("it cannot fail"), whole);
    }
}
