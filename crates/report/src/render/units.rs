//! Formatting of quantities, usually in at most six characters.

/// Formats a time that is given in seconds: `4.08s`, `61.2s`, `310s`, `9.3ms`; `0` for 0 and less.
pub fn seconds(value: f64) -> String {
    if value <= 0.0 {
        "0".to_owned()
    } else if value < 0.01 {
        format!("{:.1}ms", value * 1e3)
    } else if value < 0.9995 {
        format!("{:.0}ms", value * 1e3)
    } else if value < 9.995 {
        format!("{value:.2}s")
    } else if value < 99.95 {
        format!("{value:.1}s")
    } else {
        format!("{value:.0}s")
    }
}

/// Formats a time that is given in nanoseconds, in the largest unit in which it is at least about
/// 1: `0.03ns`, `87.2ns`, `4.21µs`, `104µs`, `1.25ms`. Negative times stay in nanoseconds.
pub fn nanoseconds(value: f64) -> String {
    if value.abs() < 9.995 {
        return format!("{value:.2}ns");
    }
    scaled(value, &["ns", "µs", "ms", "s"])
}

/// Formats a size in bytes with decimal prefixes: `512B`, `77.0MB`.
pub fn bytes(value: f64) -> String {
    scaled(value, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a number of things with decimal prefixes: `512`, `77.0k`.
pub fn count(value: f64) -> String {
    scaled(value, &["", "k", "M", "G", "T"])
}

/// Formats a ratio with three decimal places below 0.1, two below 10, one below 100, and none
/// above: `0.031`, `0.98`, `1.00`, `12.3`, `310`. From 100,000, a decimal prefix follows: `2.50M`.
pub fn ratio(value: f64) -> String {
    let digits = match value.abs() {
        ..0.0995 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        ..99_999.5 => 0,
        _ => return count(value),
    };
    format!("{value:.digits$}")
}

/// Formats a number with the noun `name`, in the plural unless the number is 1: `1 sample`, `12
/// samples`, `2 processes`.
pub fn counted(number: u64, name: &str) -> String {
    let ending = match number {
        1 => "",
        _ if name.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {name}{ending}")
}

/// Formats a number of CPUs, which is not a whole number with a quota: `2`, `0.5`.
pub fn cpus(number: f64) -> String {
    let digits = usize::from((number - number.round()).abs() >= 0.05);
    format!("{number:.digits$}")
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let whole = (value - value.round()).abs() < 1e-9;
    let digits = if (unit == 0 && whole) || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{}", units[unit])
}

/// Formats `part` in percent of `whole`; empty below 0.05 %, and if `whole` is 0.
pub fn percent(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    if percent < 0.05 {
        String::new()
    } else if percent < 0.95 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short() {
        let shown = [0.0, 0.0042, 0.31, 0.9999, 4.078, 61.23, 310.0].map(seconds);
        assert_eq!(shown, ["0", "4.2ms", "310ms", "1.00s", "4.08s", "61.2s", "310s"]);
        let shown = [0.0, 512.0, 65_536.0, 77e6, 1.5e9, 999_999.0].map(bytes);
        assert_eq!(shown, ["0B", "512B", "65.5kB", "77.0MB", "1.50GB", "1.00MB"]);
        let shown = [0.031, 87.21, 4210.0, 104_000.0, 1.25e6, 2e9].map(nanoseconds);
        assert_eq!(shown, ["0.03ns", "87.2ns", "4.21µs", "104µs", "1.25ms", "2.00s"]);
        assert_eq!(count(178_208.0), "178k");
        let shown = [0.0, 0.0312, 0.98, 1.0, 9.996, 12.34, 99.96, 1234.0, 2.5e6].map(ratio);
        let expected = ["0.000", "0.031", "0.98", "1.00", "10.0", "12.3", "100", "1234", "2.50M"];
        assert_eq!(shown, expected);
        assert_eq!(percent(0.0, 1.0), "");
        assert_eq!(percent(0.004, 1.0), "0.4%");
        assert_eq!(percent(0.5, 1.0), "50%");
    }
}
