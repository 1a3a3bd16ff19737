//! Summarises the disturbances of a run.

use contend_record::lab::{Case, RunRecord};
use contend_record::warning::WarningId;

use super::super::text::printable;
use super::conclusion::is_disturbance;

/// Returns whether the report summarises or omits warnings of the kind `id`, instead of showing
/// each one.
pub fn is_counted(id: WarningId) -> bool {
    is_disturbance(id) || matches!(id, WarningId::InvoluntarySwitches | WarningId::FewSamples)
}

/// How many samples of a case were disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbed {
    Some,
    All,
}

/// Mark of the figures of disturbed cases.
pub const MARK: char = '!';

impl Disturbed {
    /// Returns how many of `samples` samples were disturbed, if `disturbed` of them were; `None` if none
    /// were.
    pub fn of(disturbed: usize, samples: usize) -> Option<Self> {
        match disturbed {
            0 => None,
            _ if disturbed >= samples => Some(Self::All),
            _ => Some(Self::Some),
        }
    }

    /// Returns how many samples of a case were disturbed; `None` if none were.
    pub fn of_case(case: &Case) -> Option<Self> {
        Self::of(case.disturbed.len(), case.samples.len())
    }

    /// Explains the mark of the given cases; empty without cases.
    pub fn legend(found: &[Self]) -> &'static str {
        match (found.contains(&Self::Some), found.contains(&Self::All)) {
            (true, true) => "!: some or all samples were disturbed by other load.",
            (false, true) => "!: all samples were disturbed by other load.",
            (true, false) => "!: some samples were disturbed by other load.",
            (false, false) => "",
        }
    }
}

/// Returns the number of measured cases that were disturbed, and the number of all measured cases.
fn counts(record: &RunRecord) -> (usize, usize) {
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty());
    let is_disturbed = |case: &&Case| {
        let preempted = |id| id == WarningId::InvoluntarySwitches;
        !case.disturbed.is_empty() || case.warnings.iter().any(|warning| preempted(warning.id))
    };
    (measured.clone().filter(is_disturbed).count(), measured.count())
}

/// Returns whether more than half of the measured cases were disturbed.
pub fn is_prevalent(record: &RunRecord) -> bool {
    let (disturbed, all) = counts(record);
    2 * disturbed > all
}

/// Returns how many cases were disturbed and why, in words, with the advice to repeat the run. If
/// no case was disturbed, returns only what affected the run as a whole. Returns `None` if no case
/// was measured, or if nothing disturbed the run.
pub fn sentence(record: &RunRecord) -> Option<String> {
    let (disturbed, all) = counts(record);
    let causes: Vec<String> = record
        .warnings
        .iter()
        .filter(|warning| is_disturbance(warning.id))
        .map(|warning| printable(&warning.message))
        .collect();
    if all == 0 || (disturbed == 0 && causes.is_empty()) {
        return None;
    }
    if disturbed == 0 {
        return Some(format!("{}; no sample was marked as disturbed", causes.join("; ")));
    }
    let cases = if all == 1 { "case" } else { "cases" };
    let were = if disturbed == 1 { "was" } else { "were" };
    let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join("; ")) };
    Some(format!(
        "{disturbed} of {all} {cases} {were} disturbed (other load above 5 %, or a moved vCPU){causes}. Repeat on \
         a quieter machine."
    ))
}

#[cfg(test)]
mod tests {
    use contend_record::Warning;
    use contend_record::lab::View;
    use contend_record::parameters::Parameters;

    use super::super::sample::{case, record};
    use super::super::{Detail, figures};
    use super::*;

    #[test]
    fn disturbances_of_all_cases_are_one_sentence() {
        let one = || case(("units/create", View::Creation), Parameters::new(), 1.0, &[]);
        let mut calm = record(None, vec![one(), one(), one()]);
        assert_eq!((sentence(&calm), is_prevalent(&calm)), (None, false));
        calm.cases[1].disturbed = vec![0];
        assert!(!is_prevalent(&calm), "most cases are undisturbed");
        let mut busy = calm.clone();
        busy.cases[2].disturbed = vec![0, 1];
        assert!(is_prevalent(&busy));
        calm.warnings.push(Warning::new(WarningId::OtherLoad, "others used 64 % of the CPUs"));
        let text = sentence(&calm).expect("a case was disturbed");
        assert!(text.starts_with("1 of 3 cases was disturbed ("), "{text}");
        assert!(text.contains("vCPU): others used 64 % of the CPUs. Repeat"), "{text}");
        calm.warnings.push(Warning::new(WarningId::Frequency, "the processor was hot"));
        assert!(!sentence(&calm).expect("still disturbed").contains("hot"));
        let mut stolen = calm.clone();
        stolen.cases[1].disturbed.clear();
        stolen.warnings = vec![Warning::new(WarningId::Steal, "the hypervisor stole 0.06 s")];
        let text = sentence(&stolen).expect("time was stolen");
        assert_eq!(text, "the hypervisor stole 0.06 s; no sample was marked as disturbed");
        calm.cases.clear();
        assert_eq!(sentence(&calm), None, "nothing was measured");
    }

    #[test]
    fn a_run_by_name_has_one_warning_for_all_cases() {
        let disturbed = |n: u64| {
            let parameters = Parameters::new().with("n", n);
            let mut case = case(("units/create", View::Creation), parameters, 1.0, &[]);
            case.disturbed = vec![0];
            case.warnings.push(Warning::new(WarningId::OtherLoad, "1 of 2 samples"));
            case.warnings.push(Warning::new(WarningId::InvoluntarySwitches, "preempted"));
            case
        };
        let mut record = record(None, vec![disturbed(1), disturbed(10)]);
        record.warnings.push(Warning::new(WarningId::OtherLoad, "others used 64 % of the CPUs"));
        let text = figures(&record, Detail::Full, 200);
        assert_eq!(text.matches("warning").count(), 1, "{text}");
        assert!(text.contains("2 of 2 cases were disturbed"), "{text}");
    }
}
