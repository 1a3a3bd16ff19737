//! Formatting of quantities for sentences.

/// Formats a time that is given in seconds. A time that rounds to less than a second is formatted
/// in milliseconds, with one decimal below 100 ms and none above. Other times are formatted in
/// seconds, with two decimals below 10 s and one above.
pub fn time(seconds: f64) -> String {
    if seconds < 0.099_95 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 0.9995 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(0.0125), "12.5 ms");
        assert_eq!(time(0.0995), "99.5 ms");
        assert_eq!(time(0.154), "154 ms");
        assert_eq!(time(0.9999), "1.00 s");
        assert_eq!(time(1.234), "1.23 s");
        assert_eq!(time(12.34), "12.3 s");
    }
}
