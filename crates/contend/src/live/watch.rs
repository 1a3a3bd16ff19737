//! The live view of `contend doctor --watch`: a full screen with the record of the observation so far,
//! made once a second.
//!
//! ```text
//! observe ──each interval──▶ Watch::step ─┬─ signals: Ctrl-Z
//!                                         ├─ keys ──────────▶ View
//!                                         ├─ output of the command
//!                                         └─ once a second: snapshot ─▶ record ─▶ view::draw
//! ```
//!
//! The function that makes the record is that of the report. [`screen`] changes the terminal and
//! restores it, [`view`] draws, and [`capture`] keeps the command's output away from the screen.

mod capture;
mod keys;
mod screen;
mod view;

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use contend_doctor::observe::{Observation, Observer};
use contend_record::doctor::DoctorRecord;
use contend_sys::Signal;
use contend_sys::interrupt::Signals;
use ratatui::crossterm::style::force_color_output;

use crate::terminal::has_styles;
use keys::{Key, Keys};
use screen::Screen;
use view::{Scope, View};

pub use capture::Capture;
pub use screen::{obstacle, restore};

/// Time between two snapshots.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time from the start of the observation to the first snapshot.
const FIRST: Duration = Duration::from_millis(300);
/// Time between two snapshots, as a multiple of the time that one takes, if that is longer than
/// [`INTERVAL`], as with many threads.
const INTERVAL_RATIO: u32 = 50;
/// Time that [`Scope::Recent`] covers.
const RECENT: Duration = Duration::from_secs(10);

/// A live view of an observation. The terminal is restored when the value is dropped.
pub struct Watch<'a> {
    signals: &'a Signals,
    /// Makes the record of an observation.
    record: &'a dyn Fn(&Observation) -> DoctorRecord,
    /// The output of the command, if contend has started it.
    capture: Option<&'a mut Capture>,
    screen: Screen,
    keys: Keys,
    view: View,
    /// Snapshots, oldest first: at least the last one, and those of the last ten seconds.
    snapshots: VecDeque<Observation>,
    /// When the next snapshot is due, as a time since the start of the observation.
    due: Duration,
    /// Time that the last snapshot took, with its record.
    cost: Duration,
    shown: Option<DoctorRecord>,
    /// While the display is paused, the record of the other scope at the same time.
    hidden: Option<DoctorRecord>,
    /// Time for which this process has been stopped, at the last step.
    stopped: Duration,
}

impl<'a> Watch<'a> {
    /// Changes to the full screen. `record` makes the record of an observation.
    ///
    /// # Errors
    /// Returns an error if there is no terminal, or it cannot be changed or written.
    pub fn begin(
        signals: &'a Signals,
        record: &'a dyn Fn(&Observation) -> DoctorRecord,
        capture: Option<&'a mut Capture>,
    ) -> io::Result<Self> {
        // crossterm has a decision of its own, which does not know of `--color`.
        force_color_output(has_styles());
        // Restores the terminal first, in whichever part of contend the signal is read.
        signals.set_before_stop(Some(screen::restore));
        let mut watch = Self {
            signals,
            record,
            capture,
            screen: Screen::enter()?,
            keys: Keys::default(),
            view: View { has_styles: has_styles(), ..View::default() },
            snapshots: VecDeque::new(),
            due: FIRST,
            cost: Duration::ZERO,
            shown: None,
            hidden: None,
            stopped: signals.stopped(),
        };
        watch.draw()?;
        Ok(watch)
    }

    /// Handles signals and keys, and updates the screen if that is due. Must be called after each
    /// interval. Returns whether the observation goes on: not after the key for that, or if the
    /// terminal has hung up.
    pub fn step(&mut self, observer: &mut Observer<'_>) -> ControlFlow<()> {
        self.update(observer).unwrap_or(ControlFlow::Break(()))
    }

