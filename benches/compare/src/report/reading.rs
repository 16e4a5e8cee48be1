//! The figures in sentences, for a reader who knows neither io_uring nor Redis. Only what the rounds bear out: ratios of
//! medians, with the noise said first.

use super::{Report, ScenarioReport, SideReport};
use crate::clients::Family;
use crate::noise::median;
use crate::report::svg::number;

/// Less than this is called no difference.
const DIFFERENCE_MIN: f64 = 0.1;

/// Sentences, in the order of what matters.
pub fn reading(report: &Report) -> Vec<String> {
    let mut sentences = vec![noise(report)];
    sentences.extend(busy(report));
    sentences.extend(lone(report));
    sentences.extend(engines(report));
    sentences.extend(runtimes(report));
    sentences.extend(allocations(report));
    sentences.extend(beaten(report));
    sentences
}

/// Loads that are timed: not the idle connections.
fn timed(report: &Report) -> impl Iterator<Item = &ScenarioReport> {
    report.scenarios.iter().filter(|scenario| !scenario.is_idle())
}

fn cpu(side: &SideReport) -> Option<f64> {
    side.median.map(|median| median.cpu_ns)
}

fn cheapest(scenario: &ScenarioReport, is_wanted: impl Fn(Family) -> bool) -> Option<(&SideReport, f64)> {
    let costs = scenario
        .sides
        .iter()
        .filter(|side| is_wanted(side.family))
        .filter_map(|side| Some((side, cpu(side)?)));
    costs.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn is_respiral(family: Family) -> bool {
    matches!(family, Family::RespiralUring | Family::RespiralEpoll)
}

/// The side that stands for respiral: the first that was run. The cheapest of several would be flattered by noise.
fn respiral(scenario: &ScenarioReport) -> Option<(&SideReport, f64)> {
    let side = scenario.sides.iter().find(|side| is_respiral(side.family))?;
    Some((side, cpu(side)?))
}

fn noise(report: &Report) -> String {
    let noisy = timed(report).filter(|scenario| scenario.warning.is_some()).count();
    match (noisy, timed(report).count()) {
        (0, _) => "The machine was quiet: no scenario was disturbed.".to_owned(),
        (n, of) if n == of => {
            "The machine was not quiet in any scenario: trust only large differences, and counts.".to_owned()
        }
        (n, of) => format!("The machine was disturbed in {n} of {of} scenarios: see the warnings there."),
    }
}

fn busy(report: &Report) -> Option<String> {
    let plain = timed(report).filter(|s| s.scenario.workload == "get" && s.scenario.rate.is_none());
    let scenario =
        plain.filter(|s| s.scenario.callers > 1).min_by_key(|s| s.scenario.callers.abs_diff(128))?;
    let (side, own) = respiral(scenario)?;
    let mut text = format!(
        "With {} tasks asking at the same time, respiral under {} costs {} ns of processor time per GET",
        scenario.scenario.callers,
        side.side,
        number(own)
    );
    if let Some((_, floor)) = cheapest(scenario, |family| family == Family::Floor) {
        text += &format!(
            ", {:.1} times the floor (the same bytes by blocking calls, nothing encoded or read)",
            own / floor
        );
    }
    if let Some((peer, cost)) = cheapest(scenario, |family| family == Family::Peer) {
        text += &format!(
            "; the cheapest other client ({}) costs {} ns, {:.1} times as much",
            peer.side,
            number(cost),
            cost / own
        );
    }
    if scenario.warning.is_some() {
        text += " (a disturbed scenario)";
    }
    Some(text + ".")
}

fn lone(report: &Report) -> Option<String> {
    let scenario = timed(report).find(|s| s.scenario.workload == "get" && s.scenario.callers == 1)?;
    let (_, least) = cheapest(scenario, |family| family != Family::Floor)?;
    let most =
        scenario.sides.iter().filter(|side| side.family != Family::Floor).filter_map(cpu).fold(0.0, f64::max);
    let what = if most / least < 1.5 {
        "all clients cost about the same: nearly all of it is the kernel waking a sleeping thread"
    } else {
        "clients differ less than under load: most of it is the kernel waking a sleeping thread"
    };
    Some(format!(
        "With a single task, {what} ({} to {} us of processor time per GET).",
        number(least / 1e3),
        number(most / 1e3)
    ))
}

/// Ratios of one side to another over all scenarios that have both.
fn ratios(report: &Report, side: &str, other: &str) -> Vec<f64> {
    let of = |scenario: &ScenarioReport| {
        let find = |name: &str| scenario.sides.iter().find(|side| side.side == name).and_then(cpu);
        Some(find(side)? / find(other)?)
    };
    timed(report).filter_map(of).collect()
}

fn engines(report: &Report) -> Option<String> {
    let hosts = ["monoio", "monoio-legacy", "tokio", "tokio-uring"];
    let all: Vec<f64> =
        hosts.iter().flat_map(|host| ratios(report, host, &format!("{host}-epoll"))).collect();
    if all.is_empty() {
        return None;
    }
    let uring = all.iter().filter(|ratio| **ratio < 1.0 - DIFFERENCE_MIN).count();
    let epoll = all.iter().filter(|ratio| **ratio > 1.0 + DIFFERENCE_MIN).count();
    Some(format!(
        "io_uring against epoll inside respiral, same runtime, {} comparisons: io_uring is cheaper by more than 10 % in \
         {uring}, epoll in {epoll}, no difference in the rest (median {:.2}; below 1 favours io_uring).",
        all.len(),
        median(all.iter().copied())
    ))
}

fn runtimes(report: &Report) -> Option<String> {
    let hosts = ["monoio-legacy", "tokio", "tokio-uring"];
    let against: Vec<String> = hosts
        .iter()
        .map(|host| (host, ratios(report, host, "monoio")))
        .filter(|(_, ratios)| !ratios.is_empty())
        .map(|(host, ratios)| format!("{host} {:.2}", median(ratios)))
        .collect();
    (!against.is_empty()).then(|| {
        format!(
            "Runtimes against monoio, io_uring engine, median over all scenarios: {}.",
            against.join(", ")
        )
    })
}

fn allocations(report: &Report) -> Option<String> {
    let scenario =
        timed(report).filter(|s| s.scenario.workload == "get").max_by_key(|s| s.scenario.callers)?;
    let of = |is_wanted: fn(Family) -> bool| {
        let counts = scenario.sides.iter().filter(|side| is_wanted(side.family));
        counts
            .filter_map(|side| side.counts.allocations)
            .fold(None, |most: Option<f64>, n| Some(most.map_or(n, |m| m.max(n))))
    };
    let own = of(is_respiral)?;
    let what = if own < 0.1 { "no memory".to_owned() } else { format!("{own:.1} blocks of memory") };
    let others =
        of(|family| family == Family::Peer).map(|n| format!("; other clients up to {:.0} blocks", n.ceil()));
    Some(format!("Per GET of 64 bytes, respiral allocates {what}{}.", others.unwrap_or_default()))
}

fn beaten(report: &Report) -> Option<String> {
    let mut has_peers = false;
    let mut worse = Vec::new();
    for scenario in timed(report) {
        let Some((peer, theirs)) = cheapest(scenario, |family| family == Family::Peer) else { continue };
        let Some((side, ours)) = respiral(scenario) else { continue };
        has_peers = true;
        if theirs < ours * (1.0 - DIFFERENCE_MIN) {
            worse.push(format!(
                "{} ({}, {:.2} of respiral's under {})",
                scenario.scenario.name,
                peer.side,
                theirs / ours,
                side.side
            ));
        }
    }
    match (has_peers, worse.is_empty()) {
        (false, _) => None,
        (true, true) => {
            Some("In no scenario was another client cheaper than respiral by more than 10 %.".to_owned())
        }
        (true, false) => {
            Some(format!("Another client was cheaper by more than 10 % in: {}.", worse.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Sample;
    use crate::noise::Noise;
    use crate::plan::{Wishes, scenarios};
    use crate::report::environment::Environment;

    fn report(costs: &[(&str, Family, f64)]) -> Report {
        let plan = scenarios(&Wishes { callers: vec![128], ..Wishes::default() });
        let side = |(name, family, cpu_ns): &(&str, Family, f64)| SideReport {
            side: (*name).to_owned(),
            family: *family,
            median: Some(Sample { cpu_ns: *cpu_ns, ..Sample::default() }),
            ratio: None,
            counts: Default::default(),
            bottleneck: None,
            failure: None,
            rounds: Vec::new(),
        };
        let scenario = ScenarioReport {
            scenario: plan[0].describe(),
            reference: "floor".to_owned(),
            sides: costs.iter().map(side).collect(),
            noise: Noise { spread: 0.0, steal: 0.0, others: 0.0 },
            warning: None,
        };
        Report { environment: Environment::default(), scenarios: vec![scenario] }
    }

    #[test]
    fn a_cheaper_peer_is_named() {
        let text = |peer| {
            let sides = [
                ("floor", Family::Floor, 100.0),
                ("monoio", Family::RespiralUring, 200.0),
                ("monoio-epoll", Family::RespiralEpoll, 150.0),
                ("other", Family::Peer, peer),
            ];
            reading(&report(&sides)).join(" ")
        };
        assert!(
            text(170.0).contains(
                "cheaper by more than 10 % in: get, W=128 (other, 0.85 of respiral's under monoio)"
            )
        );
        assert!(text(600.0).contains("In no scenario") && text(600.0).contains("3.0 times as much"));
        assert!(text(600.0).contains("1 comparisons") && text(600.0).contains("epoll in 1"));
    }

    #[test]
    fn a_report_without_floor_or_peers_can_be_read() {
        assert_eq!(reading(&report(&[("tokio", Family::RespiralUring, 1.0)])).len(), 2);
    }
}
