//! Sources of a case for other tools: commands that run over chunks of the input, the combination
//! of their outputs, and the remaining stages.

use crate::listing::Block;

/// Tools that a case may have a source for, with the key of that source.
pub const FORMS: [(&str, &str); 3] =
    [("parallel", "parallel_form"), ("xargs", "xargs_form"), ("forkrun", "forkrun_form")];
/// Keys whose values are the parts of a case, from which the source for a tool is made if the case
/// has none.
pub const PARTS: [&str; 5] = ["map", "rest", "partial", "merge", "after"];

/// A case divided for tools that run a command over chunks of the input.
struct Parts<'a> {
    file: &'a str,
    from_stdin: bool,
    map: &'a str,
    rest: Option<&'a str>,
    /// For tools that make few large chunks: the stages that run over each chunk, the command that
    /// combines the outputs of the chunks, and the stages after it. `None` if the case does not
    /// have these.
    large: Option<(String, &'a str, Option<&'a str>)>,
}

/// Returns the source for each of [`FORMS`]: the one in the case, or else one made from the case's
/// parts; `None` if neither is possible.
pub fn forms(block: &Block<'_>, file: &str, from_stdin: bool) -> [Option<String>; 3] {
    let parts = block.value("map").map(|map| Parts {
        file,
        from_stdin,
        map,
        rest: block.value("rest"),
        large: block.value("partial").map(|partial| {
            let map = if map == "cat" { partial.to_owned() } else { format!("{map} | {partial}") };
            (map, block.value("merge").unwrap_or("cat"), block.value("after"))
        }),
    });
    let made = |tool: &str| {
        let parts = parts.as_ref()?;
        match tool {
            "parallel" => Some(parallel(parts)),
            "xargs" => xargs(parts),
            _ => forkrun(parts),
        }
    };
    FORMS.map(|(tool, key)| block.lines(key).or_else(|| made(tool)))
}

fn function(body: &str) -> String {
    format!("f() {{ {body}; }}; export -f f\n")
}

fn piped(text: &str, rest: Option<&str>) -> String {
    rest.map_or(text.to_owned(), |rest| format!("{text} | {rest}"))
}

/// Returns the source for GNU parallel, which divides a file into one chunk for each CPU, and
/// standard input into blocks of 10 MB.
fn parallel(parts: &Parts<'_>) -> String {
    let input = if parts.from_stdin {
        "--pipe --block 10M".to_owned()
    } else {
        format!("--pipepart --block -1 -a {}", parts.file)
    };
    match &parts.large {
        Some((map, merge, after)) => {
            let run = format!(
                "{}parallel {input} -k --files --tmpdir \"$SCRATCH\" f | xargs {merge}",
                function(map)
            );
            piped(&run, *after)
        }
        None => piped(&format!("{}parallel {input} -k f", function(parts.map)), parts.rest),
    }
}

/// Returns the source for xargs, or `None` if the case reads standard input. Two processes each get
/// half of the file from `split`, cut at a line end, and their outputs are then combined.
fn xargs(parts: &Parts<'_>) -> Option<String> {
    let (map, merge, after) = match &parts.large {
        Some((map, merge, after)) => (map.as_str(), *merge, *after),
        None => (parts.map, "cat", parts.rest),
    };
    let run = format!(
        "{}seq 2 | xargs -P 2 -I@ bash -c 'split -n l/@/2 {} | f >\"$SCRATCH\"/@'; {merge} \
         \"$SCRATCH\"/1 \"$SCRATCH\"/2",
        function(map),
        parts.file
    );
    (!parts.from_stdin).then(|| piped(&run, after))
}

/// Returns the source for forkrun, or `None` if no stage runs over batches. forkrun makes many
/// small batches and joins their outputs in order. The remaining stages are not parallel.
fn forkrun(parts: &Parts<'_>) -> Option<String> {
    let input = if parts.from_stdin { String::new() } else { format!(" <{}", parts.file) };
    let run = format!(". \"$FRUN\"\n{}frun -k -s f{input}", function(parts.map));
    (parts.map != "cat").then(|| piped(&run, parts.rest))
}
