//! Reads the configuration file of `contend run`, which names commands that process each record
//! independently, and has settings for engines.

use std::io;
use std::path::{Path, PathBuf};

use contend_parallel::cluster::{Capacity, EngineKind};
use contend_parallel::plan::planner::Annotation;
use contend_record::run::Records;
use rustix::io::Errno;
use serde::Deserialize;
use toml::Spanned;

use super::super::user_directory;
use crate::cli::run::EngineArg;
use crate::exit::UsageError;

/// Contents of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default)]
    map: Vec<Entry>,
    #[serde(default)]
    spark: Engine,
    #[serde(default)]
    slurm: Engine,
}

/// Settings for an engine, which options on the command line override.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Engine {
    master: Option<Spanned<String>>,
    work: Option<PathBuf>,
    options: Vec<String>,
    slots: Option<u64>,
    start_seconds: Option<f64>,
    part_seconds: Option<f64>,
    bytes_per_second: Option<f64>,
}

impl Engine {
    /// Returns what is known of the cluster; `None` unless the number of its slots is.
    fn capacity(&self) -> Option<Capacity> {
        let Self { slots, start_seconds, part_seconds, bytes_per_second, .. } = *self;
        Some(Capacity { slots: slots?, start_seconds, part_seconds, bytes_per_second })
    }
}

/// A command that processes each record independently.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: Spanned<String>,
    #[serde(default = "lines")]
    records: Records,
}

fn lines() -> Records {
    Records::Lines
}

/// Returns the commands named in the user's configuration file; empty if the user has no readable
/// file.
///
/// # Errors
/// Returns an error if the file is not a valid configuration, or cannot be read for a reason other
/// than those in `is_absent`.
pub(super) fn annotations() -> Result<Vec<Annotation>, UsageError> {
    Ok(contents()?.map(|(_, annotations)| annotations).unwrap_or_default())
}

/// An engine with the user's settings.
#[derive(Debug, PartialEq)]
pub(super) struct Configured {
    /// The engine.
    pub kind: EngineKind,
    /// The directory for work directories.
    pub work: Option<PathBuf>,
    /// What is known of the cluster; `None` unless the file chooses the engine.
    pub capacity: Option<Capacity>,
}

/// Returns an engine with the user's settings. `master` and `options` are those of the command line, which take precedence.
///
/// # Errors
/// Returns an error as for [`annotations`], or if the file does not choose the engine for `EngineArg::Auto`.
pub(super) fn engine(
    engine: EngineArg,
    master: Option<String>,
    options: Vec<String>,
) -> Result<Configured, UsageError> {
    let (configuration, _) = contents()?.unwrap_or_default();
    configured(engine, configuration, master, options)
}

fn configured(
    engine: EngineArg,
    configuration: Configuration,
    master: Option<String>,
    options: Vec<String>,
) -> Result<Configured, UsageError> {
    let Configuration { spark, slurm, .. } = configuration;
    let (is_spark, settings) = match engine {
        EngineArg::Local => {
            return Ok(Configured { kind: EngineKind::Local, work: None, capacity: None });
        }
        EngineArg::Spark => (true, Engine { slots: None, ..spark }),
        EngineArg::Slurm => (false, Engine { slots: None, ..slurm }),
        EngineArg::Auto => {
            let known = [(true, spark), (false, slurm)].into_iter();
            let known = known.filter(|(_, settings)| settings.slots.is_some());
            known.max_by_key(|(_, settings)| settings.slots).ok_or_else(|| {
                let why = "--on auto needs `slots` in [spark] or [slurm] of contend/run.toml: the number of \
                           parts that the cluster runs at the same time";
                UsageError(why.to_owned())
            })?
        }
    };
    let capacity = settings.capacity();
    let Engine { master: of_file, work, options: of_all, .. } = settings;
    // Of options that contradict each other, the last one counts.
    let options = of_all.into_iter().chain(options).collect();
    let kind = if is_spark {
        EngineKind::Spark { master: master.or(of_file.map(Spanned::into_inner)), options }
    } else {
        EngineKind::Slurm { options }
    };
    Ok(Configured { kind, work, capacity })
}

