//! Words as a shell reads them.

/// Quotes a word, if it needs quotes, so that the shell passes exactly this text to the command.
pub fn quote(text: &str) -> String {
    // After a name, `=` would make an assignment of the word; after an option it does not.
    let special = if text.starts_with('-') { "-_./,:+@%^=" } else { "-_./,:+@%^" };
    let plain = |c: char| c.is_ascii_alphanumeric() || special.contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    quote_always(text)
}

/// Quotes a word even if the shell needs no quotes, as scripts usually do.
pub fn quote_always(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
