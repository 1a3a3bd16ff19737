//! Drawing by Zipf's law: the n-th most common of things is drawn 1/n times as often as the first.

use fastrand::Rng;

/// Weights are whole numbers, so that no machine's floating point changes what is drawn.
const SCALE: u64 = 1 << 32;
/// Flattens the very first ranks, as in natural text (Mandelbrot's correction).
const SHIFT: u64 = 2;

/// Ranks from 0 with their weights, added up.
#[derive(Debug)]
pub struct Zipf {
    sums: Vec<u64>,
    total: u64,
}

impl Zipf {
    /// Over `count` ranks.
    pub fn new(count: usize) -> Self {
        let mut total = 0;
        let weights = (1..=count as u64).map(|rank| SCALE / (rank + SHIFT));
        let sums = weights
            .map(|weight| {
                total += weight;
                total
            })
            .collect();
        Self { sums, total }
    }

    /// A rank, below the count.
    pub fn draw(&self, random: &mut Rng) -> usize {
        let point = random.u64(0..self.total);
        self.sums.partition_point(|&sum| sum <= point)
    }
}

/// Things of which the first are drawn most often.
#[derive(Debug)]
pub struct Skewed<T> {
    things: Vec<T>,
    zipf: Zipf,
}

impl<T> Skewed<T> {
    /// The things, the most common one first.
    pub fn new(things: Vec<T>) -> Self {
        let zipf = Zipf::new(things.len());
        Self { things, zipf }
    }

    /// One of them.
    pub fn draw(&self, random: &mut Rng) -> &T {
        &self.things[self.zipf.draw(random)]
    }
}
