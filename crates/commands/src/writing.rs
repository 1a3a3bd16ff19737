//! Recognizes commands whose options, operands or script make them write files or start programs.

use super::Simple;
use super::sed::script::{Delimiters, Script};

/// Returns whether the arguments of a known command make it write files or start programs. Returns
/// `true` in doubt, and `false` for unknown commands.
pub fn writes_by_itself(simple: &Simple) -> bool {
    let arguments = || simple.arguments.iter().map(|word| word.text.as_str());
    let cluster_has = |letter: char| {
        arguments().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letter))
    };
    let begins = |options: &[&str]| arguments().any(|a| options.iter().any(|o| a.starts_with(o)));
    match simple.name() {
        "sed" | "gsed" => sed_reaches_out(simple),
        "sort" => cluster_has('o') || begins(&["--o", "--co"]),
        "shuf" | "iconv" | "xmllint" | "pandoc" | "dot" => cluster_has('o') || begins(&["--o"]),
        "uniq" | "xxd" => super::uniq::read(simple).is_none() && has_two_operands(simple),
        "awk" | "mawk" | "gawk" | "nawk" | "original-awk" => awk_reaches_out(simple),
        "find" => begins(&["-delete", "-fls", "-exec", "-ok", "-fprint"]),
        "fd" | "fdfind" => cluster_has('x') || cluster_has('X') || begins(&["--exec"]),
        "perl" | "ruby" | "yq" => cluster_has('i') || begins(&["--in"]),
        "mlr" => begins(&["-I", "tee", "split"]),
        "date" => cluster_has('s') || begins(&["--s"]),
        "history" => cluster_has('w') || cluster_has('a'),
        "openssl" => begins(&["-out", "-writerand"]),
        // These programs edit their operands in place.
        "dos2unix" | "unix2dos" | "sd" => arguments().any(|a| !a.starts_with('-')),
        "gzip" | "gunzip" | "pigz" | "unpigz" | "xz" | "unxz" | "lzma" | "unlzma" | "pixz"
        | "bzip2" | "bunzip2" | "pbzip2" | "lbzip2" | "zstd" | "unzstd" | "zstdmt" | "pzstd"
        | "lz4" | "unlz4" | "lzop" | "lzip" | "plzip" | "compress" | "uncompress" | "brotli" => {
            let to_output = cluster_has('c') || begins(&["--stdout", "--to-stdout"]);
            let named = arguments().any(|a| a == "-o") || begins(&["--output"]);
            named || !to_output && arguments().any(|a| !a.starts_with('-'))
        }
        // An applet, as in `busybox awk`.
        "busybox" => simple.arguments.split_first().is_some_and(|(applet, rest)| {
            writes_by_itself(&Simple {
                program: applet.clone(),
                arguments: rest.to_vec(),
                ..simple.clone()
            })
        }),
        _ => false,
    }
}

/// Returns whether a `uniq` or `xxd` has at least two operands. The second names its output file.
fn has_two_operands(simple: &Simple) -> bool {
    let takes_value: &[&str] = match simple.name() {
        "uniq" => &["-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"],
        _ => &["-c", "-g", "-l", "-n", "-o", "-s"],
    };
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let mut operands = 0;
    while let Some(text) = arguments.next() {
        if takes_value.contains(&text) {
            arguments.next();
        } else if text == "-" || !text.starts_with('-') {
            operands += 1;
        }
    }
    operands > 1
}

/// Maximum size of a script file that contend reads, in bytes.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// Returns the contents of a script file. Returns an empty vector for a missing file, without which
/// the command fails and so writes nothing. Returns `None` for a script that the command may read
/// but contend does not: standard input, a device, a file larger than [`MAX_SCRIPT_BYTES`], or one
/// that cannot be read or is not UTF-8.
fn script_file(name: &str) -> Option<Vec<String>> {
    if name == "-" {
        return None;
    }
    match std::fs::metadata(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        Ok(data) if data.is_file() && data.len() <= MAX_SCRIPT_BYTES => {
            std::fs::read_to_string(name).ok().map(|text| vec![text])
        }
        _ => None,
    }
}

