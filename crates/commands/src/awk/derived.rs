//! Generates two programs: one computes the totals of a chunk, and the other combines the totals of
//! all chunks.
//!
//! The program for a chunk prints lines that the combining program reads without further parsing:
//!
//! ```text
//! exact AMOUNT            sum of the absolute values added, except constants up to 1024, `++` and
//!                         `--`; or the line "inexact"
//! RECORDS                 number of records
//! VALUE                   for each variable; empty if nothing was added to it
//! VALUE LINES KEY...      for each element, one line each; the key takes LINES lines
//!                         an empty line after each array
//! end
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::additions::{EXACT_SUM_LIMIT, additions, is_small, mentions};
use super::ast::{Item, ItemKind, Program};

/// A generator of programs. The names that it adds start with a prefix that no name in the original
/// program has.
#[derive(Debug)]
pub(super) struct Generator {
    prefix: String,
}

impl Generator {
    pub(super) fn new(program: &Program, given: &[&str]) -> Self {
        let mut taken: BTreeSet<&str> = mentions(program).into_keys().collect();
        taken.extend(given);
        for function in program.functions() {
            taken.insert(&function.name);
            taken.extend(function.parameters.iter().map(String::as_str));
        }
        let mut prefix = "contend_".to_owned();
        while taken.iter().any(|name| name.starts_with(&prefix)) {
            prefix.push('_');
        }
        Self { prefix }
    }

    /// Returns the source of the program's items for which `wanted` returns `true`, each followed
    /// by a newline.
    pub(super) fn texts(program: &Program, wanted: impl Fn(&ItemKind) -> bool) -> String {
        let items = program.items.iter().filter(|item| wanted(&item.kind));
        items.flat_map(|item| [&program.text[item.place.clone()], "\n"]).collect()
    }

    /// Replaces each `@` in `text` with the generator's prefix.
    fn named(&self, text: &str) -> String {
        text.replace('@', &self.prefix)
    }

    /// Generates the program that prints the totals of a chunk in the module's format. `scalars`
    /// and `arrays` are the sums in the original program.
    pub(super) fn part(&self, program: &Program, scalars: &[String], arrays: &[String]) -> String {
        let mut text = String::new();
        for item in &program.items {
            match item.kind {
                ItemKind::End(_) => {}
                ItemKind::Rule(_) => text.push_str(&self.watched(program, item, scalars, arrays)),
                _ => text.push_str(&program.text[item.place.clone()]),
            }
            text.push('\n');
        }
        text + &self.part_end(scalars, arrays)
    }

    /// Returns the source of a rule, changed to track whether its additions to sums are exact.
    fn watched(
        &self,
        program: &Program,
        item: &Item,
        scalars: &[String],
        arrays: &[String],
    ) -> String {
        let mut text = program.text[item.place.clone()].to_owned();
        let is_sum = |name: &str| scalars.iter().chain(arrays).any(|sum| sum == name);
        // Replaces from last to first, so that earlier offsets stay valid.
        let mut found = additions(item);
        found.sort_by_key(|(statement, _)| statement.place.start);
        for (statement, addition) in found.into_iter().rev() {
            let Some(assignment) = addition.assignment else { continue };
            if !is_sum(addition.name) || is_small(&assignment.value) {
                continue;
            }
            let value = &program.text[assignment.value_place.clone()];
            let target = &program.text[assignment.target_place.clone()];
            let operator = &assignment.operator;
            let [t, f, a] = ["t", "f", "a"].map(|name| format!("{}{name}", self.prefix));
            let watched = format!(
                "{{ {t} = ({value}) + 0; {target} {operator} {t}; if ({t} != int({t})) {f} = 1; \
                 if ({t} < 0) {a} -= {t}; else {a} += {t} }}"
            );
            let start = item.place.start;
            text.replace_range(
                statement.place.start - start..statement.place.end - start,
                &watched,
            );
        }
        text
    }

    fn part_end(&self, scalars: &[String], arrays: &[String]) -> String {
        let mut text = format!(
            "END {{\nORS = \"\\n\"\n\
             if (@f || !(@a < {EXACT_SUM_LIMIT})) print \"inexact\"; else printf \"exact %.17g\\n\", @a\n\
             printf \"%.17g\\n\", NR\n"
        );
        for name in scalars {
            // An unassigned variable is equal to both.
            let _ = writeln!(
                text,
                "if ({name} == \"\" && {name} == 0) print \"\"; else printf \"%.17g\\n\", {name}"
            );
        }
        for name in arrays {
            let _ = writeln!(
                text,
                "for (@k in {name}) {{\nprintf \"%.17g\\n\", {name}[@k]\n\
                 @n = split(@k, @p, \"\\n\")\nif (@n < 1) @n = 1\nprint @n\nprint @k\n}}\nprint \"\""
            );
        }
        self.named(&(text + "print \"end\"\n}\n"))
    }

    /// Generates the program that combines the totals of the chunks and runs the original END
    /// actions. With `counts_records`, it also sets `NR`.
    pub(super) fn combine(
        &self,
        program: &Program,
        scalars: &[String],
        arrays: &[String],
        counts_records: bool,
    ) -> String {
        let first = |kind: &ItemKind| matches!(kind, ItemKind::Begin(_) | ItemKind::Function(_));
        let mut text =
            "{\nif (@s == 0) @s = 1\nelse if (@s == 1) { @l += $0; @s = 2 }\n".to_owned();
        let mut state = 2;
        for name in scalars {
            let next = state + 1;
            let _ = writeln!(
                text,
                "else if (@s == {state}) {{ if ($0 != \"\") {name} += $0; @s = {next} }}"
            );
            state = next;
        }
        for name in arrays {
            let (lines, key, next) = (state + 1, state + 2, state + 3);
            let _ = write!(
                text,
                "else if (@s == {state}) {{ if ($0 == \"\") @s = {next}; \
                 else {{ @v = $0 + 0; @s = {lines} }} }}\n\
                 else if (@s == {lines}) {{ @n = $0 + 0; @i = 0; @s = {key} }}\n\
                 else if (@s == {key}) {{\n\
                 if (@i == 0) @k = $0 \"\"; else @k = @k \"\\n\" $0\n\
                 @i++\n\
                 if (@i == @n) {{ {name}[@k] += @v; @s = {state} }}\n}}\n"
            );
            state = next;
        }
        text.push_str("else @s = 0\n}\n");
        if counts_records {
            text.push_str("END { NR = @l + 0 }\n");
        }
        let end = Self::texts(program, |kind| matches!(kind, ItemKind::End(_)));
        format!("{}{}{end}", Self::texts(program, first), self.named(&text))
    }
}
