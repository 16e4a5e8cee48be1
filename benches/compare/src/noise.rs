//! Statistics, and whether the machine was quiet enough to conclude anything.

use crate::meter::Sample;
use serde::{Deserialize, Serialize};

/// The middle of a list; the mean of the two middle ones when their number is even. NaN when there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// By linear interpolation.
fn quantile(values: impl IntoIterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = q * last as f64;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// The middle half of the values, against their median.
fn spread(values: &[f64]) -> f64 {
    let at = |q| quantile(values.iter().copied(), q);
    (at(0.75) - at(0.25)) / at(0.5)
}

/// Per-round ratios of one side to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Rounds that either side failed in are left out.
    pub fn of(side: &[Option<f64>], reference: &[Option<f64>]) -> Option<Self> {
        let ratios = side.iter().zip(reference).filter_map(|(a, b)| Some((*a)? / (*b)?));
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        (!ratios.is_empty()).then(|| Self {
            median: median(ratios.iter().copied()),
            low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            high: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The median of each figure by itself; but CPU time is divided into user and system by all rounds together, as the
/// kernel samples it and one round has few samples.
pub fn typical(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure));
    let sum = |figure: fn(&Sample) -> f64| samples.iter().map(figure).sum::<f64>();
    let user_share = (sum(|s| s.user_ns * s.ops) / sum(|s| s.cpu_ns * s.ops).max(1.0)).clamp(0.0, 1.0);
    Sample {
        ops: of(|s| s.ops),
        seconds: of(|s| s.seconds),
        ops_per_second: of(|s| s.ops_per_second),
        cpu_ns: of(|s| s.cpu_ns),
        user_ns: of(|s| s.cpu_ns) * user_share,
        system_ns: of(|s| s.cpu_ns) * (1.0 - user_share),
        context_switches: of(|s| s.context_switches),
        p50_us: of(|s| s.p50_us),
        p99_us: of(|s| s.p99_us),
        p999_us: of(|s| s.p999_us),
        max_us: of(|s| s.max_us),
        peak_rss_kib: of(|s| s.peak_rss_kib),
        peak_grown_bytes: of(|s| s.peak_grown_bytes),
        peak_heap_bytes: of(|s| s.peak_heap_bytes),
        client_busy: of(|s| s.client_busy),
        server_busy: of(|s| s.server_busy),
        others: of(|s| s.others),
        steal: of(|s| s.steal),
        allocations: of(|s| s.allocations),
        allocated_bytes: of(|s| s.allocated_bytes),
        heap_bytes_per_connection: of(|s| s.heap_bytes_per_connection),
        rss_bytes_per_connection: of(|s| s.rss_bytes_per_connection),
    }
}

/// What held a run back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    Client,
    Server,
    Both,
    /// Neither core was busy: round trips and wake-ups, or the rate that was asked for.
    Waiting,
    /// Other processes had the cores.
    Unclear,
}

const BUSY: f64 = 0.9;

impl Bottleneck {
    pub fn of(sample: &Sample) -> Self {
        if sample.others > OTHERS_MAX {
            return Self::Unclear;
        }
        match (sample.client_busy >= BUSY, sample.server_busy >= BUSY) {
            (true, false) => Self::Client,
            (false, true) => Self::Server,
            (true, true) => Self::Both,
            (false, false) => Self::Waiting,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Both => "both",
            Self::Waiting => "waiting",
            Self::Unclear => "unclear",
        }
    }
}

/// How steady the reference was, and what the hypervisor took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Of the reference's CPU time per operation, round against round.
    pub spread: f64,
    /// Mean shares of both cores over all runs: the hypervisor's, other processes'.
    pub steal: f64,
    pub others: f64,
}

const SPREAD_MAX: f64 = 0.2;
const STEAL_MAX: f64 = 0.02;
const OTHERS_MAX: f64 = 0.1;

impl Noise {
    pub fn of<'a>(reference: &[Sample], all: impl Iterator<Item = &'a Sample>) -> Self {
        let spread = spread(&reference.iter().map(|sample| sample.cpu_ns).collect::<Vec<_>>());
        let sum =
            |(n, steal, others), sample: &Sample| (n + 1.0, steal + sample.steal, others + sample.others);
        let (n, steal, others) = all.fold((0.0_f64, 0.0, 0.0), sum);
        let spread = if spread.is_finite() { spread } else { 0.0 };
        Self { spread, steal: steal / n.max(1.0), others: others / n.max(1.0) }
    }

    /// Why nothing should be concluded.
    pub fn warning(&self) -> Option<String> {
        let percent = |share: f64| share * 100.0;
        let reasons: Vec<String> = [
            (self.spread > SPREAD_MAX).then(|| {
                format!("the reference's own rounds differ by {:.0} % (middle half)", percent(self.spread))
            }),
            (self.steal > STEAL_MAX)
                .then(|| format!("the hypervisor took {:.1} % of the two cores", percent(self.steal))),
            (self.others > OTHERS_MAX)
                .then(|| format!("other processes used {:.0} % of the two cores", percent(self.others))),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!reasons.is_empty()).then(|| {
            format!("too noisy to conclude from differences of less than a half: {}", reasons.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
        assert_eq!(quantile([0.0, 10.0], 0.25), 2.5);
        assert_eq!(spread(&[90.0, 100.0, 100.0, 110.0, 100.0]), 0.0);
    }

    #[test]
    fn ratios_pair_rounds_and_skip_failed_ones() {
        let ratio = Ratio::of(&[Some(2.0), None, Some(9.0)], &[Some(1.0), Some(1.0), Some(3.0)]).unwrap();
        assert_eq!(ratio, Ratio { median: 2.5, low: 2.0, high: 3.0 });
        assert_eq!(Ratio::of(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn noise_is_told() {
        let sample = |cpu_ns, steal| Sample { cpu_ns, steal, ..Sample::default() };
        let quiet = [sample(100.0, 0.0), sample(101.0, 0.0), sample(102.0, 0.0)];
        assert_eq!(Noise::of(&quiet, quiet.iter()).warning(), None);
        let unsteady = [sample(100.0, 0.0), sample(200.0, 0.0), sample(300.0, 0.0)];
        assert!(Noise::of(&unsteady, unsteady.iter()).warning().unwrap().contains("50 %"));
        let robbed = [sample(100.0, 0.1); 3];
        assert!(Noise::of(&robbed, robbed.iter()).warning().unwrap().contains("10.0 %"));
    }

    #[test]
    fn a_busy_core_is_the_bottleneck() {
        let of = |client, server| {
            Bottleneck::of(&Sample { client_busy: client, server_busy: server, ..Sample::default() })
        };
        assert_eq!(of(0.99, 0.5), Bottleneck::Client);
        assert_eq!(of(0.5, 0.99), Bottleneck::Server);
        assert_eq!(of(0.95, 0.95), Bottleneck::Both);
        assert_eq!(of(0.5, 0.5), Bottleneck::Waiting);
    }
}
