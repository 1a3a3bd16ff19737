use super::*;
use crate::testing::simple;

mod chunks;
mod fragments;

fn proved(text: &str) -> Result<PerRecord, String> {
    per_record(text, Mode { multibyte: true, ..Mode::default() }).map_err(|why| why.to_string())
}

#[test]
fn scripts_that_stay_on_their_line_are_proved() {
    for text in [
        "",
        "# nothing",
        "#n\np",
        "s/a/b/",
        "s/a/b/2gIp;s/^b/c/mp",
        "s/ /\\n/g;P;p",
        "y/abc/xyz/",
        "/a/d;/b/!d",
        "/a/ID",
        "/a/{s/b/c/;/d/{p;p};b};l;l 5;F;z",
        ":a;s/aa/a/;ta;Tb;b b;:b",
        "a text",
        "/x/i\\\n  two\\\nlines",
        "/x/!c\\text",
        "G",
        "G;g;G;s/\\n$//",
        "/x/s//y/;//d",
        "s/x/y/;s//y/",
        "s/[^/]*$//;s,[/,],x,",
        "{s/a/b/}",
        "\\,a\\,b,p",
        "s|a\\|b|c|",
        "y/\\n\\//,;/",
    ] {
        let known = proved(text);
        assert!(known.is_ok(), "{text}: {known:?}");
    }
}

#[test]
fn every_rejection_names_the_construct() {
    for (text, why) in [
        ("2p", "`2p` counts lines"),
        ("2{p}", "`2{` counts lines"),
        ("3!d", "`3!d` counts lines"),
        ("0~3d", "`0~3d` counts lines"),
        ("1~1p", "`1~1p` counts lines"),
        ("$d", "`$d` asks whether the line is the last"),
        ("p;$!d", "`$!d` asks whether the line is the last"),
        ("/a/,/b/d", "`/a/,/b/d` is a range of lines"),
        ("0,/b/d", "`0,/b/d` is a range of lines"),
        ("1,3p", "`1,3p` is a range of lines"),
        ("/a/,+2d", "`/a/,+2d` is a range of lines"),
        ("/a/,~4d", "`/a/,~4d` is a range of lines"),
        ("/a/,$!d", "`/a/,$!d` is a range of lines"),
        ("/a/,/b/c\\\nx", "`/a/,/b/c\\…` is a range of lines"),
        ("N", "`N` takes the next line"),
        ("s/a/b/\nn;d", "`n` takes the next line"),
        (":a;N;$!ba;s/\\n/ /", "`N` takes the next line"),
        ("/a/{N}", "`N` takes the next line"),
        ("h", "`h` keeps text from line to line"),
        ("H", "`H` keeps text from line to line"),
        ("x", "`x` keeps text from line to line"),
        ("G;h", "`h` keeps text from line to line"),
        ("/x/x;p", "`/x/x` keeps text from line to line"),
        ("=", "`=` prints line numbers"),
        ("/a/=", "`/a/=` prints line numbers"),
        ("q", "`q` ends the script early"),
        ("/x/q5", "`/x/q5` ends the script early"),
        ("5q", "`5q` counts lines"),
        ("/x/Q", "`/x/Q` ends the script early"),
        ("w f", "`w f` writes a file"),
        ("/x/w /dev/stdout", "`/x/w /dev/stdout` writes a file"),
        ("W f", "`W f` writes a file"),
        ("s/a/b/w f", "`s/a/b/w f` writes a file"),
        ("s/a/b/gw /dev/stdout", "`s/a/b/gw /dev/stdout` writes a file"),
        ("e", "`e` starts a command"),
        ("/x/e date", "`/x/e date` starts a command"),
        ("s/a/b/e", "`s/a/b/e` starts a command"),
        ("r f", "`r f` reads a file"),
        ("R f", "`R f` reads a file"),
        ("s/ /\\n/;D", "`D` may start again with the rest of the line"),
        ("s/ /\\x0a/;D", "`D` may start again with the rest of the line"),
        ("y/ /\\n/;D", "`D` may start again with the rest of the line"),
        ("G;D", "`D` may start again with the rest of the line"),
        ("s//b/", "`s//b/` repeats the last expression used, perhaps on another line"),
        ("//d;/x/p", "`//d` repeats the last expression used, perhaps on another line"),
        ("/x/p;/y/p;//d", "`//d` repeats the last expression used, perhaps on another line"),
        ("bb;/x/p;:b;//d", "`//d` repeats the last expression used, perhaps on another line"),
        ("/x/p;//Id", "`//Id` repeats the last expression used, perhaps on another line"),
        ("y/ab/c/", "`y/ab/c/` has strings of different lengths"),
        ("y/ab/\\qc/", "`y/ab/\\qc/` has a character that seds read differently"),
        ("v 4.2", "`v 4.2` asks for a version of sed"),
        (
            "2s/a very long expression that nobody wants to read/x/",
            "`2s/a very long expression that nobody wa…` counts lines",
        ),
    ] {
        assert_eq!(proved(text), Err(why.to_owned()), "{text}");
    }
}

