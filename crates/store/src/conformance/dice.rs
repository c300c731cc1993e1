//! [`Dice`]: numbers that a seed decides, the same on every machine (splitmix64).

#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `below`, without it; 0 when there is nothing below.
    pub fn below(&mut self, below: usize) -> usize {
        if below == 0 { 0 } else { (self.roll() % below as u64) as usize }
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// Lets other tasks go first, now and then.
    pub async fn dawdle(&mut self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

/// How many rounds of random events to play: the usual number, times `EVERBELL_TEST_ROUNDS`.
pub fn rounds(usual: u64) -> u64 {
    usual * std::env::var("EVERBELL_TEST_ROUNDS").map_or(1, |times| times.parse().expect("a number of rounds"))
}