/// Returns what the user's file has, with the commands that it names; `None` if there is no readable file.
fn contents() -> Result<Option<(Configuration, Vec<Annotation>)>, UsageError> {
    let Some(path) = path() else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => read(&text, &path).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(UsageError(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Returns the path of the user's file, which need not exist.
pub(super) fn path() -> Option<PathBuf> {
    user_directory("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("contend/run.toml"))
}

/// Returns whether the error means that the user has no readable file. An error because no
/// descriptor is free counts, too: nothing can then run in parallel, so the contents do not matter.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let is_limited = [Errno::MFILE, Errno::NFILE]
        .into_iter()
        .any(|limit| error.raw_os_error() == Some(limit.raw_os_error()));
    is_limited || matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn read(text: &str, path: &Path) -> Result<(Configuration, Vec<Annotation>), UsageError> {
    let wrong = |place: usize, what: &str| {
        let line = 1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count();
        // The message may have several lines.
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        UsageError(format!("{}, line {line}: {what}", path.display()))
    };
    let mut configuration: Configuration = toml::from_str(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message()))?;
    if let Some(master) = &configuration.slurm.master {
        let what = "unknown field `master`: Slurm's own configuration names the cluster";
        return Err(wrong(master.span().start, what));
    }
    let annotation = |entry: Entry| {
        let command = entry.command.get_ref();
        Annotation::read(command, entry.records).ok_or_else(|| {
            let what = format!("'{command}': expected a command without shell syntax");
            wrong(entry.command.span().start, &what)
        })
    };
    let commands = std::mem::take(&mut configuration.map);
    let annotations = commands.into_iter().map(annotation).collect::<Result<_, _>>()?;
    Ok((configuration, annotations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Annotation>, String> {
        let read = super::read(text, Path::new("run.toml"));
        read.map(|(_, annotations)| annotations).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_read_with_their_records() {
        let text = "[[map]]\ncommand = \"./own -x\"\n\n\
                    [[map]]\ncommand = 'two'\nrecords = \"csv\" # quoted\n";
        let own = Annotation { words: vec!["./own".into(), "-x".into()], records: Records::Lines };
        let two = Annotation { words: vec!["two".into()], records: Records::Csv };
        assert_eq!(read(text), Ok(vec![own, two]));
        assert_eq!(read("# nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn engines_have_settings() {
        let text = "[spark]\nmaster = \"spark://head:7077\"\nwork = \"/shared\"\n\n\
                    [slurm]\noptions = [\"--partition=long\"]\n";
        let found = |text: &str, engine, master: Option<&str>, options: &[&str]| {
            let (configuration, _) = super::read(text, Path::new("run.toml")).expect("it is valid");
            let options = options.iter().map(|&option| option.to_owned()).collect();
            let found = configured(engine, configuration, master.map(str::to_owned), options);
            found.map_err(|error| error.to_string())
        };
        let spark = |master: &str| EngineKind::Spark {
            master: Some(master.to_owned()),
            options: Vec::new(),
        };
        let work = Some("/shared".into());
        let expected =
            Configured { kind: spark("spark://head:7077"), work: work.clone(), capacity: None };
        assert_eq!(found(text, EngineArg::Spark, None, &[]), Ok(expected));
        let expected = Configured { kind: spark("other"), work, capacity: None };
        assert_eq!(found(text, EngineArg::Spark, Some("other"), &[]), Ok(expected));
        let options = vec!["--partition=long".to_owned(), "-n2".to_owned()];
        let kind = EngineKind::Slurm { options };
        let expected = Configured { kind, work: None, capacity: None };
        assert_eq!(found(text, EngineArg::Slurm, None, &["-n2"]), Ok(expected));
        let error = found(text, EngineArg::Auto, None, &[]).expect_err("there is no number");
        assert!(error.contains("`slots`"), "{error}");
        let text = "[slurm]\nslots = 200\nstart_seconds = 2.5\nbytes_per_second = 1e9\n[spark]\nslots = 100\n";
        let chosen = found(text, EngineArg::Auto, None, &[]).expect("an engine");
        assert_eq!(chosen.kind.name(), "slurm");
        let (start_seconds, part_seconds, bytes_per_second) = (Some(2.5), None, Some(1e9));
        let known = Capacity { slots: 200, start_seconds, part_seconds, bytes_per_second };
        assert_eq!(chosen.capacity, Some(known));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (text, line, part) in [
            ("[[map]]\ncommand = ./own\n", 2, ""),
            ("\n[[map]]\nrecords = \"lines\"\n", 2, "command"),
            ("[[map]]\ncommand = \"a\"\nrecords = \"words\"\n", 3, "words"),
            ("[[map]]\ncommand = \"a\"\nrecord = \"nul\"\n", 3, "record"),
            (
                "[[map]]\ncommand = \"a | b\"\n",
                2,
                "'a | b': expected a command without shell syntax",
            ),
            ("[[maps]]\n", 1, "maps"),
            ("[slurm]\nmaster = \"x\"\n", 2, "master"),
        ] {
            let error = read(text).expect_err("something is wrong");
            assert!(error.starts_with(&format!("run.toml, line {line}: ")), "{text}: {error}");
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
