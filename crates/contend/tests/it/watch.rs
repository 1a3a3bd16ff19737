//! Tests of `contend doctor --watch`: the full screen, its keys, and the state in which it leaves the
//! terminal.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use contend_sys::procfs::with_descendants;
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{kill_process, test_kill_process};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Child, Command, contend, has, skip, text};

const ENTER_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_SCREEN: &str = "\u{1b}[?1049l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
const CTRL_C: &str = "\u{3}";
const CTRL_Z: &str = "\u{1a}";

/// A new terminal of 80 columns and 24 lines, on which a command of bash runs.
struct Terminal {
    script: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    /// What the terminal has received.
    drawn: String,
    /// Number of bytes of that in which a text has been found.
    seen: usize,
}

impl Terminal {
    /// Runs a command. Its status and the terminal's modes before and after it are printed. Returns
    /// `None` if there is no terminal.
    fn run(test: &str, command: &str) -> Option<Self> {
        if !has("script") || !has("bash") {
            skip(test, "there is no script(1) or bash to make a terminal with");
            return None;
        }
        let script = format!("stty cols 80 rows 24; stty -g; {command}; echo code=$?; stty -g");
        let mut script = Command::new("script")
            .args(["-qec", &format!("bash -c '{}'", script.replace('\'', "'\\''")), "/dev/null"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        let keyboard = script.stdin.take().expect("a pipe");
        let screen = script.stdout.take().expect("a pipe");
        Some(Self { script, keyboard, screen, drawn: String::new(), seen: 0 })
    }

    /// Reads until a text is drawn, after the one that was waited for last. Unchanged parts of the
    /// screen and spaces are not drawn again. Panics if the text is not drawn within a minute.
    fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.drawn[self.seen..].contains(text) {
            let goes_on = begun.elapsed() < Duration::from_mins(1) && self.read();
            assert!(goes_on, "no {text:?} after {}: {:?}", self.seen, self.drawn);
        }
        self.seen += self.drawn[self.seen..].find(text).expect("found") + text.len();
    }

    /// Reads what is drawn next. Returns `false` once the command has ended.
    fn read(&mut self) -> bool {
        const MAX_SILENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut buffer = [0; 4096];
        let ready = poll(&mut [PollFd::new(&self.screen, PollFlags::IN)], Some(&MAX_SILENCE));
        assert_ne!(ready, Ok(0), "nothing more after {:?}", self.drawn);
        let length = self.screen.read(&mut buffer).unwrap_or(0);
        self.drawn.push_str(&String::from_utf8_lossy(&buffer[..length]));
        length > 0
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal reads");
    }

    /// Returns the PID of contend, which must run.
    fn contend(&self) -> Pid {
        let is_contend = |pid: &Pid| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
            name.is_ok_and(|name| name.trim() == "contend")
        };
        let found = with_descendants(Pid::from_child(&self.script));
        found.into_iter().find(is_contend).expect("contend runs")
    }

    /// Reads until the command has ended, and returns all that was drawn. Checks that the terminal is
    /// as it was before.
    fn end(mut self) -> String {
        while self.read() {}
        self.script.wait().expect("a child");
        let drawn = std::mem::take(&mut self.drawn);
        let is_mode = |line: &&str| line.matches(':').count() > 20;
        let modes: Vec<&str> = drawn.lines().filter(is_mode).map(str::trim).collect();
        assert!(modes.len() >= 2, "{drawn:?}");
        assert!(modes.iter().all(|other| *other == modes[0]), "{drawn:?}");
        let last = |text: &str| drawn.rfind(text).unwrap_or_else(|| panic!("{text:?}: {drawn:?}"));
        assert!(last(ENTER_SCREEN) < last(LEAVE_SCREEN), "{drawn:?}");
        assert!(last(HIDE_CURSOR) < last(SHOW_CURSOR), "{drawn:?}");
        drawn
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Ok(None) = self.script.try_wait() {
            for pid in with_descendants(Pid::from_child(&self.script)) {
                let _ = kill_process(pid, Signal::KILL); // it may have ended
            }
            let _ = self.script.wait();
        }
    }
}

/// A process that is killed at the end.
struct Running(Child);

