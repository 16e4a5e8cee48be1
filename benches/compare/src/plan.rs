//! What is measured: scenarios, from the command line or by default.

use crate::workload::{Distribution, Workload};
use serde::{Deserialize, Serialize};

/// One load, under which all sides are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub workload: Workload,
    pub callers: usize,
    pub connections: u32,
    pub keys: usize,
    pub distribution: Distribution,
    /// Operations per second; a closed loop without.
    pub rate: Option<f64>,
}

/// A [`Scenario`] in words, for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    pub workload: String,
    pub help: String,
    pub callers: usize,
    pub connections: u32,
    pub keys: usize,
    pub distribution: String,
    pub rate: Option<f64>,
    /// Callers times the value's length, for values that are large.
    #[serde(default)]
    pub bytes_in_flight: Option<f64>,
}

/// A value from here on is large: what the client holds of it counts more than what the client is.
const LARGE: usize = 16 << 10;

impl Scenario {
    fn new(workload: Workload, callers: usize) -> Self {
        Self {
            workload,
            callers,
            connections: 1,
            keys: 1000,
            distribution: Distribution::Uniform,
            rate: None,
        }
    }

    pub fn name(&self) -> String {
        let workload = self.workload.name();
        if self.workload == Workload::Idle {
            return format!("{workload}, {} connections", self.connections);
        }
        let mut name = format!("{workload}, W={}", self.callers);
        if self.connections != 1 {
            name += &format!(", {} connections", self.connections);
        }
        if self.distribution == Distribution::Zipf {
            name += ", zipf";
        }
        if let Some(rate) = self.rate {
            name += &format!(", {rate}/s");
        }
        name
    }

    pub fn describe(&self) -> Description {
        Description {
            name: self.name(),
            workload: self.workload.name(),
            help: self.workload.help(),
            callers: self.callers,
            connections: self.connections,
            keys: self.keys,
            distribution: format!("{:?}", self.distribution).to_lowercase(),
            rate: self.rate,
            bytes_in_flight: (self.workload.value_bytes() >= LARGE)
                .then(|| (self.workload.value_bytes() * self.callers) as f64),
        }
    }

    /// Options of `one` that repeat it.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec![
            "--workload".to_owned(),
            self.workload.name(),
            "--w".to_owned(),
            self.callers.to_string(),
            "--connections".to_owned(),
            self.connections.to_string(),
            "--keys".to_owned(),
            self.keys.to_string(),
            "--distribution".to_owned(),
            format!("{:?}", self.distribution).to_lowercase(),
        ];
        if let Some(rate) = self.rate {
            words.extend(["--rate".to_owned(), rate.to_string()]);
        }
        words
    }

    /// So many operations that a run of them takes some tens of milliseconds.
    pub fn short_run(&self) -> u64 {
        if let Some(rate) = self.rate {
            return (rate / 10.0).ceil() as u64;
        }
        let wave = self.callers as u64 * self.workload.batch();
        let waves = if self.workload.value_bytes() >= 1 << 20 { 30 } else { 300 };
        (wave * waves).min(200_000).max(wave)
    }
}

/// What the command line asks for; empty means the default.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    pub workloads: Vec<Workload>,
    pub callers: Vec<usize>,
    pub connections: Vec<u32>,
    pub rates: Vec<f64>,
    pub keys: Option<usize>,
    pub distribution: Option<Distribution>,
    pub is_full: bool,
}

const IDLE_CONNECTIONS: u32 = 1000;
/// Those who ask for something while the others do nothing.
const IDLE_CALLERS: usize = 32;

/// Any wish for workloads, callers, connections or rates gives the product of these; else it is a plan of ours.
pub fn scenarios(wishes: &Wishes) -> Vec<Scenario> {
    let is_product = !(wishes.workloads.is_empty()
        && wishes.callers.is_empty()
        && wishes.connections.is_empty()
        && wishes.rates.is_empty());
    let mut plan = match (is_product, wishes.is_full) {
        (true, _) => product(wishes),
        (false, true) => full(),
        (false, false) => brief(),
    };
    for scenario in &mut plan {
        scenario.keys = wishes.keys.unwrap_or(scenario.keys);
        scenario.distribution = wishes.distribution.unwrap_or(scenario.distribution);
    }
    plan
}

