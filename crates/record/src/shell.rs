//! Quoting of words for a shell.

/// Quotes `text`, if necessary, so that a shell passes it to a command as one unchanged word.
pub fn quote(text: &str) -> String {
    // `=` after a name would turn the word into an assignment; after an option, it is harmless.
    let special = if text.starts_with('-') { "-_./,:+@%^=" } else { "-_./,:+@%^" };
    let plain = |c: char| c.is_ascii_alphanumeric() || special.contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    quote_always(text)
}

/// Quotes `text`, the source of a program such as a pipeline, as one word. Uses double quotes if
/// `text` contains single quotes and no character that is special within double quotes, because the
/// result is easier to read. Uses single quotes otherwise.
pub fn quote_text(text: &str) -> String {
    let is_special = |c: char| matches!(c, '"' | '$' | '`' | '\\' | '!');
    if text.contains('\'') && !text.contains(is_special) {
        return format!("\"{text}\"");
    }
    quote_always(text)
}

/// Puts `text` in single quotes, even if a shell needs none, so that it is one unchanged word. Each
/// single quote in `text` becomes `'\''`.
pub fn quote_always(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_quoted_as_a_person_would() {
        assert_eq!(quote_text("sort f | uniq"), "'sort f | uniq'");
        assert_eq!(quote_text("sed 's/1/x/' f"), "\"sed 's/1/x/' f\"");
        assert_eq!(quote_text("awk '{ print $1 }' f"), r"'awk '\''{ print $1 }'\'' f'");
        assert_eq!(quote_text(r#"grep "a'b" f"#), r#"'grep "a'\''b" f'"#);
    }
}
