//! Emulates the screen of a terminal, to find which part of a program's output remains visible.
//!
//! The emulation covers the control sequences that contend uses: styles, cursor movement, saving
//! and restoring the cursor, and clearing. Lines never wrap.

/// The style of a character on the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub underlined: bool,
    /// The number of the colour, from 0 to 7, or `None` for the default. Bright colours have the
    /// numbers of normal ones.
    pub colour: Option<u16>,
}

impl Style {
    /// Applies the parameters of a control sequence `ESC [ … m`.
    fn apply(&mut self, parameters: &str) {
        let mut numbers = parameters.split(';').map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                4 => self.underlined = true,
                22 => (self.bold, self.dim) = (false, false),
                24 => self.underlined = false,
                30..=37 => self.colour = Some(number - 30),
                90..=97 => self.colour = Some(number - 90),
                39 => self.colour = None,
                // One of 256 colours, or red, green and blue: skip the parameters.
                38 | 48 => match numbers.next() {
                    Some(5) => drop(numbers.next()),
                    Some(2) => drop(numbers.nth(2)),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// A line of characters with their styles.
pub type Line = Vec<(char, Style)>;

/// The contents of a screen, with the position and style of its cursor.
#[derive(Debug, Default)]
struct Screen {
    lines: Vec<Line>,
    row: usize,
    column: usize,
    saved: (usize, usize),
    style: Style,
}

/// Returns the lines that are visible after a program has written `text`, without trailing blank
/// lines.
pub fn lines(text: &str) -> Vec<Line> {
    let mut screen = Screen::default();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\u{1b}' => rest = screen.escape(rest),
            '\n' => screen.row += 1,
            '\r' => screen.column = 0,
            _ if character.is_control() => {}
            _ => screen.put(character),
        }
    }
    while screen.lines.last().is_some_and(|line| line.iter().all(|(found, _)| *found == ' ')) {
        screen.lines.pop();
    }
    screen.lines
}

impl Screen {
    fn line(&mut self) -> &mut Line {
        if self.lines.len() <= self.row {
            self.lines.resize(self.row + 1, Line::new());
        }
        &mut self.lines[self.row]
    }

    fn put(&mut self, character: char) {
        let (column, style) = (self.column, self.style);
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, (' ', Style::default()));
        }
        line[column] = (character, style);
        self.column += 1;
    }

    /// Executes the control sequence that follows an ESC, and returns the rest of the text.
    fn escape<'a>(&mut self, text: &'a str) -> &'a str {
        let Some(sequence) = text.strip_prefix('[') else {
            let character = text.chars().next();
            match character {
                Some('7') => self.saved = (self.row, self.column),
                Some('8') => (self.row, self.column) = self.saved,
                Some('D') => self.row += 1,
                _ => {}
            }
            return &text[character.map_or(0, char::len_utf8)..];
        };
        let Some(end) = sequence.find(|c: char| c.is_ascii_alphabetic()) else { return "" };
        let (parameters, rest) = sequence.split_at(end);
        self.control(&rest[..1], parameters);
        &rest[1..]
    }

    fn control(&mut self, command: &str, parameters: &str) {
        let count = parameters.parse::<usize>().unwrap_or(1);
        let column = self.column;
        match (command, parameters) {
            ("m", _) => self.style.apply(parameters),
            ("A", _) => self.row = self.row.saturating_sub(count),
            ("B", _) => self.row += count,
            ("G", _) => self.column = count.saturating_sub(1),
            ("K", "2") => self.line().clear(),
            ("K", _) => self.line().truncate(column),
            ("J", _) => {
                self.line().truncate(column);
                let rows = self.row + 1;
                self.lines.truncate(rows);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(text: &str) -> Vec<String> {
        lines(text).iter().map(|line| line.iter().map(|(found, _)| found).collect()).collect()
    }

    #[test]
    fn cleared_text_is_not_visible() {
        let view =
            "1 a\r\n\u{1b}D\u{1b}[A\u{1b}71 cat\r\n2 sort\u{1b}8\u{1b}[Jwait …\r\u{1b}[2Kdone\r\n";
        assert_eq!(visible(view), ["1 a", "done"]);
        assert_eq!(visible("a\r\nb\r\nc\u{1b}[2A\r\u{1b}[Kd\u{1b}[5"), ["d", "b", "c"]);
    }

    #[test]
    fn styles_apply_until_they_are_reset() {
        let found = lines("\u{1b}[1;31ma\u{1b}[0m\u{1b}[38;5;196;2mb");
        let red = Style { bold: true, colour: Some(1), ..Style::default() };
        let dim = Style { dim: true, ..Style::default() };
        assert_eq!(found, [vec![('a', red), ('b', dim)]]);
    }
}