fn or<T: Clone>(wished: &[T], default: &[T]) -> Vec<T> {
    if wished.is_empty() { default.to_vec() } else { wished.to_vec() }
}

fn product(wishes: &Wishes) -> Vec<Scenario> {
    let rates: Vec<Option<f64>> = or(&wishes.rates.iter().copied().map(Some).collect::<Vec<_>>(), &[None]);
    let mut plan = Vec::new();
    for workload in or(&wishes.workloads, &[Workload::Get]) {
        if workload == Workload::Idle {
            plan.extend(or(&wishes.connections, &[IDLE_CONNECTIONS]).into_iter().map(idle));
            continue;
        }
        for &callers in &or(&wishes.callers, &[1, 32, 128, 512]) {
            for &connections in &or(&wishes.connections, &[1]) {
                for &rate in &rates {
                    plan.push(Scenario { connections, rate, ..Scenario::new(workload, callers) });
                }
            }
        }
    }
    plan
}

fn idle(connections: u32) -> Scenario {
    Scenario { connections, ..Scenario::new(Workload::Idle, IDLE_CALLERS) }
}

/// Fits into ten minutes with all peers.
fn brief() -> Vec<Scenario> {
    use Workload::*;
    let mut plan: Vec<Scenario> = [1, 8, 32, 128, 512].map(|callers| Scenario::new(Get, callers)).into();
    let others = [(Set, 128), (Incr, 128), (Mixed, 128), (Mget, 32), (Hgetall, 32), (Pipeline, 8)];
    let large = [(Get1k, 128), (Get16k, 32), (Get1m, 8), (Set1m, 8)];
    plan.extend(others.iter().chain(&large).map(|&(workload, callers)| Scenario::new(workload, callers)));
    plan.push(Scenario { connections: 12, ..Scenario::new(Get, 512) });
    plan.push(Scenario { rate: Some(20_000.0), ..Scenario::new(Get, 128) });
    plan.push(idle(IDLE_CONNECTIONS));
    plan
}

fn full() -> Vec<Scenario> {
    use Workload::*;
    let mut plan = Vec::new();
    for workload in [Get, Set, Incr, Mixed, Mget, Hgetall, Get1k] {
        plan.extend([1, 8, 32, 128, 512].map(|callers| Scenario::new(workload, callers)));
    }
    // More in flight would measure the memory bus.
    for workload in [Pipeline, Get16k, Get16kOwned, Get1m, Get1mOwned, Set1m] {
        plan.extend([1, 8, 32].map(|callers| Scenario::new(workload, callers)));
    }
    for connections in [3, 12] {
        plan.extend([32, 128, 512].map(|callers| Scenario { connections, ..Scenario::new(Get, callers) }));
    }
    let zipf = |workload| Scenario {
        distribution: Distribution::Zipf,
        keys: 10_000,
        ..Scenario::new(workload, 128)
    };
    plan.extend([Get, Mixed].map(zipf));
    plan.extend(
        [5_000.0, 20_000.0, 100_000.0].map(|rate| Scenario { rate: Some(rate), ..Scenario::new(Get, 512) }),
    );
    plan.push(idle(IDLE_CONNECTIONS));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_multiplied() {
        let plan = scenarios(&Wishes {
            workloads: vec![Workload::Get, Workload::Set],
            callers: vec![1, 32],
            connections: vec![1, 3, 12],
            ..Wishes::default()
        });
        assert_eq!(plan.len(), 12);
        assert_eq!(plan[1].name(), "get, W=1, 3 connections");
    }

    #[test]
    fn every_workload_is_in_the_full_plan() {
        use clap::ValueEnum;
        let plan = scenarios(&Wishes { is_full: true, ..Wishes::default() });
        for workload in Workload::value_variants() {
            assert!(plan.iter().any(|scenario| scenario.workload == *workload), "{workload:?}");
        }
    }

    #[test]
    fn names_tell_scenarios_apart() {
        let plan = scenarios(&Wishes { is_full: true, ..Wishes::default() });
        let names: std::collections::HashSet<String> = plan.iter().map(Scenario::name).collect();
        assert_eq!(names.len(), plan.len());
    }
}
