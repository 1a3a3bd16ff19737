//! Files in a script's working directory.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use fastrand::Rng;

use crate::awkward::Kind;

/// A file, folder or link that scripts read.
#[derive(Debug)]
pub struct File {
    /// Path of the file in the script's folder.
    pub name: &'static str,
    /// Content of the file.
    pub content: Content,
    /// Whether the folder of every script has the file.
    pub basic: bool,
}

/// Kind and content of a file.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// A regular file with the given text.
    Text(&'static str),
    /// A regular file with the given bytes.
    Bytes(&'static [u8]),
    /// An executable script.
    Program(&'static str),
    /// A symbolic link to the given path.
    Link(&'static str),
    /// A folder.
    Folder,
    /// A regular file with hundreds of kilobytes of lines.
    Big,
}

const fn basic(name: &'static str, text: &'static str) -> File {
    File { name, content: Content::Text(text), basic: true }
}

const fn further(name: &'static str, content: Content) -> File {
    File { name, content, basic: false }
}

/// Every file with fixed content that a script may read; folders precede their files.
pub const FILES: &[File] = &[
    basic("a", "cab a\nabc\nb 2,1\na 10,x\nzebra crossing\nab ab\nabc\n\nBanana é\n"),
    basic("b", "10 b\n9 a\n-3 c\n1.5 a\n10 b\n007 x\n"),
    basic("c", "a\nab\nabc\nb\nc\n"),
    basic("empty", ""),
    basic("old", "old a\nold b\n"),
    File { name: "dir", content: Content::Folder, basic: true },
    further("dir/x", Content::Text("x2\nx1 a\n")),
    further("dir/y", Content::Text("y\n")),
    further("sp ace", Content::Text("in a name with a space\na\n")),
    further("-dash", Content::Text("dash\nb a\n")),
    further("link", Content::Link("a")),
    further("broken", Content::Link("nowhere")),
    further("loop", Content::Link("loop")),
    further("fake", Content::Folder),
    further("fake/sort", Content::Program("#!/bin/sh\necho fake \"$#\"\ncat\n")),
    further("lib.sh", Content::Text("from_lib=yes\nfilter_a() { grep a | tr a A; }\n")),
    further(
        "pipes.sh",
        Content::Program("#!/bin/bash\nprintf 'c\\nb\\n' | sort | tr a-z A-Z\ncat a | grep -c a\n"),
    ),
    further("env.sh", Content::Text("from_env=yes\nshopt -s extglob\n")),
    further("nonl", Content::Text("b\na\nno newline at the end")),
    further("nul", Content::Bytes(b"b\0a\nc\0\0\na\n\0\n")),
    further("bad", Content::Bytes(b"b\xff\na\xc3\n\xe2\x82 a\n\x80\n")),
    further("crlf", Content::Text("b 1\r\na 2\r\n\r\n")),
    further("blanks", Content::Text("  a  b\t\n\tb \n \n   \na\u{a0}b\n")),
    further("newlines", Content::Text("\n\n\n\n\n")),
    further("meta", Content::Text(".*\n[a\n\\n\n$(x)\n%s a\n'q\"\n-n\n*\n")),
    further("big", Content::Big),
];

/// Name of the file with random content that every script's folder contains, besides the basic
/// [`FILES`].
pub const INPUT: &str = "input";

/// Kinds of content of [`INPUT`], all of them small.
pub const KINDS: [Kind; 12] = [
    Kind::Plain,
    Kind::Plain,
    Kind::Empty,
    Kind::OneLine,
    Kind::NoFinalNewline,
    Kind::CarriageReturns,
    Kind::Nul,
    Kind::InvalidUtf8,
    Kind::Multibyte,
    Kind::Blanks,
    Kind::Metacharacters,
    Kind::AllEqual,
];

/// Returns the file with the path `name`, or `None` if there is none.
pub fn known(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

/// Writes the basic files, the files `wanted` with their folders, and [`INPUT`] with the content
/// `input` to an empty folder.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write(folder: &Path, wanted: &[&str], input: &[u8]) -> io::Result<()> {
    fs::write(folder.join(INPUT), input)?;
    for file in FILES {
        if file.basic || wanted.iter().any(|name| holds(file.name, name)) {
            create(&folder.join(file.name), file.content)?;
        }
    }
    Ok(())
}

/// Returns whether `wanted` is the file `name`, or lies in the folder `name`.
fn holds(name: &str, wanted: &str) -> bool {
    wanted.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn create(path: &Path, content: Content) -> io::Result<()> {
    match content {
        Content::Text(text) => fs::write(path, text),
        Content::Bytes(bytes) => fs::write(path, bytes),
        Content::Program(text) => {
            fs::write(path, text)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        }
        Content::Link(target) => symlink(target, path),
        Content::Folder => fs::create_dir(path),
        Content::Big => fs::write(path, big()),
    }
}

/// Returns the bytes for [`Content::Big`], which are always the same.
fn big() -> Vec<u8> {
    const LINES: u32 = 15_000;
    let mut random = Rng::with_seed(1);
    let line = |number| format!("{number} a{} word,{} b c\n", random.u16(..), random.u8(..9));
    (0..LINES).map(line).collect::<String>().into_bytes()
}
