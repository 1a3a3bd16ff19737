//! Names of signals.

/// Returns the name, without `SIG`, of the signal with the given number on x86, Arm and RISC-V.
/// Returns `None` for numbers other than 1 to 31, such as those of real-time signals.
pub fn name(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn numbers_have_the_names_of_the_kernel() {
        assert_eq!(name(13), Some("PIPE"));
        assert_eq!(name(15), Some("TERM"));
        assert_eq!(name(31), Some("SYS"));
        assert_eq!([name(0), name(-1), name(34)], [None; 3]);
    }
}
