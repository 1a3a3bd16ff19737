//! Checks the names and arguments of commands for side effects.

use contend_commands::purity::is_pure;
use contend_commands::writing::writes_by_itself;
use contend_commands::{Simple, Word};

use super::Change;
use super::grammar::program;
use super::words::{UNKNOWN, subscript};

/// Names of programs with side effects, and of programs that start other programs, separated by
/// spaces.
const SIDE_EFFECT_PROGRAMS: &str = "\
    . 7z 7za ansible ansible-playbook apk apt apt-get ar as ash at aws az bash batch bind brew \
    bun bundle bwrap cargo cc cfdisk chattr chfn chgrp chmod chown chpasswd chroot chsh clang \
    clang++ cmake compgen complete convert cp cpio crontab csh csplit curl dash dd ddrescue \
    debconf dnf doas docker dpkg duckdb ed emacs enable entr ex expect fallocate fc fdisk ffmpeg \
    fish flatpak flock fsck ftp fusermount g++ gcc gcloud gdb gem gh git gpasswd gpg gpg2 \
    groupadd groupdel groupmod gsutil halt helm hg init initctl insmod install ip6tables \
    iptables javac joe kill killall kpartx ksh kubectl ld ldconfig link ln logger logrotate \
    losetup lp lpr ltrace magick mail mailx make mariadb mkdir mkfifo mkfs mknod mksh mkswap \
    mktemp modprobe mogrify mongo mongosh mount mutt mv mysql mysqladmin nano nc ncat netcat \
    newgrp nft ninja npm npx nsenter numactl nvim objcopy pacman parallel parted passwd patch \
    pbcopy perf pico pip pip3 pkexec pkill plink pnpm podman poweroff prename psql rar rbash \
    rclone reboot redis-cli rename renice rm rmdir rmmod rpm rsync runuser rustc rustup sash scp \
    screen script sendmail service setcap setfacl setfattr sftp sh shred shutdown skill snap \
    socat source split sponge sqlite sqlite3 ssh ssh-add ssh-copy-id ssh-keygen \
    start-stop-daemon strace strip stty su sudo svn swapoff swapon sysctl systemctl systemd-run \
    tar tcsh tee telinit telnet terraform tftp timedatectl tmux touch truncate tune2fs ufw \
    umount unlink unrar unshare unzip update-alternatives useradd userdel usermod valgrind vi \
    view vim vimdiff vipw visudo wall watch wget wipefs wl-copy write xargs xclip xsel yarn yash \
    yum zip zsh zypper";

/// Builtins whose arguments may be names of variables. They execute substitutions in subscripts,
/// even between single quotes.
const READ_NAMES: &[&str] = &[
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// A command that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// The wrapper's own options without a value.
    alone: &'static [&'static str],
    /// The wrapper's own options with a value.
    with_value: &'static [&'static str],
    /// Number of the wrapper's own operands before the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[], 0),
    wrapper("busybox", &[], &[], 0),
    wrapper("chrt", &["-b", "-f", "-i", "-o", "-r"], &[], 1),
    wrapper("command", &["-p"], &[], 0),
    wrapper(
        "env",
        &["-", "-i", "--ignore-environment", "-v", "--debug"],
        &["-u", "--unset", "-C", "--chdir"],
        0,
    ),
    wrapper("exec", &["-c", "-l"], &["-a"], 0),
    wrapper("ionice", &["-t"], &["-c", "-n"], 0),
    wrapper("nice", &[], &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], &[], 0),
    wrapper("setsid", &["-c", "-w", "--wait"], &[], 0),
    wrapper("stdbuf", &[], &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    wrapper("taskset", &["-c"], &[], 1),
    wrapper("time", &["-p", "-v"], &["-f"], 0),
    wrapper(
        "timeout",
        &["-v", "--verbose", "--foreground", "--preserve-status", "-f", "-p"],
        &["-k", "--kill-after", "-s", "--signal"],
        1,
    ),
    wrapper("toybox", &[], &[], 0),
];

const fn wrapper(
    name: &'static str,
    alone: &'static [&'static str],
    with_value: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, alone, with_value, operands }
}

