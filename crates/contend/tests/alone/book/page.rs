//! Parses the sessions of a page.

use std::ops::Range;
use std::path::Path;

/// The commands of a page, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Item>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A command in a comment, which the reader does not see.
    Setup {
        line: usize,
        command: String,
    },
    Block(Block),
}

/// A fenced block of the language `console`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The line number of the opening fence, from 1.
    pub line: usize,
    /// Programs without which the block is skipped.
    pub needs: Vec<String>,
    /// Whether the output must match exactly.
    pub is_exact: bool,
    /// Number of spaces before the opening fence, for example in a list.
    pub indent: usize,
    pub steps: Vec<Step>,
}

/// A command with its output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The line number of the command, from 1.
    pub line: usize,
    pub command: String,
    pub exit_code: i32,
    pub output: Vec<String>,
    /// Line numbers of the output on the page, from 0; the range is empty if there is no output.
    pub output_lines: Range<usize>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Panics
    /// Panics if the page does not exist, or a session does not begin with a command.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut next = Block::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(comment) = comment(line) {
                page.comment(index + 1, comment, &mut next);
            } else if let Some(fence) = Fence::opens(line) {
                let inside = lines.by_ref().take_while(|(_, line)| !fence.is_closed_by(line));
                let inside: Vec<_> = inside.collect();
                let block = std::mem::take(&mut next);
                if fence.language == "console" {
                    let block = Block { line: index + 1, indent: fence.indent, ..block };
                    page.items.push(Item::Block(session(block, &inside)));
                }
            }
        }
        page
    }

    fn comment(&mut self, line: usize, comment: &str, next: &mut Block) {
        if let Some(programs) = comment.strip_prefix("needs:") {
            let programs = programs.split([',', ' ']).filter(|name| !name.is_empty());
            next.needs.extend(programs.map(str::to_owned));
        } else if let Some(command) = comment.strip_prefix("setup:") {
            self.items.push(Item::Setup { line, command: command.trim().to_owned() });
        } else if comment == "exact" {
            next.is_exact = true;
        }
    }
}

/// Returns the contents of an HTML comment that occupies a whole line, or `None` for other lines.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

/// The opening line of a fenced block.
struct Fence<'a> {
    indent: usize,
    marker: &'a str,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn opens(line: &'a str) -> Option<Self> {
        let text = line.trim_start();
        let character = ['`', '~'].into_iter().find(|&character| text.starts_with(character))?;
        let language = text.trim_start_matches(character);
        let marker = &text[..text.len() - language.len()];
        let is_fence = marker.len() >= 3 && !language.contains('`');
        let indent = line.len() - text.len();
        is_fence.then(|| Self { indent, marker, language: language.trim() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        let is_marker = self.marker.chars().next().is_some_and(|character| {
            !text.is_empty() && text.chars().all(|found| found == character)
        });
        is_marker && text.len() >= self.marker.len()
    }
}

/// Splits the lines of a block, given with their line numbers from 0, into commands and their
/// output, and adds these to the block.
fn session(mut block: Block, lines: &[(usize, &str)]) -> Block {
    let mut is_continued = false;
    for &(index, line) in lines {
        let line = line.get(block.indent.min(line.len() - line.trim_start().len())..).unwrap_or("");
        if is_continued {
            let step = block.steps.last_mut().expect("a command is continued");
            step.command.push('\n');
            step.command.push_str(line);
            step.output_lines = index + 1..index + 1;
            is_continued = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            is_continued = command.ends_with('\\');
            let output_lines = index + 1..index + 1;
            block.steps.push(Step { line: index + 1, command, output_lines, ..Step::default() });
        } else {
            let step = block.steps.last_mut();
            let step = step.unwrap_or_else(|| panic!("line {}: no command before it", index + 1));
            let exit_code = line.strip_prefix("# exits ").and_then(|code| code.parse().ok());
            if let Some(code) = exit_code.filter(|_| step.output.is_empty()) {
                step.exit_code = code;
                step.output_lines.start = index + 1;
            } else {
                step.output.push(line.to_owned());
            }
            step.output_lines.end = index + 1;
        }
    }
    block
}

#[test]
fn sessions_are_found_in_order_with_their_comments() {
    let text = "\
<!-- setup: seq 3 >n -->
````text
```console
$ not this
```
````
1. A list

   <!-- needs: ruby, puma -->
   <!-- exact -->
   ```console
   $ ruby \\
     -v
   # exits 3
   ruby 3
     x
   $ true
   ```

~~~console
$ cat n
# exits 1
~~~
";
    let Page { items } = Page::parse(text);
    let setup = Item::Setup { line: 1, command: "seq 3 >n".to_owned() };
    assert_eq!(items[0], setup);
    let Item::Block(block) = &items[1] else { panic!("{items:?}") };
    assert_eq!((block.line, block.indent, block.is_exact), (11, 3, true));
    assert_eq!(block.needs, ["ruby", "puma"]);
    let step = &block.steps[0];
    assert_eq!((step.command.as_str(), step.exit_code), ("ruby \\\n  -v", 3));
    assert_eq!(step.output, ["ruby 3", "  x"]);
    assert_eq!(step.output_lines, 14..16);
    assert_eq!((block.steps[1].output_lines.clone(), block.steps.len()), (17..17, 2));
    let Item::Block(block) = &items[2] else { panic!("{items:?}") };
    assert_eq!((block.needs.len(), block.is_exact, block.steps[0].exit_code), (0, false, 1));
    assert_eq!(items.len(), 3);
}

#[test]
#[should_panic(expected = "line 2: no command before it")]
fn a_session_begins_with_a_command() {
    Page::parse("```console\nls\n```\n");
}
