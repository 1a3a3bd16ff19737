//! Words as a shell reads them.

/// Writes a word so that the shell gives just this text to the command.
pub fn quote(text: &str) -> String {
    // Behind a name `=` would make an assignment of it, behind an option it does not.
    let special = if text.starts_with('-') { "-_./,:+@%^=" } else { "-_./,:+@%^" };
    let plain = |c: char| c.is_ascii_alphanumeric() || special.contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    quote_always(text)
}

/// The same with quotes even where the shell needs none, as scripts are usually written.
pub fn quote_always(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
