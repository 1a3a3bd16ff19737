//! Random draws by Zipf's law: the probability of the n-th most common item is proportional to 1 /
//! (n + [`RANK_OFFSET`]).

use fastrand::Rng;

/// Scale of the weights, which are integers, so that floating-point arithmetic cannot change the
/// result between machines.
const SCALE: u64 = 1 << 32;
/// Number added to each rank, which flattens the first ranks, as in natural text (Mandelbrot's
/// correction).
const RANK_OFFSET: u64 = 2;

/// A distribution of ranks from 0, as cumulative weights.
#[derive(Debug)]
pub struct Zipf {
    sums: Vec<u64>,
    total: u64,
}

impl Zipf {
    /// Creates a distribution over the ranks from 0 to `count - 1`; `count` must be at least 1.
    pub fn new(count: usize) -> Self {
        let mut total = 0;
        let weights = (1..=count as u64).map(|rank| SCALE / (rank + RANK_OFFSET));
        let sums = weights
            .map(|weight| {
                total += weight;
                total
            })
            .collect();
        Self { sums, total }
    }

    /// Draws a rank, from 0.
    ///
    /// # Panics
    /// Panics if the distribution has no ranks.
    pub fn draw(&self, random: &mut Rng) -> usize {
        let point = random.u64(0..self.total);
        self.sums.partition_point(|&sum| sum <= point)
    }
}

/// Items in descending order of their probability.
#[derive(Debug)]
pub struct Skewed<T> {
    items: Vec<T>,
    zipf: Zipf,
}

impl<T> Skewed<T> {
    /// Creates a distribution of `items`, which must be in descending order of frequency and not
    /// empty.
    pub fn new(items: Vec<T>) -> Self {
        let zipf = Zipf::new(items.len());
        Self { items, zipf }
    }

    /// Draws an item at random.
    ///
    /// # Panics
    /// Panics if there are no items.
    pub fn draw(&self, random: &mut Rng) -> &T {
        &self.items[self.zipf.draw(random)]
    }
}
