//! Writes reports and messages to standard output, standard error or files.

mod standard;

pub use standard::Stdout;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read as _, Write};
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use contend_report::render::text::{printable, printable_report};
use contend_sys::inherited;
use rustix::io::Errno;

use crate::cli::ColorArg;
use crate::exit::UsageError;

/// Applies `--color` to everything that this process prints from now on.
pub fn set_color(color: ColorArg) {
    let choice = match color {
        ColorArg::Auto => ColorChoice::Auto,
        ColorArg::Always => ColorChoice::Always,
        ColorArg::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Prints an error to standard error, after `contend: ` and with control characters other than
/// newlines replaced by visible ones. Ignores write errors.
pub fn error(message: &str) {
    // Messages quote user input, which may contain control characters.
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    let _ = writeln!(anstream::stderr().lock(), "contend: {}", lines.join("\n"));
}

/// Prints to standard output, as [`printable_report`] returns it. A reader that closes the pipe early is not an
/// error.
///
/// # Errors
/// Returns an error if standard output cannot be written. If it was closed when contend started, or
/// open only for reading, printing any text but an empty one is an error.
pub fn stdout(text: &str) -> anyhow::Result<()> {
    unchanged_stdout(&printable_report(text))
}

/// Prints to standard output as [`stdout`] does, but all characters of a text for another program.
fn unchanged_stdout(text: &str) -> anyhow::Result<()> {
    let open = if text.is_empty() { Ok(()) } else { standard::check() };
    let written = open.and_then(|()| write_whole(&mut anstream::stdout().lock(), text));
    written.context(STDOUT_FAILED)
}

/// Context of errors that occur when writing to standard output.
pub const STDOUT_FAILED: &str = "cannot write standard output";

/// Prints to standard error, as [`printable_report`] returns it, with colours if [`set_color`] allows them there.
/// A reader that closes the pipe early is not an error.
///
/// # Errors
/// Returns an error if standard error cannot be written.
pub fn stderr(text: &str) -> anyhow::Result<()> {
    write_whole(&mut anstream::stderr().lock(), &printable_report(text))
        .context("cannot write standard error")
}

/// Writes `bytes`, the messages of a command, to contend's standard error. Replaces invalid UTF-8,
/// and removes escape sequences where standard error gets no colours. A reader that closes the pipe
/// early is not an error.
///
/// # Errors
/// Returns an error if standard error cannot be written.
pub fn command_stderr(bytes: &[u8]) -> io::Result<()> {
    write_whole(&mut anstream::stderr().lock(), &String::from_utf8_lossy(bytes))
}

/// Returns the message of an error and those of its causes, separated by colons.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Writes text and control sequences to the terminal on standard error, and ignores errors, such as
/// a closed terminal.
pub fn terminal(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn write_whole(stream: &mut impl Write, text: &str) -> io::Result<()> {
    match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The destination of a report: a file, or standard output. It is opened before the measurement, so
/// that a wrong path does not waste the measurement.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    target: Target,
}

/// Size of the buffer for output that is written as it is made, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Target {
    /// Standard output (`-`).
    Stdout,
    /// A device, a pipe, a file inherited as an open descriptor, as `/dev/stderr` may be, or a file
    /// opened for appending. Reports are written to it directly.
    Direct(File),
    /// A temporary file, which replaces or becomes the regular file at the path once it is
    /// complete.
    Replace(tempfile::NamedTempFile, PathBuf),
}

/// Returns whether the file is an SQLite database.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *MAGIC
}

impl ReportFile {
    /// Prepares to write a report to `path`; `-` is standard output. The content of an existing
    /// file stays unchanged until [`Self::write`] is called.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if the path cannot be written.
    pub fn prepare(path: &Path) -> anyhow::Result<Self> {
        let target = Self::target(path).map_err(|source| {
            // The name of the temporary file means nothing to the user.
            let why = match source.kind() {
                io::ErrorKind::NotFound => "its directory does not exist".to_owned(),
                _ if source.raw_os_error() == Some(Errno::BADF.raw_os_error()) => {
                    "the descriptor is closed".to_owned()
                }
                io::ErrorKind::InvalidInput => source.to_string(),
                kind => kind.to_string(),
            };
            UsageError(format!("cannot write to {}: {why}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), target })
    }

    fn target(path: &Path) -> io::Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        if standard::names_closed_descriptor(path) {
            return Err(Errno::BADF.into());
        }
        match path.metadata() {
            Ok(data) if data.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(data) if !data.is_file() => {
                OpenOptions::new().write(true).open(path).map(Target::Direct)
            }
            Ok(data) => {
                if let Some(file) = open_descriptor_of(&data)? {
                    return Ok(Target::Direct(file));
                }
                // The file must be writable, not only its directory.
                OpenOptions::new().write(true).open(path)?;
                if is_database(path) {
                    let why = "it is a database, such as the history";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                Self::beside(path)
            }
            Err(_) => Self::beside(path),
        }
    }

    fn beside(path: &Path) -> io::Result<Target> {
        let path = follow_links(path);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".contend-").permissions(permissions_for(&path));
        builder.tempfile_in(folder).map(|file| Target::Replace(file, path))
    }

    /// Opens an existing file for appending.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn append_to(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().append(true).open(path);
        let file = file.with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(Self { path: path.to_owned(), target: Target::Direct(file) })
    }

    /// Returns whether the report goes to standard output under the name `-`. Returns `false` for
    /// other names of standard output, such as `/dev/stdout`.
    pub fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// Returns whether the report goes to the same file, pipe or terminal as standard output, by
    /// any name.
    pub fn shares_standard_output(&self) -> bool {
        let stdout = rustix::fs::fstat(io::stdout()).ok().and_then(stream);
        self.is_stdout() || stdout.is_some() && self.stream() == stdout
    }

    /// Returns whether both reports go to standard output, or to the same file, pipe or terminal,
    /// so that one would overwrite or interrupt the other. Returns `false` for two hard links to
    /// the same file, because each link is replaced by a new file.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Target::Stdout, Target::Stdout) => true,
            (Target::Replace(_, one), Target::Replace(_, other)) => {
                absolute(one) == absolute(other)
            }
            _ => self.stream().is_some() && self.stream() == other.stream(),
        }
    }

    /// Returns the device and inode of a target that is written directly; `None` for other targets,
    /// for devices such as `/dev/null`, and if the target cannot be examined.
    fn stream(&self) -> Option<(u64, u64)> {
        let stat = match &self.target {
            Target::Stdout => rustix::fs::fstat(io::stdout()),
            Target::Direct(file) => rustix::fs::fstat(file),
            Target::Replace(..) => return None,
        };
        stat.ok().and_then(stream)
    }

    /// Writes the report. A regular file is replaced in one step, unless it was inherited as an
    /// open descriptor or opened by [`Self::append_to`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, for example because the disk is full.
    pub fn write(self, text: &str) -> anyhow::Result<()> {
        match self.target {
            Target::Stdout => unchanged_stdout(text),
            _ => self.write_with(|out| out.write_all(text.as_bytes())),
        }
    }

    /// Writes what `fill` writes, as [`Self::write`] does. The output need not fit into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or `fill` fails.
    pub fn write_with(
        self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.path;
        let context = || format!("cannot write to {}", path.display());
        let buffered = |file: &mut dyn Write| {
            let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
            fill(&mut buffer)?;
            buffer.flush()
        };
        match self.target {
            Target::Stdout => buffered(&mut io::stdout().lock()).with_context(context),
            Target::Direct(mut file) => buffered(&mut file).with_context(context),
            Target::Replace(mut file, to) => {
                buffered(&mut file).with_context(context)?;
                file.persist(to).map_err(|error| error.error).with_context(context)?;
                Ok(())
            }
        }
    }
}

/// Returns the device and inode of a stream, or `None` for character devices other than
/// pseudoterminals: two reports can go to most of them, such as `/dev/null`, without loss.
fn stream(stat: rustix::fs::Stat) -> Option<(u64, u64)> {
    use rustix::fs::FileType;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let pty_majors = 136..=143; // major device numbers of /dev/pts
    let terminal = pty_majors.contains(&rustix::fs::major(stat.st_rdev));
    (kind != FileType::CharacterDevice || terminal).then_some((stat.st_dev, stat.st_ino))
}

/// Returns a duplicate of an inherited descriptor that is open for writing and refers to the file
/// with the given metadata, or `None` if there is no such descriptor. The duplicate shares the
/// offset of other writers, so that the report follows their output.
fn open_descriptor_of(data: &std::fs::Metadata) -> io::Result<Option<File>> {
    use std::os::unix::fs::MetadataExt;
    for fd in inherited::RECORDED_DESCRIPTORS.filter(|&fd| inherited::was_open(fd)) {
        let path = format!("/proc/self/fd/{fd}");
        let Ok(given) = std::fs::metadata(path) else { continue };
        if (given.dev(), given.ino()) == (data.dev(), data.ino())
            && let Some(file) = inherited::writable_copy(fd)?
        {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Follows up to 40 symbolic links to their final target, which need not exist.
fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

fn absolute(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// Returns the permissions of the existing file, or those that the umask gives to a new file.
fn permissions_for(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().map_or_else(
        |_| {
            let mask = rustix::process::umask(rustix::fs::Mode::empty());
            rustix::process::umask(mask);
            PermissionsExt::from_mode(0o666 & !mask.bits())
        },
        |data| data.permissions(),
    )
}

/// Returns the text without escape sequences, such as those of colours.
pub fn plain(text: &str) -> String {
    let mut stream = AutoStream::new(Vec::new(), ColorChoice::Never);
    let _ = stream.write_all(text.as_bytes()); // writing to a vector cannot fail
    String::from_utf8_lossy(&stream.into_inner()).into_owned()
}

/// Returns the width of the terminal on standard error in columns, or else `COLUMNS`, or else 100.
/// Ignores a value of `COLUMNS` that is too small for any report.
pub fn width() -> usize {
    width_of(&io::stderr())
}

/// Returns the width of the terminal on standard output, as [`width`] does for standard error.
pub fn stdout_width() -> usize {
    width_of(&io::stdout())
}

fn width_of<T: IsTerminal + std::os::fd::AsFd>(stream: &T) -> usize {
    let terminal = stream
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(stream).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0);
    let variable = || usable_columns(&std::env::var("COLUMNS").ok()?);
    terminal.or_else(variable).unwrap_or(100)
}

/// Parses the value of `COLUMNS`. Returns `None` if it is not a number, or too small.
fn usable_columns(text: &str) -> Option<usize> {
    const MIN_COLUMNS: usize = 20;
    text.trim().parse().ok().filter(|&columns| columns >= MIN_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_no_old_content() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        std::fs::write(&path, "old, and longer than the new").expect("room");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("own file");
        ReportFile::prepare(&path).expect("writable").write("new").expect("room");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "new");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(folder.path().read_dir().expect("folder").count(), 1);
    }

    #[test]
    fn links_are_followed_even_to_files_that_do_not_exist() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("target", &link).expect("room");
        for text in ["first", "second"] {
            ReportFile::prepare(&link).expect("writable").write(text).expect("room");
            assert!(link.is_symlink());
            let target = std::fs::read_to_string(folder.path().join("target"));
            assert_eq!(target.expect("there"), text);
        }
        let [one, other] =
            ["link", "target"].map(|name| ReportFile::prepare(&folder.path().join(name)));
        assert!(one.expect("writable").is_same_as(&other.expect("writable")));
    }

    #[test]
    fn an_unwritten_report_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(ReportFile::prepare(&folder.path().join("x")).expect("writable"));
        assert_eq!(folder.path().read_dir().expect("folder").count(), 0);
        assert!(ReportFile::prepare(folder.path()).is_err());
        assert!(ReportFile::prepare(Path::new("/no/such/folder/x")).is_err());
    }

    #[test]
    fn an_unusable_width_is_ignored() {
        for text in ["", "0", "1", "19", "-80", "wide"] {
            assert_eq!(usable_columns(text), None, "{text}");
        }
        assert_eq!(usable_columns("20"), Some(20));
        assert_eq!(usable_columns(" 132\n"), Some(132));
    }

    #[test]
    fn colours_are_removed() {
        assert_eq!(plain("\u{1b}[1mbold\u{1b}[0m"), "bold");
    }
}
