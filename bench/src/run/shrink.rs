//! Shrinks a failing pair: removes stages, lines and bytes while it still fails (a simple form of
//! delta debugging, Zeller & Hildebrandt 2002).

use anyhow::Result;

use crate::awkward::Pair;
use crate::pipelines::stages;

/// Maximum number of attempts, each of which runs a pipeline at least twice.
const MAX_ATTEMPTS: usize = 400;
/// Maximum size of an input, in bytes, from which single bytes are removed.
const MAX_BYTES_TO_SPLIT: usize = 2000;

/// Shrinks `pair`, and returns the smallest pair found that still fails.
///
/// # Errors
/// Returns the error of `fails`.
pub fn shrink(pair: Pair, mut fails: impl FnMut(&Pair) -> Result<bool>) -> Result<Pair> {
    let mut left = MAX_ATTEMPTS;
    let mut small = pair;
    let mut try_one = |candidate: &Pair| {
        if left == 0 {
            return Ok(false);
        }
        left -= 1;
        fails(candidate)
    };
    loop {
        let before = (small.pipeline.len(), small.input.len());
        small = fewer_stages(small, &mut try_one)?;
        small = fewer_pieces(small, lines, &mut try_one)?;
        if small.input.len() <= MAX_BYTES_TO_SPLIT {
            small = fewer_pieces(small, bytes, &mut try_one)?;
        }
        if before == (small.pipeline.len(), small.input.len()) {
            return Ok(small);
        }
    }
}

/// Removes single stages, beginning with the first, while the pair still fails.
fn fewer_stages(mut small: Pair, fails: &mut impl FnMut(&Pair) -> Result<bool>) -> Result<Pair> {
    let mut place = 0;
    loop {
        let all = stages(&small.pipeline);
        if all.len() < 2 || place >= all.len() {
            return Ok(small);
        }
        let mut rest = all.clone();
        rest.remove(place);
        // Without its first stage, the pipeline does not name the input: it reads standard input.
        let from_stdin = small.from_stdin || place == 0;
        let candidate = Pair { pipeline: rest.join(" | "), from_stdin, ..small.clone() };
        if fails(&candidate)? {
            small = candidate;
        } else {
            place += 1;
        }
    }
}

/// Removes pieces of the input, as `split` divides it, while the pair still fails: halves,
/// quarters, and so on down to single pieces.
fn fewer_pieces(
    mut small: Pair,
    split: fn(&[u8]) -> Vec<&[u8]>,
    fails: &mut impl FnMut(&Pair) -> Result<bool>,
) -> Result<Pair> {
    let mut width = split(&small.input).len().div_ceil(2);
    while width > 0 {
        let mut begin = 0;
        loop {
            let pieces = split(&small.input);
            if begin >= pieces.len() {
                break;
            }
            let end = (begin + width).min(pieces.len());
            let input = [&pieces[..begin], &pieces[end..]].concat().concat();
            let candidate = Pair { input, ..small.clone() };
            if fails(&candidate)? {
                small = candidate;
            } else {
                begin = end;
            }
        }
        width /= 2;
    }
    Ok(small)
}

fn lines(input: &[u8]) -> Vec<&[u8]> {
    input.split_inclusive(|&byte| byte == b'\n').collect()
}

fn bytes(input: &[u8]) -> Vec<&[u8]> {
    input.chunks(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::awkward::Kind;

    fn pair(pipeline: &str, input: &[u8]) -> Pair {
        Pair {
            pipeline: pipeline.to_owned(),
            from_stdin: false,
            locale: "C",
            shape: None,
            kind: Kind::Plain,
            input: input.to_vec(),
        }
    }

    #[test]
    fn shrinking_keeps_the_cause_of_the_failure() {
        let lines: Vec<u8> =
            (0..5000).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
        let fails = |pair: &Pair| {
            let text = String::from_utf8_lossy(&pair.input).into_owned();
            Ok(pair.pipeline.contains("sed -n 2p") && text.contains("4321"))
        };
        let small = shrink(pair("cat input | rev | sed -n 2p | sort | wc", &lines), fails)
            .expect("it cannot fail");
        assert_eq!(small.pipeline, "sed -n 2p");
        assert!(small.from_stdin);
        assert_eq!(small.input, b"4321");
    }

    #[test]
    fn an_irreducible_pair_stays_unchanged() {
        let whole = pair("cat input | tac", b"a\nb\n");
        let fails = |candidate: &Pair| Ok(*candidate == whole);
        assert_eq!(shrink(whole.clone(), fails).expect("it cannot fail"), whole);
    }
}
