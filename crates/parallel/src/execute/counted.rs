//! Reads and writes lines with their number of occurrences, in the format of `uniq -c`.

/// Splits `line` into the number of occurrences and the text after it, which includes the separator
/// of `line`. Returns `None` if `line` has another format.
pub(super) fn read(line: &[u8]) -> Option<(u64, &[u8])> {
    let start = line.iter().position(|&byte| byte != b' ')?;
    let digits = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = line[start..].split_at(digits);
    let count = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((count, rest.strip_prefix(b" ")?))
}

/// Appends `line` to `to`, preceded by its number of occurrences.
pub(super) fn write(to: &mut Vec<u8>, count: u64, line: &[u8]) {
    to.extend_from_slice(format!("{count:7} ").as_bytes());
    to.extend_from_slice(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_line_is_read_and_written() {
        assert_eq!(read(b"     12  a b\n"), Some((12, b" a b\n".as_slice())));
        assert_eq!(read(b"12345678 a\n"), Some((12_345_678, b"a\n".as_slice())));
        assert_eq!(read(b"      1 \n"), Some((1, b"\n".as_slice())));
        assert_eq!(read(b"a\n"), None);
        let mut text = Vec::new();
        write(&mut text, 12, b"x\n");
        assert_eq!(text, b"     12 x\n");
    }
}