/// Checks that a command has no side effects. `words` are its expanded name and arguments; the
/// check passes if there are none.
pub(super) fn called(words: &[Word]) -> Result<(), Change> {
    let Some((name, arguments)) = words.split_first() else { return Ok(()) };
    let starts = |name: &str| Err(Change::Starts(name.to_owned()));
    if !is_plain(name) {
        return starts(&name.raw);
    }
    let program = name.text.rsplit('/').next().unwrap_or(&name.text);
    if SIDE_EFFECT_PROGRAMS.split(' ').any(|name| name == program) || program.starts_with("mkfs.") {
        return starts(program);
    }
    if program == "eval" || program == "trap" {
        return executed(program, arguments);
    }
    if program == "alias" {
        return aliased(arguments);
    }
    if READ_NAMES.contains(&program) {
        arguments.iter().try_for_each(|word| subscript(&word.text))?;
        let callback = |word: &Word| program != "printf" && word.text.starts_with("-C");
        return if arguments.iter().any(callback) { starts(program) } else { Ok(()) };
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) {
        let behind = wrapper.command(arguments).ok_or(Change::Starts(program.to_owned()))?;
        return called(behind);
    }
    let by_name = |program: Word| {
        let arguments = arguments.to_vec();
        Simple { variables: Vec::new(), program, arguments, input: None }
    };
    // A pure command with known arguments is accepted before the search for signs of writing. A
    // program outside of the system's folders may behave differently from the one that its name
    // suggests, but rarely does.
    let is_known = arguments.iter().all(|word| !word.text.contains(UNKNOWN));
    let is_certain = is_known && is_pure(&by_name(name.clone()));
    let harmless = is_certain || !writes_by_itself(&by_name(Word::new(program)));
    if harmless { Ok(()) } else { Err(Change::Writes) }
}

/// Returns whether a command's name is certain: it has no patterns or braces to expand, and no part
/// that is known only at run time. A tilde is allowed.
fn is_plain(name: &Word) -> bool {
    let expands = name.raw.contains(['*', '?', '[', '{']) && name.raw != "[";
    !expands && !name.text.contains(UNKNOWN)
}

/// Checks that the commands in the arguments of `name`, which is `eval` or `trap`, have no side
/// effects.
fn executed(name: &str, arguments: &[Word]) -> Result<(), Change> {
    let ends_options = arguments.first().is_some_and(|word| word.text == "--");
    let behind = &arguments[usize::from(ends_options)..];
    let used = if name == "eval" { behind } else { behind.get(..1).unwrap_or(&[]) };
    let text = used.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    match (text.contains(UNKNOWN), text.starts_with('-')) {
        // `trap - PIPE` and `trap -p` install no command.
        (false, true) if name == "trap" => Ok(()),
        (false, false) => program(&text),
        _ => Err(Change::Starts(name.to_owned())),
    }
}

/// Checks that the aliases in the arguments of `alias` have no side effects, whatever words will
/// follow them.
fn aliased(arguments: &[Word]) -> Result<(), Change> {
    arguments.iter().filter_map(|word| word.text.split_once('=')).try_for_each(|(_, text)| {
        let runs_others = |word: &str| WRAPPERS.iter().any(|wrapper| wrapper.name == word);
        if text.contains(UNKNOWN) || text.split_whitespace().any(runs_others) {
            return Err(Change::Starts("alias".to_owned()));
        }
        program(text)
    })
}

impl Wrapper {
    /// Returns the words of the command among the arguments, or an empty slice if there is no
    /// command. Returns `None` if the start of the command cannot be determined.
    fn command<'a>(&self, arguments: &'a [Word]) -> Option<&'a [Word]> {
        let mut rest = arguments;
        // These options only look up a command.
        if self.name == "command" && rest.first().is_some_and(|word| is_lookup(&word.text)) {
            return Some(&[]);
        }
        while let Some((first, behind)) = rest.split_first() {
            if first.text == "--" {
                rest = behind;
                break;
            }
            if !first.text.starts_with('-') {
                break;
            }
            rest = behind.get(self.values_behind(&first.text)?..)?;
        }
        if self.name == "env" {
            let assigns = |word: &&Word| word.text.contains('=');
            rest = &rest[rest.iter().take_while(assigns).count()..];
        }
        // An unknown word may turn out to be an option, or nothing.
        let is_certain = |word: &Word| !word.text.starts_with(UNKNOWN);
        if rest.iter().take(self.operands).all(is_certain) {
            Some(rest.get(self.operands..).unwrap_or(&[]))
        } else {
            None
        }
    }

    /// Returns the number of arguments after the given option, 0 or 1, that are its value, or
    /// `None` if the option is unknown.
    fn values_behind(&self, option: &str) -> Option<usize> {
        if self.alone.contains(&option) {
            return Some(0);
        }
        if self.with_value.contains(&option) {
            return Some(1);
        }
        let attached = |known: &&&str| match option.strip_prefix(**known) {
            Some(value) => !known.starts_with("--") || value.starts_with('='),
            None => false,
        };
        let is_number = option[1..].chars().all(|c| c.is_ascii_digit());
        let is_known = self.with_value.iter().find(attached).is_some();
        (is_known || self.name == "nice" && is_number).then_some(0)
    }
}

fn is_lookup(option: &str) -> bool {
    option == "-v" || option == "-V"
}