/// Returns whether an awk may write files or start other programs. Returns `true` for an unknown
/// option, which may load an extension, and for a program that contend cannot read or parse.
/// Reading the output of a command counts as starting a program, unless the whole awk program is in
/// files.
fn awk_reaches_out(simple: &Simple) -> bool {
    awk_programs(simple).is_none_or(|programs| {
        let [given, in_files] = programs.map(|texts| texts.join("\n"));
        // U+FFFD marks an expansion that the shell has yet to perform. It counts as a name.
        let text = format!("{given}\n{in_files}").replace('\u{fffd}', "u");
        super::awk::reach::writes_or_starts(&text, given.is_empty())
    })
}

/// Returns the program sources in an awk's arguments, and those in its program files. Returns
/// `None` for an unknown option or a file for which [`script_file`] returns `None`.
fn awk_programs(simple: &Simple) -> Option<[Vec<String>; 2]> {
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let (mut programs, mut in_files, mut is_given) = (Vec::new(), Vec::new(), false);
    let text_of = |text: &str| text.to_owned();
    let attached = ["-F", "-v", "-f", "--field-separator=", "--assign=", "--file="];
    let alone = [
        "--posix",
        "--traditional",
        "--re-interval",
        "--sandbox",
        "--csv",
        "-n",
        "-b",
        "-Winteractive",
    ];
    while let Some(text) = arguments.next() {
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => {
                arguments.next();
            }
            "-f" | "--file" => {
                in_files.extend(arguments.next().map_or(Some(Vec::new()), script_file)?);
                is_given = true;
            }
            "-e" | "--source" => {
                programs.extend(arguments.next().map(text_of));
                is_given = true;
            }
            "-W" => {
                arguments.next().filter(|value| *value == "interactive")?;
            }
            "--" => {
                programs.extend(arguments.next().filter(|_| !is_given).map(text_of));
                break;
            }
            _ if !text.starts_with('-') || text == "-" => {
                programs.extend(Some(text).filter(|_| !is_given).map(text_of));
                break;
            }
            _ if alone.contains(&text) => {}
            _ if attached.iter().any(|known| text.starts_with(known)) => {
                let file = text.strip_prefix("--file=").or_else(|| text.strip_prefix("-f"));
                is_given |= file.is_some();
                in_files.extend(file.map_or(Some(Vec::new()), script_file)?);
            }
            _ => return None,
        }
    }
    Some([programs, in_files])
}

/// Returns whether a `sed` may have effects beyond its output. It may in each of these cases:
/// - it edits in place, or has an unknown one-letter option;
/// - contend cannot read or parse its script;
/// - the script writes to files, except to standard output or standard error, or executes commands.
fn sed_reaches_out(simple: &Simple) -> bool {
    sed_script(simple).is_none_or(|script| script_reaches_out(&script))
}

/// Returns the script of a `sed`, empty if none is given. Returns `None` if the command edits in
/// place, has an unknown one-letter option, or names a file for which [`script_file`] returns
/// `None`.
fn sed_script(simple: &Simple) -> Option<String> {
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let (mut scripts, mut operands, mut is_given) = (Vec::new(), Vec::new(), false);
    while let Some(text) = arguments.next() {
        if text == "--" {
            operands.extend(arguments.by_ref());
        } else if text == "-" || !text.starts_with('-') {
            operands.push(text);
        } else if let Some((letter, attached)) = sed_option(text)? {
            let value = attached.or_else(|| arguments.next());
            is_given |= letter != 'l';
            match (letter, value) {
                ('e', Some(script)) => scripts.push(script.to_owned()),
                ('f', Some(file)) => scripts.extend(script_file(file)?),
                _ => {}
            }
        }
    }
    if !is_given {
        scripts.extend(operands.first().map(|script| (*script).to_owned()));
    }
    Some(scripts.join("\n"))
}