impl Running {
    fn busy() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("a shell"))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn watch(&self) -> String {
        format!("{} doctor --watch {}", contend(), self.pid().as_raw_nonzero())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns what was drawn after the screen was left.
fn after_screen(drawn: &str) -> &str {
    drawn.rsplit_once(LEAVE_SCREEN).expect("the screen was left").1
}

#[test]
fn a_key_ends_the_view_and_the_report_follows() {
    let program = Running::busy();
    let test = "a_key_ends_the_view_and_the_report_follows";
    let Some(mut terminal) = Terminal::run(test, &program.watch()) else { return };
    terminal.wait_for("moments");
    terminal.wait_for("findings");
    terminal.press("t");
    terminal.wait_for("findings"); // the key names the other list
    terminal.press("w");
    terminal.wait_for("start");
    terminal.press(" ");
    terminal.wait_for("paused");
    terminal.press("q");
    let drawn = terminal.end();
    let report = after_screen(&drawn);
    assert!(report.contains("Diagnosis:") && report.contains("code=0"), "{report}");
    assert!(!drawn.split(LEAVE_SCREEN).next().expect("one").contains("Diagnosis:"), "{drawn:?}");
    assert!(test_kill_process(program.pid()).is_ok(), "it still runs");
}

#[test]
fn signals_end_the_view_and_restore_the_terminal() {
    let test = "signals_end_the_view_and_restore_the_terminal";
    let program = Running::busy();
    // An interrupt is the usual end of an observation; the others end contend.
    for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let Some(mut terminal) = Terminal::run(test, &program.watch()) else { return };
        terminal.wait_for("moments");
        kill_process(terminal.contend(), signal).expect("alive");
        let drawn = terminal.end();
        let report = after_screen(&drawn);
        assert!(report.contains("Diagnosis:"), "{report}");
        assert!(report.contains(&format!("code={code}")), "{report}");
    }
    let Some(mut terminal) = Terminal::run(test, &program.watch()) else { return };
    terminal.wait_for("moments");
    terminal.press(CTRL_C);
    let drawn = terminal.end();
    assert!(after_screen(&drawn).contains("code=0"), "{drawn:?}");
    assert!(test_kill_process(program.pid()).is_ok(), "it still runs");
}

#[test]
fn an_interrupt_also_ends_a_command_that_contend_has_started() {
    let test = "an_interrupt_also_ends_a_command_that_contend_has_started";
    let command = format!("{} doctor --watch -- sleep 1000", contend());
    let Some(mut terminal) = Terminal::run(test, &command) else { return };
    terminal.wait_for("moments");
    terminal.press(CTRL_C);
    // As the shell that contend replaces, bash ends by an interrupt that has killed its child.
    while terminal.read() {}
    terminal.script.wait().expect("a child");
    let report = after_screen(&terminal.drawn);
    assert!(report.contains("| exit 130"), "{report}");
    assert!(!report.contains("code="), "{report}");
}

#[test]
fn the_view_ends_with_the_command_whose_output_follows() {
    let test = "the_view_ends_with_the_command_whose_output_follows";
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    // The input is empty, and a program may open its standard error again.
    let script =
        "echo first; echo second >/dev/stderr; read line; echo read=$? >&2; sleep 1; exit 7";
    let command = format!(
        "{} doctor --watch --json {} -- bash -c \"{}\"",
        contend(),
        json.display(),
        script.replace('$', "\\$"),
    );
    let Some(mut terminal) = Terminal::run(test, &command) else { return };
    terminal.wait_for("moments");
    let drawn = terminal.end();
    let report = after_screen(&drawn);
    let place = |text: &str| report.find(text).unwrap_or_else(|| panic!("{text}: {report}"));
    assert!(place("second") < place("read=1") && place("read=1") < place("Diagnosis:"));
    let words = report.split_whitespace().collect::<Vec<_>>().join(" "); // lines are wrapped
    assert!(words.contains("| exit 7 ") && words.contains("code=7"), "{report}");
    let record = std::fs::read_to_string(json).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!((&record["exit_code"], &record["started"]), (&7.into(), &true.into()));
}

