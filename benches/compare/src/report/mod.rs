//! What was measured, as one value: printed as a table, written as JSON and as a page.

pub mod environment;
pub mod html;
mod reading;
mod svg;
pub mod table;

use crate::clients::{Family, Side};
use crate::counts::Counts;
use crate::meter::Sample;
use crate::noise::{Bottleneck, Noise, Ratio, typical};
use crate::plan::{Description, Scenario};
use crate::workload::Workload;
use environment::Environment;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub environment: Environment,
    pub scenarios: Vec<ScenarioReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioReport {
    pub scenario: Description,
    /// The side that ratios refer to.
    pub reference: String,
    pub sides: Vec<SideReport>,
    pub noise: Noise,
    pub warning: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideReport {
    pub side: String,
    pub family: Family,
    /// The median of each figure over the rounds; none when all failed.
    pub median: Option<Sample>,
    /// CPU time per operation (idle connections: memory) against the reference, round by round.
    pub ratio: Option<Ratio>,
    pub counts: Counts,
    pub bottleneck: Option<Bottleneck>,
    /// Why runs failed, if any did.
    pub failure: Option<String>,
    pub rounds: Vec<Option<Sample>>,
}

/// What the rounds of one side gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub side: Side,
    pub rounds: Vec<Option<Sample>>,
    pub counts: Counts,
    pub failure: Option<String>,
}

impl ScenarioReport {
    pub fn new(scenario: &Scenario, reference: Side, outcomes: Vec<Outcome>) -> Self {
        let is_idle = scenario.workload == Workload::Idle;
        let figure = |outcome: &Outcome| -> Vec<Option<f64>> {
            let of = |sample: &Sample| if is_idle { sample.rss_bytes_per_connection } else { sample.cpu_ns };
            outcome.rounds.iter().map(|round| round.as_ref().map(of)).collect()
        };
        let of_reference = outcomes.iter().find(|outcome| outcome.side == reference);
        let reference_figures = of_reference.map(figure).unwrap_or_default();
        let reference_samples: Vec<Sample> = of_reference
            .map(|outcome| outcome.rounds.iter().flatten().copied().collect())
            .unwrap_or_default();
        let noise = Noise::of(
            &reference_samples,
            outcomes.iter().flat_map(|outcome| outcome.rounds.iter().flatten()),
        );
        let sides = outcomes.iter().map(|outcome| {
            let samples: Vec<Sample> = outcome.rounds.iter().flatten().copied().collect();
            let median = (!samples.is_empty()).then(|| typical(&samples));
            SideReport {
                side: outcome.side.name(),
                family: outcome.side.family(),
                median,
                ratio: Ratio::of(&figure(outcome), &reference_figures),
                counts: outcome.counts,
                bottleneck: median.as_ref().filter(|_| !is_idle).map(Bottleneck::of),
                failure: outcome.failure.clone(),
                rounds: outcome.rounds.clone(),
            }
        });
        Self {
            scenario: scenario.describe(),
            reference: reference.name(),
            sides: sides.collect(),
            warning: noise.warning().filter(|_| !is_idle),
            noise,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.scenario.workload == Workload::Idle.name()
    }
}