/// Parses an option of `sed`. Returns:
/// - for an option that takes a value: its letter, and the value if it is attached;
/// - for any other long option, and for known letters without a value: `Some(None)`;
/// - for editing in place, and for unknown letters: `None`.
#[expect(clippy::option_option, reason = "known or not, with a value or without")]
fn sed_option(text: &str) -> Option<Option<(char, Option<&str>)>> {
    let Some(long) = text.strip_prefix("--") else {
        let letters = text[1..].trim_start_matches(['n', 'r', 'E', 'u', 'z', 'b', 's']);
        let Some(letter) = letters.chars().next() else { return Some(None) };
        let value = letters.get(1..).filter(|value| !value.is_empty());
        return "efl".contains(letter).then_some(Some((letter, value)));
    };
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    // Long names may be abbreviated.
    let takes = [("in-place", 'i'), ("expression", 'e'), ("file", 'f'), ("line-length", 'l')];
    match takes.iter().find(|(long, _)| long.starts_with(name)) {
        Some((_, 'i')) => None,
        Some((_, letter)) => Some(Some((*letter, value))),
        None => Some(None),
    }
}

/// Placeholder in a script for an expansion by the shell at run time.
const PLACEHOLDER: char = '\u{fffd}';

/// Returns whether a `sed` script writes to a file, executes commands, or cannot be parsed as GNU
/// `sed` parses it. Some old implementations end a regular expression at a delimiter within a
/// bracket expression. So a script also counts if it would write or execute there.
fn script_reaches_out(script: &str) -> bool {
    // An expansion may yield a number or part of a string, but not a command.
    let known = script.replace(PLACEHOLDER, "1");
    let read = |delimiters| Script::read(&known, delimiters).map(|script| script.reaches_out());
    read(Delimiters::Shielded) != Ok(false) || read(Delimiters::Everywhere) == Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word;
    use crate::testing::simple;

    #[test]
    fn programs_in_files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("room");
        };
        file("p.awk", "{ print $1 }\n");
        file("w.awk", "{ print > \"out\" }\n");
        file("r.awk", "{ while ((command | getline) > 0) print > \"/dev/stderr\"; print }\n");
        file("large.awk", &"#".repeat(1 << 21));
        std::fs::write(folder.path().join("binary.awk"), b"\xff").expect("room");
        file("p.sed", "s/a/b/\n");
        file("w.sed", "s/a/b/w out\n");
        let writes = |text: &str| {
            writes_by_itself(&simple(&text.replace('@', &folder.path().display().to_string())))
        };
        for text in [
            "awk -f @/p.awk f",
            "mawk -f @/r.awk",
            "awk -f@/p.awk f",
            "sed -f @/p.sed f",
            "sed -f none",
        ] {
            assert!(!writes(text), "{text}");
        }
        for text in [
            "awk -f - f",
            "awk -f @ f",
            "awk -f @/large.awk f",
            "gawk --file=@/binary.awk f",
            "sed -f /dev/stdin f",
            "sed -f @/large.awk f",
            "awk -f @/w.awk f",
            "gawk --file=@/w.awk f",
            "sed -f @/w.sed f",
            "sed --fi=@/w.sed f",
            "sed -n -f@/w.sed f",
        ] {
            assert!(writes(text), "{text}");
        }
    }
    #[test]
    fn a_sed_script_that_is_not_understood_counts_as_writing() {
        let writes = |script: &str| {
            let arguments = vec![Word::new("-e"), Word::new(script), Word::new("f")];
            writes_by_itself(&Simple { arguments, ..simple("sed") })
        };
        for script in [
            "p",
            "\u{fffd}p",
            "1,\u{fffd}d",
            "s/\u{fffd}/\u{fffd}/\u{fffd}",
            "r \u{fffd}",
            "w /dev/stderr",
        ] {
            assert!(!writes(script), "{script}");
        }
        for script in
            ["\u{fffd}", "/x/\u{fffd}", "w \u{fffd}", "s/a/b/w\u{fffd}", "k", "{p", "bx", "a"]
        {
            assert!(writes(script), "{script}");
        }
    }
}