#[test]
fn a_command_continues_after_the_view() {
    let test = "a_command_continues_after_the_view";
    let folder = tempfile::tempdir().expect("a folder");
    let over = folder.path().join("over");
    let command = format!(
        "{} doctor --watch -- sh -c \"until [ -e {} ]; do sleep 0.1; done; echo later\"",
        contend(),
        over.display()
    );
    let Some(mut terminal) = Terminal::run(test, &command) else { return };
    terminal.wait_for("moments");
    terminal.press("q");
    terminal.wait_for("Diagnosis:");
    terminal.wait_for("contend waits for its end");
    std::fs::write(over, "").expect("room");
    terminal.wait_for("later");
    let drawn = terminal.end();
    assert!(drawn.contains("code=0"), "{drawn:?}");
}

#[test]
fn the_view_makes_room_while_it_is_stopped() {
    let test = "the_view_makes_room_while_it_is_stopped";
    let program = Running::busy();
    let command = format!("set -m; {}; stty -g; echo stopped; fg", program.watch());
    let Some(mut terminal) = Terminal::run(test, &command) else { return };
    terminal.wait_for("moments");
    terminal.press(CTRL_Z);
    terminal.wait_for(LEAVE_SCREEN);
    terminal.wait_for("stopped");
    terminal.wait_for(ENTER_SCREEN);
    terminal.wait_for("moments");
    terminal.press("q");
    let drawn = terminal.end();
    assert!(after_screen(&drawn).contains("code=0"), "{drawn:?}");
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let test = "the_view_follows_the_size_of_the_terminal";
    let program = Running::busy();
    let Some(mut terminal) = Terminal::run(test, &program.watch()) else { return };
    terminal.wait_for("pause");
    let path = format!("/proc/{}/fd/2", terminal.contend().as_raw_nonzero());
    let device = OpenOptions::new().write(true).open(path).expect("a terminal");
    let size = Winsize { ws_row: 10, ws_col: 30, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&device, size).expect("a terminal");
    drop(device);
    terminal.wait_for("\u{1b}[2J");
    let cleared = terminal.seen;
    terminal.wait_for("quit");
    terminal.press("q");
    terminal.wait_for(LEAVE_SCREEN);
    let small = &terminal.drawn[cleared..terminal.seen];
    // Positions are ESC [ line ; column H.
    let positions = small.split("\u{1b}[").filter_map(|part| {
        let (line, column) = part.split_once('H')?.0.split_once(';')?;
        Some((line.parse::<u16>().ok()?, column.parse::<u16>().ok()?))
    });
    let positions: Vec<(u16, u16)> = positions.collect();
    assert!(!positions.is_empty(), "{small:?}");
    assert!(positions.iter().all(|(line, column)| *line <= 10 && *column <= 30), "{positions:?}");
    terminal.end();
}

#[test]
fn colours_are_left_out_on_request() {
    let test = "colours_are_left_out_on_request";
    let program = Running::busy();
    let has_colours = |command: &str| {
        let mut terminal = Terminal::run(test, command)?;
        terminal.wait_for("findings");
        terminal.press("q");
        let drawn = terminal.end();
        let (view, _) = drawn.rsplit_once(LEAVE_SCREEN)?;
        Some(view.contains("\u{1b}[38;5;") || view.contains("\u{1b}[1m"))
    };
    let watch = program.watch();
    let Some(usual) = has_colours(&watch) else { return };
    assert!(usual);
    assert_eq!(has_colours(&format!("NO_COLOR=1 {watch}")), Some(false));
    assert_eq!(has_colours(&format!("{watch} --color never")), Some(false));
}

#[test]
fn without_a_terminal_the_view_is_refused() {
    let mut command = Command::new(contend());
    command.args(["doctor", "--watch", "--", "echo", "started"]).stdin(Stdio::null());
    let output = command.output().expect("contend starts");
    let report = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{report}");
    assert!(report.contains("`--watch`") && report.contains("is not a terminal"), "{report}");
    assert_eq!(text(&output.stdout), "", "the command was not started");
    let test = "without_a_terminal_the_view_is_refused";
    if !has("script") {
        return skip(test, "there is no script(1) to make a terminal with");
    }
    let line = format!("TERM=dumb {} doctor --watch -- true; echo code=$?", contend());
    let mut script = Command::new("script");
    let output = script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    let report = text(&output.expect("script starts").stdout);
    assert!(report.contains("TERM=dumb") && report.contains("code=2"), "{report}");
}
