//! A histogram of durations over powers of two, in constant memory.

/// Number of classes: durations up to 2^39 ns, about nine minutes, have classes of their own.
const CLASSES: usize = 40;

/// Counts of durations. Class `n` has those from 2^n to 2^(n+1) − 1 ns; the last one has all longer
/// ones, too.
///
/// It takes memory once a duration is added: most threads of a large program hardly ever run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(Option<Box<Counts>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Counts {
    by_class: [u32; CLASSES],
    sum_nanos: u64,
}

impl Histogram {
    /// Adds a duration in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        let class = nanos.checked_ilog2().map_or(0, |log| usize::try_from(log).unwrap_or(0));
        let counts = self.counts_mut();
        let count = &mut counts.by_class[class.min(CLASSES - 1)];
        *count = count.saturating_add(1);
        counts.sum_nanos = counts.sum_nanos.saturating_add(nanos);
    }

    /// Adds `ratio` times the counts of another histogram.
    pub fn add_times(&mut self, other: &Self, ratio: f64) {
        let Some(other) = &other.0 else { return };
        let counts = self.counts_mut();
        for (count, more) in counts.by_class.iter_mut().zip(other.by_class) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let more = (f64::from(more) * ratio).round() as u32;
            *count = count.saturating_add(more);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let more = (other.sum_nanos as f64 * ratio) as u64;
        counts.sum_nanos = counts.sum_nanos.saturating_add(more);
    }

    fn counts_mut(&mut self) -> &mut Counts {
        self.0.get_or_insert_with(|| Box::new(Counts { by_class: [0; CLASSES], sum_nanos: 0 }))
    }

    /// Returns the durations that were added since `earlier`, a previous state of this histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut increase = self.clone();
        if let (Some(counts), Some(earlier)) = (&mut increase.0, &earlier.0) {
            for (count, before) in counts.by_class.iter_mut().zip(earlier.by_class) {
                *count = count.saturating_sub(before);
            }
            counts.sum_nanos = counts.sum_nanos.saturating_sub(earlier.sum_nanos);
        }
        increase
    }

    fn by_class(&self) -> &[u32] {
        self.0.as_ref().map_or(&[], |counts| &counts.by_class)
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.by_class().iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the mean in nanoseconds, or 0 without durations.
    pub fn mean_nanos(&self) -> f64 {
        match (&self.0, self.count()) {
            (Some(counts), 1..) => counts.sum_nanos as f64 / self.count() as f64,
            _ => 0.0,
        }
    }

    /// Returns the median in nanoseconds, exact to a factor of 1.5, or 0 without durations.
    pub fn median_nanos(&self) -> u64 {
        let half = self.count().div_ceil(2);
        let mut sum = 0;
        for (class, &count) in self.by_class().iter().enumerate() {
            sum += u64::from(count);
            if sum >= half && sum > 0 {
                return 3 << class >> 1; // the middle of the class
            }
        }
        0
    }

    /// Returns the share of durations below `nanos`, rounded up to a power of two; 0 without
    /// durations.
    pub fn share_below(&self, nanos: u64) -> f64 {
        let classes = nanos.checked_ilog2().map_or(0, |log| usize::try_from(log).unwrap_or(0) + 1);
        let below: u64 = self.by_class().iter().take(classes).map(|&count| u64::from(count)).sum();
        match self.count() {
            0 => 0.0,
            count => below as f64 / count as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_by_powers_of_two() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.count(), histogram.median_nanos()), (0, 0));
        for nanos in [0, 1, 1000, 1100, 1_000_000, u64::MAX / 2] {
            histogram.add(nanos);
        }
        assert_eq!(histogram.count(), 6);
        assert_eq!(histogram.median_nanos(), 768, "the middle of 512 to 1023");
        assert!((histogram.share_below(2000) - 4.0 / 6.0).abs() < 1e-9);
        assert!((histogram.share_below(1) - 2.0 / 6.0).abs() < 1e-9);
        let mut two = Histogram::default();
        two.add(100);
        two.add(300);
        assert!((two.mean_nanos() - 200.0).abs() < 1e-9);
    }
}