    fn update(&mut self, observer: &mut Observer<'_>) -> io::Result<ControlFlow<()>> {
        let mut is_changed = self.handle_signals()?;
        let mut typed = [0; 64];
        let length = self.screen.read(&mut typed)?;
        for key in self.keys.parse(&typed[..length]) {
            if key == Key::Quit {
                return Ok(ControlFlow::Break(()));
            }
            self.handle(key);
            is_changed = true;
        }
        is_changed |= self.screen.resize()?;
        if let Some(capture) = &mut self.capture {
            capture.read()?;
        }
        if observer.elapsed() >= self.due {
            self.take_snapshot(observer);
            is_changed = true;
        }
        if is_changed {
            self.draw()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Stops this process if the user has requested that. Returns whether the screen is empty because
    /// it was stopped, now or since the last step. Requests to end are left to the observer.
    fn handle_signals(&mut self) -> io::Result<bool> {
        let mut was_stopped = false;
        while let Some(arrived) = self.signals.next() {
            if arrived.signal == Signal::TSTP.as_raw() {
                self.signals.stop();
                was_stopped = true;
            }
            was_stopped |= arrived.signal == Signal::CONT.as_raw();
        }
        // The observer may have read the signal first.
        was_stopped |= self.signals.stopped() != self.stopped;
        self.stopped = self.signals.stopped();
        if was_stopped {
            self.screen.reenter()?;
        }
        Ok(was_stopped)
    }

    fn handle(&mut self, key: Key) {
        match key {
            Key::Quit => {}
            Key::Next => self.select(1),
            Key::Previous => self.select(-1),
            Key::List => self.view.list = self.view.list.other(),
            Key::Scope => {
                self.view.scope = self.view.scope.other();
                if self.view.is_paused {
                    std::mem::swap(&mut self.shown, &mut self.hidden);
                } else {
                    self.refresh();
                }
            }
            Key::Pause => {
                self.view.is_paused = !self.view.is_paused;
                self.hidden = None;
                if self.view.is_paused {
                    self.hidden = self.record_of(self.view.scope.other());
                } else {
                    self.refresh();
                }
            }
        }
    }

    /// Selects the finding that is `step` places further, or the first or last one instead of one
    /// beyond the ends.
    fn select(&mut self, step: isize) {
        let Some(record) = &self.shown else { return };
        let index = view::selected_index(record, self.view.selected);
        let last = record.findings.len().saturating_sub(1);
        let index = index.saturating_add_signed(step).min(last);
        self.view.selected = record.findings.get(index).map(|finding| finding.symptom);
    }

    fn take_snapshot(&mut self, observer: &mut Observer<'_>) {
        let begun = Instant::now();
        self.snapshots.push_back(observer.snapshot());
        let last = self.length();
        let is_old = |snapshot: &Observation| last.saturating_sub(snapshot.length) >= RECENT;
        while self.snapshots.get(1).is_some_and(is_old) {
            self.snapshots.pop_front();
        }
        if !self.view.is_paused {
            self.refresh();
        }
        // The first snapshot takes longer, because it reads symbols.
        let cost = begun.elapsed().min(std::mem::replace(&mut self.cost, begun.elapsed()));
        self.due = observer.elapsed() + INTERVAL.max(INTERVAL_RATIO * cost);
    }

    /// Shows the record of the last snapshot.
    fn refresh(&mut self) {
        self.shown = self.record_of(self.view.scope);
        self.view.elapsed = self.length();
    }

    /// Returns the length of the observation at the last snapshot.
    fn length(&self) -> Duration {
        self.snapshots.back().map_or(Duration::ZERO, |last| last.length)
    }

    /// Returns the record of the last snapshot; `None` before the first one.
    fn record_of(&self, scope: Scope) -> Option<DoctorRecord> {
        let (first, last) = (self.snapshots.front()?, self.snapshots.back()?);
        let is_part = scope == Scope::Recent && last.length > RECENT && self.snapshots.len() > 1;
        Some(if is_part { (self.record)(&last.since(first)) } else { (self.record)(last) })
    }

    fn draw(&mut self) -> io::Result<()> {
        if let (Some(capture), false) = (&self.capture, self.view.is_paused) {
            self.view.output = capture.last_lines();
        }
        let (shown, view) = (self.shown.as_ref(), &self.view);
        self.screen.draw(|frame| view::draw(frame, shown, view))
    }
}