#[test]
fn scripts_that_cannot_be_parsed_are_rejected() {
    for (text, reason) in [
        ("s1a1b1", "a letter or digit is the delimiter (byte 2)"),
        ("s/[/x/", "a delimiter is missing (byte 2)"),
        ("s/a/b", "a delimiter is missing (byte 4)"),
        ("#no", "some versions read `#n` with more after it as `-n` (byte 0)"),
        ("{p", "a `{` is not closed (byte 2)"),
        ("p}", "a `}` has no `{` (byte 2)"),
        ("ba", "a label is not defined (byte 2)"),
        (":a;:a", "a label is defined twice (byte 5)"),
        (":a}", "this is not a valid label (byte 3)"),
        ("a\\", "a text is missing (byte 2)"),
        ("a x\\", "a backslash ends the script (byte 4)"),
        ("k", "no such command (byte 1)"),
        ("/a/", "a command is missing (byte 3)"),
    ] {
        let expected = format!("the script cannot be parsed: {reason}");
        assert_eq!(proved(text), Err(expected), "{text}");
    }
}

#[test]
fn options_and_files_are_read() {
    let contents = |name: &str| (name == "s.sed").then(|| "s/a/b/\n".to_owned());
    let of = |text: &str| of_command(&simple(text), true, contents).map_err(|why| why.to_string());
    for text in [
        "sed p",
        "sed -n -e p -e /x/d f",
        "sed -nEze s/a+/b/",
        "sed -u p f",
        "sed -f s.sed f g",
        "sed --file=s.sed -e p",
        "sed F -",
    ] {
        assert!(of(text).is_ok(), "{text}: {:?}", of(text));
    }
    for (text, why) in [
        ("sed -i p f", "its options are not known"),
        ("sed -s p f", "its options are not known"),
        ("sed --posix p", "its options are not known"),
        ("POSIXLY_CORRECT=1 sed p", "its options are not known"),
        ("sed", "its script is not known"),
        ("sed -f none.sed", "its script is not known"),
        ("sed -f - f", "its script is not known"),
        ("sed F f", "`F` prints the file's name"),
        ("sed -z 'a x'", "`a x` may end its output with a newline instead of NUL"),
        ("sed -z l", "`l` may end its output with a newline instead of NUL"),
        ("sed -z F", "`F` may end its output with a newline instead of NUL"),
        ("sed -z 's/a/\\x00/;D'", "`D` may start again with the rest of the line"),
        ("sed -e p -e 2d", "`2d` counts lines"),
    ] {
        assert_eq!(of(text), Err(why.to_owned()), "{text}");
    }
}

/// Returns a letter for each field of [`PerRecord`] that is `true`: `1` for `one_to_one`, `m` for
/// `at_most_once`, `f` for `writes_at_most_its_line`, `s` for `may_split_characters`, `0` for
/// `may_write_nul`, and `l` for `makes_lines`.
fn letters(text: &str, mode: Mode) -> String {
    let known = per_record(text, mode).expect("proved");
    let traits = [
        ('1', known.one_to_one),
        ('m', known.at_most_once),
        ('f', known.writes_at_most_its_line),
        ('s', known.may_split_characters),
        ('0', known.may_write_nul),
        ('l', known.makes_lines),
    ];
    traits.iter().filter(|(_, holds)| *holds).map(|(letter, _)| letter).collect()
}

#[test]
fn traits_are_what_callers_rely_on() {
    let utf8 = Mode { multibyte: true, ..Mode::default() };
    let quiet = Mode { quiet: true, ..utf8 };
    for (text, mode, expected) in [
        ("s/a/b/", utf8, "1m"),
        ("", utf8, "1mf"),
        ("/x/d", utf8, "mf"),
        ("/x/d;s/a/b/", utf8, "m"),
        ("/x/c text", utf8, "m"),
        ("/x/c\\\none\\\ntwo", utf8, ""),
        ("p", utf8, ""),
        ("/x/p", quiet, "mf"),
        ("#n\n/x/p", utf8, "mf"),
        ("s/a/b/p", quiet, "m"),
        ("/x/p;/y/p", quiet, ""),
        (":a;p;s/a//;ta", quiet, ""),
        ("a x", utf8, ""),
        ("G", utf8, "l"),
        ("s/,/\\n/g", utf8, "l"),
        ("s/,/\\cJ/", utf8, "l"),
        ("s/./\\xff/", utf8, "1ms"),
        ("s/x*/-/g", utf8, "1ms"),
        ("s/x*/-/2", utf8, "1ms"),
        ("s/x*/-/", utf8, "1m"),
        ("s/.//g", utf8, "1m"),
        ("s/.//g", Mode::default(), "1ms"),
        ("y/é/e/", utf8, "1m"),
        ("y/é/ee/", Mode::default(), "1ms"),
        ("s/a/\\x00/", utf8, "1m0"),
        ("s/a/\\c@/;y/b/\\o0/", utf8, "1m0"),
        ("s/a/\\x00/", Mode { null_data: true, ..utf8 }, "0l"),
        ("G", Mode { null_data: true, ..utf8 }, "0l"),
        ("a x\\d200", utf8, "s0"),
        ("a x\\\ny", utf8, ""),
    ] {
        assert_eq!(letters(text, mode), expected, "{text}");
    }
}

#[test]
fn deep_blocks_are_read() {
    let deep = "{".repeat(100_000) + "p" + &"}".repeat(100_000);
    assert!(proved(&deep).is_ok());
    assert!(proved(&"{".repeat(100_000)).is_err());
}
