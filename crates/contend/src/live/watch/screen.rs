//! The full screen of a terminal, and its keyboard.
//!
//! ```text
//! Screen::enter ──▶ modes saved, alternate screen, cursor hidden ──▶ restore
//!                                                                    by: drop (also after an error),
//!                                                                        Ctrl-Z, the panic hook
//! ```
//!
//! Single keys are read without an echo, but the keys that send signals still do: Ctrl-C reaches
//! contend and the command that it observes, as without this screen, and contend reads the signal like
//! one from another process.
//!
//! crossterm only writes here. Its reader of events would install a signal handler, and never returns
//! when the terminal hangs up.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read as _, Stderr};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError, TryLockError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

/// Size assumed for a terminal that does not report one, in columns and lines.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// What has to be restored; `None` while the terminal is as it was found.
static CHANGED: Mutex<Option<Changed>> = Mutex::new(None);

#[derive(Debug)]
struct Changed {
    keyboard: File,
    modes: Termios,
}

/// The terminal on standard error, as a full screen. It is restored when the value is dropped.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    size: (u16, u16),
    keyboard: File,
}

impl Screen {
    /// Changes to the full screen.
    ///
    /// # Errors
    /// Returns an error if there is no terminal, or its modes cannot be changed.
    pub fn enter() -> io::Result<Self> {
        let keyboard = keyboard()?;
        let size = size();
        let terminal = terminal(size)?;
        change(&keyboard)?;
        Ok(Self { terminal, size, keyboard })
    }

    /// Draws the screen; only what has changed is written.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be written.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(|_| ())
    }

    /// Reads the size of the terminal. If it has changed, clears the screen and returns `true`.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be written.
    pub fn resize(&mut self) -> io::Result<bool> {
        let size = size();
        if size == self.size {
            return Ok(false);
        }
        self.clear()?;
        Ok(true)
    }

    /// Clears the screen, so that the next drawing is complete.
    fn clear(&mut self) -> io::Result<()> {
        execute!(io::stderr(), Clear(ClearType::All))?;
        self.size = size();
        self.terminal = terminal(self.size)?;
        Ok(())
    }

    /// Reads the bytes that have been typed, without waiting for any.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be read, for example because it has hung up.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.keyboard.read(buffer) {
            Err(error) if is_temporary(&error) => Ok(0),
            result => result,
        }
    }

    /// Changes to the full screen again, after [`restore`] or another program has changed the terminal.
    ///
    /// # Errors
    /// As [`Screen::enter`].
    pub fn reenter(&mut self) -> io::Result<()> {
        change(&self.keyboard)?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns why there cannot be a full screen; `None` if nothing speaks against it.
pub fn obstacle() -> Option<&'static str> {
    if !io::stderr().is_terminal() {
        return Some("standard error is not a terminal");
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Some("the terminal cannot move the cursor (TERM=dumb)");
    }
    keyboard().is_err().then_some("there is no terminal to read keys from")
}

/// Restores the terminal, if it is changed. Ignores errors, such as a closed terminal. Also called by
/// the panic hook, so it does not panic or wait for a lock.
pub fn restore() {
    let changed = match CHANGED.try_lock() {
        Ok(mut changed) => changed.take(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
        Err(TryLockError::WouldBlock) => None,
    };
    if let Some(Changed { keyboard, modes }) = changed {
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        let _ = tcsetattr(&keyboard, OptionalActions::Now, &modes);
    }
}

/// Saves the terminal's modes unless they are saved already, and changes them.
fn change(keyboard: &File) -> io::Result<()> {
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = match &*changed {
        Some(changed) => changed.modes.clone(),
        None => tcgetattr(keyboard)?,
    };
    let single_keys = for_single_keys(before.clone());
    *changed = Some(Changed { keyboard: keyboard.try_clone()?, modes: before });
    drop(changed);
    let result = tcsetattr(keyboard, OptionalActions::Now, &single_keys)
        .map_err(io::Error::from)
        .and_then(|()| execute!(io::stderr(), EnterAlternateScreen, Hide, Clear(ClearType::All)));
    if result.is_err() {
        restore();
    }
    result
}

/// Returns modes in which single keys are read without an echo, and reading does not wait.
fn for_single_keys(mut modes: Termios) -> Termios {
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.local_modes.insert(LocalModes::ISIG);
    // Ctrl-S would stop the drawing, and with that the observation.
    modes.input_modes.remove(InputModes::IXON);
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}

/// Returns the terminal that keys are read from: standard input, or else that of the session.
fn keyboard() -> io::Result<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned().map(File::from);
    }
    File::open("/dev/tty")
}

fn size() -> (u16, u16) {
    let size = tcgetwinsize(io::stderr()).ok().map(|size| (size.ws_col, size.ws_row));
    size.filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(DEFAULT_SIZE)
}

/// Returns a terminal with an empty buffer of this size. With a fixed size, ratatui does not ask for
/// it, which crossterm would do at another terminal if standard output is one.
fn terminal(size: (u16, u16)) -> io::Result<Terminal<CrosstermBackend<BufWriter<Stderr>>>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
    let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
    Terminal::with_options(backend, TerminalOptions { viewport })
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "CONTEND_TEST_PANICS_ON_THE_SCREEN";

    #[test]
    fn a_panic_restores_the_terminal_before_its_message() {
        if std::env::var_os(PANICS).is_some() {
            crate::abort_on_panic();
            let _screen = Screen::enter().expect("a terminal");
            panic!("a message to read");
        }
        // This test again, in a process that has a terminal.
        let test = "live::watch::screen::tests::a_panic_restores_the_terminal_before_its_message";
        let program = std::env::current_exe().expect("it runs");
        let line = format!(
            "ulimit -c 0; stty -g; {PANICS}=1 '{}' --exact {test} --nocapture; echo code=$?; stty -g",
            program.display(),
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        let Ok(output) = script.output() else { return }; // without script(1)
        let drawn = String::from_utf8_lossy(&output.stdout).into_owned();
        let entered = drawn.find("\x1b[?1049h").expect("the screen was shown");
        let left = drawn.find("\x1b[?1049l").expect("the screen was left");
        let shown = drawn.rfind("\x1b[?25h").expect("the cursor is shown");
        let message = drawn.find("a message to read").expect("the message was printed");
        assert!(entered < left && shown < message && left < message, "{drawn:?}");
        assert!(drawn.contains("code=134"), "it was aborted: {drawn:?}");
        let modes: Vec<&str> =
            drawn.lines().filter(|line| line.matches(':').count() > 20).collect();
        assert_eq!(modes.len(), 2, "{drawn:?}");
        assert_eq!(modes[0], modes[1]);
    }

    #[test]
    fn a_second_restoration_does_nothing() {
        restore();
        assert!(CHANGED.try_lock().is_ok_and(|changed| changed.is_none()));
    }
}
