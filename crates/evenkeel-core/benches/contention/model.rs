//! A closed queueing model of cores that share one cluster, and its fit to what was measured.
//!
//! Each core is a customer that works for itself and then needs one service at a station that serves one at a time: the
//! lock, or the most wanted cache line. Alone, a cycle takes T₁. Among others it takes longer by the time for lines that
//! another core has written meanwhile, and by the wait at the station (exact mean value analysis, Reiser and Lavenberg
//! 1980, which assumes times that vary like exponential ones: constant ones wait half as long).

/// The cores that are predicted.
pub(crate) const CORES: [usize; 3] = [2, 16, 64];

/// The times, in nanoseconds, that a cycle of a pick has among others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Model {
    /// In series: while one core is at it no other one can be.
    pub(crate) serial: f64,
    /// For lines that another core has written, when there are two cores.
    pub(crate) transfer: f64,
}

/// One measured cycle, alone and together, in nanoseconds.
pub(crate) struct Point {
    pub(crate) threads: usize,
    pub(crate) alone: f64,
    pub(crate) together: f64,
}

/// What a core does for one connection, beside the pick.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) private_nanos: f64,
}

impl Load {
    /// Connect, exchange and close: the processor time of the `connect` load in `docs/performance.md`.
    pub(crate) const CONNECTION_PER_REQUEST: Self = Self {
        name: "a connection for each request",
        private_nanos: 50e3,
    };

    /// The same and 1,000 exchanges of 8 µs.
    pub(crate) const LONG_CONNECTIONS: Self = Self {
        name: "1,000 requests on each connection",
        private_nanos: 50e3 + 1000.0 * 8e3,
    };
}

/// What is to be expected of so many cores.
pub(crate) struct Prediction {
    /// Connections a second, all cores together.
    pub(crate) rate: f64,
    /// The part of all processor time that would not be spent if nothing were shared.
    pub(crate) lost: f64,
}

/// How much longer a line takes from core to core than between the two cores of the measurement. Assumed, not measured: farther
/// over the mesh with 16 cores; with 64 half of them in another socket.
pub(crate) const fn distance(cores: usize) -> f64 {
    match cores {
        0..=2 => 1.0,
        3..=16 => 1.5,
        _ => 3.0,
    }
}

impl Model {
    /// The least squares of the relative residuals, by a pattern search: a step in the best of eight directions while there is
    /// one that helps, then half the step.
    pub(crate) fn fit(points: &[Point]) -> Self {
        let mut best = Self {
            serial: 0.0,
            transfer: 0.0,
        };
        let mut step = 256.0;
        while step > 0.1 {
            match best.better_neighbour(step, points) {
                Some(better) => best = better,
                None => step /= 2.0,
            }
        }
        best
    }

    fn better_neighbour(self, step: f64, points: &[Point]) -> Option<Self> {
        let moves = [-step, 0.0, step];
        let neighbours = moves.iter().flat_map(|serial| {
            moves.iter().map(move |transfer| Self {
                serial: (self.serial + serial).max(0.0),
                transfer: (self.transfer + transfer).max(0.0),
            })
        });
        let best = neighbours.min_by(|a, b| a.error(points).total_cmp(&b.error(points)))?;
        (best.error(points) < self.error(points)).then_some(best)
    }

    fn error(self, points: &[Point]) -> f64 {
        points
            .iter()
            .map(|point| self.residual(point).powi(2))
            .sum()
    }

    /// By which part of the measured cycle the model's is longer.
    pub(crate) fn residual(self, point: &Point) -> f64 {
        self.cycle(point.threads, point.alone) / point.together - 1.0
    }

    /// From one pick to the next, on each of so many cores, where it takes `alone` on one.
    fn cycle(self, cores: usize, alone: f64) -> f64 {
        let private = (alone + self.transfer * likelihood(cores) - self.serial).max(0.0);
        let mut queue = 0.0;
        let mut cycle = private + self.serial;
        for customers in 1..=cores {
            let response = self.serial * (1.0 + queue);
            cycle = private + response;
            queue = customers as f64 * response / cycle;
        }
        cycle
    }

    /// `distance` is what lines take over what they took in the measurement.
    pub(crate) fn predict(self, cores: usize, distance: f64, load: &Load) -> Prediction {
        let far = Self {
            serial: self.serial * distance,
            transfer: self.transfer * distance,
        };
        let cycle = far.cycle(cores, load.private_nanos);
        Prediction {
            rate: cores as f64 * 1e9 / cycle,
            lost: 1.0 - load.private_nanos / cycle,
        }
    }

    /// Picks a second beyond which waiting only grows, whatever the cores.
    pub(crate) fn ceiling(self, distance: f64) -> f64 {
        1e9 / (self.serial * distance)
    }
}

/// How likely another core has written a line since this one did, over that with two cores.
fn likelihood(cores: usize) -> f64 {
    2.0 * (cores as f64 - 1.0) / cores as f64
}
