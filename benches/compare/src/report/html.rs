//! One page that needs nothing else: style sheet and charts inside, light and dark.

use super::reading::reading;
use super::svg::{Bar, Line, Span, bars, escape, lines, number, spans};
use super::table::{peaks, short};
use super::{Report, ScenarioReport, SideReport};
use crate::clients::Family;
use crate::meter::Sample;
use crate::noise::Bottleneck;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

pub fn page(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>respiral compared</title>\
         <style>{STYLE}</style></head><body><h1>respiral compared</h1>"
    );
    let _ = write!(
        out,
        "<p class=\"dim\">{}, {}</p>",
        escape(&report.environment.date),
        escape(&report.environment.cpu)
    );
    summary(&mut out, report);
    overview(&mut out, report);
    report.scenarios.iter().for_each(|scenario| section(&mut out, scenario));
    environment(&mut out, report);
    out + "</body></html>\n"
}

fn class(family: Family) -> &'static str {
    match family {
        Family::Floor => "floor",
        Family::RespiralUring => "uring",
        Family::RespiralEpoll => "epoll",
        Family::Peer => "peer",
    }
}

fn summary(out: &mut String, report: &Report) {
    *out += "<section><h2>In short</h2><ul>";
    for sentence in reading(report) {
        let _ = write!(out, "<li>{}</li>", escape(&sentence));
    }
    *out += "</ul><p class=\"legend\"><b class=\"floor\">floor</b> blocking calls, commands encoded in advance: what the \
             machine charges for the bytes. <b class=\"uring\">respiral, io_uring</b> and <b class=\"epoll\">respiral, \
             epoll</b>: how respiral itself reads and writes its sockets (its engine), by the runtime that runs the tasks. \
             -spin: it looks for replies for 50 µs before the thread sleeps; monoio-legacy: monoio's own loop is epoll. \
             <b class=\"peer\">other clients</b>, under tokio (-no-timeout: without a time limit for replies). W is the number of tasks that ask at the same time, each \
             waiting for its answer before it asks again.</p></section>";
}

/// Lines over the number of callers, for each workload that was run with three or more.
fn overview(out: &mut String, report: &Report) {
    let mut workloads: Vec<&str> = Vec::new();
    for scenario in plain(report) {
        if !workloads.contains(&scenario.scenario.workload.as_str()) {
            workloads.push(&scenario.scenario.workload);
        }
    }
    let mut charts = String::new();
    for workload in workloads {
        let of = || plain(report).filter(|scenario| scenario.scenario.workload == workload);
        if of().count() < 3 {
            continue;
        }
        let curve = |figure: fn(&Sample) -> f64| -> Vec<Line<'_>> {
            let names = of().next().map(|scenario| scenario.sides.as_slice()).unwrap_or_default();
            let mut seen = [0; 4];
            names
                .iter()
                .map(|side| {
                    let points = of().filter_map(|scenario| {
                        let same = scenario.sides.iter().find(|other| other.side == side.side)?;
                        Some((scenario.scenario.callers as f64, figure(same.median.as_ref()?)))
                    });
                    let dash = seen[side.family as usize];
                    seen[side.family as usize] += 1;
                    Line { label: &side.side, class: class(side.family), dash, points: points.collect() }
                })
                .collect()
        };
        charts += &lines(
            &format!("{workload}: processor time"),
            "callers (W)",
            "ns per operation",
            &curve(|s| s.cpu_ns),
        );
        charts += &lines(
            &format!("{workload}: throughput"),
            "callers (W)",
            "operations per second",
            &curve(|s| s.ops_per_second),
        );
    }
    if !charts.is_empty() {
        let _ = write!(
            out,
            "<section><h2>By number of callers</h2><div class=\"charts\">{charts}</div></section>"
        );
    }
}

fn plain(report: &Report) -> impl Iterator<Item = &ScenarioReport> {
    report.scenarios.iter().filter(|s| {
        !s.is_idle()
            && s.scenario.rate.is_none()
            && s.scenario.connections == 1
            && s.scenario.distribution == "uniform"
    })
}

fn section(out: &mut String, report: &ScenarioReport) {
    let scenario = &report.scenario;
    let _ = write!(out, "<section><h2>{}</h2><p>{}", escape(&scenario.name), escape(&scenario.help));
    if !report.is_idle() {
        let _ = write!(out, "; {} keys, {}", scenario.keys, scenario.distribution);
        match scenario.rate {
            Some(rate) => {
                let _ = write!(
                    out,
                    "; open loop: {} operations per second are due, whatever has been answered, and latency counts from \
                     the moment they were due.",
                    number(rate)
                );
            }
            None => *out += "; closed loop.",
        }
    }
    *out += "</p>";
    if let Some(warning) = &report.warning {
        let _ = write!(out, "<p class=\"warning\">{}</p>", escape(warning));
    }
    if !report.is_idle() {
        let noise = &report.noise;
        let _ = write!(
            out,
            "<p class=\"dim\">Noise: {} differs from itself by {:.0} % (middle half of rounds); taken by the hypervisor \
             {:.1} %, by other processes {:.0} %. Limit: {}.</p>",
            escape(&report.reference),
            noise.spread * 100.0,
            noise.steal * 100.0,
            noise.others * 100.0,
            limits(report)
        );
    }
    let sides: Vec<(&SideReport, &Sample)> =
        report.sides.iter().filter_map(|side| Some((side, side.median.as_ref()?))).collect();
    let charts = if report.is_idle() { idle_charts(&sides) } else { charts(report, &sides) };
    let _ = write!(out, "<div class=\"charts\">{charts}</div>");
    for side in report.sides.iter().filter(|side| side.failure.is_some()) {
        let failure = side.failure.as_deref().unwrap_or_default();
        let _ = write!(out, "<p class=\"warning\">{} failed: {}</p>", escape(&side.side), escape(failure));
    }
    if !report.is_idle() {
        details(out, report, &sides);
    }
    *out += "</section>";
}

/// What held the sides back, and how many of them.
fn limits(report: &ScenarioReport) -> String {
    let kinds = [
        (Bottleneck::Client, "the client's core"),
        (Bottleneck::Server, "the server's core"),
        (Bottleneck::Both, "both cores"),
        (
            Bottleneck::Waiting,
            "neither core: client and server spend a part of the time waiting for each other",
        ),
        (Bottleneck::Unclear, "unclear (other processes had the cores)"),
    ];
    let count = |kind| report.sides.iter().filter(|side| side.bottleneck == Some(kind)).count();
    let of = |(kind, name): (Bottleneck, &str)| match count(kind) {
        0 => None,
        n if n == report.sides.len() => Some(name.to_owned()),
        1 => Some(format!("{name}, for one client")),
        n => Some(format!("{name}, for {n} clients")),
    };
    kinds.into_iter().filter_map(of).collect::<Vec<String>>().join("; ")
}

fn chart_of<'a>(
    sides: &[(&'a SideReport, &Sample)],
    parts: impl Fn(&SideReport, &Sample) -> Option<Vec<f64>>,
    note: impl Fn(&SideReport, &[f64]) -> String,
) -> Vec<Bar<'a>> {
    let bar = |(side, sample): &(&'a SideReport, &Sample)| {
        let parts = parts(side, sample)?;
        Some(Bar { label: &side.side, class: class(side.family), note: note(side, &parts), parts })
    };
    sides.iter().filter_map(bar).collect()
}

fn total(_: &SideReport, parts: &[f64]) -> String {
    number(parts.iter().sum())
}

fn charts(report: &ScenarioReport, sides: &[(&SideReport, &Sample)]) -> String {
    let cost = chart_of(
        sides,
        |_, sample| Some(vec![sample.user_ns, sample.system_ns]),
        |side, parts| {
            let ratio = side.ratio.map(|ratio| format!(" ({:.2} x)", ratio.median)).unwrap_or_default();
            number(parts.iter().sum()) + &ratio
        },
    );
    let title =
        format!("Processor time: program (dark), kernel on its behalf (pale), (x {})", report.reference);
    let mut out = bars(&title, "nanoseconds per operation", &cost);
    let latency: Vec<Span<'_>> = sides
        .iter()
        .map(|(side, sample)| Span {
            label: &side.side,
            class: class(side.family),
            points: vec![sample.p50_us, sample.p99_us, sample.p999_us],
            note: format!("{} / {}", number(sample.p50_us), number(sample.p99_us)),
        })
        .collect();
    out += &spans(
        "Latency: median, 99 %, 99.9 % (in figures: the first two)",
        "microseconds, logarithmic",
        &latency,
    );
    let rate = chart_of(sides, |_, sample| Some(vec![sample.ops_per_second]), total);
    out += &bars("Throughput", "operations per second", &rate);
    let calls = chart_of(sides, |side, _| side.counts.system_calls.map(|n| vec![n.max(0.0)]), total);
    let allocations = chart_of(sides, |side, _| side.counts.allocations.map(|n| vec![n]), total);
    let memory = chart_of(sides, |_, sample| Some(vec![sample.peak_rss_kib / 1024.0]), total);
    let per_flight = |bytes: f64| Some(vec![bytes / report.scenario.bytes_in_flight?]);
    let touched = chart_of(sides, |_, sample| per_flight(sample.peak_grown_bytes), total);
    let heap = chart_of(sides, |side, _| per_flight(side.counts.peak_heap_bytes?), total);
    let instructions =
        chart_of(sides, |side, _| side.counts.user_instructions.map(|n| vec![n.max(0.0)]), total);
    let counted = [
        ("System calls", "calls per operation", calls),
        ("Memory allocations", "blocks per operation", allocations),
        ("Peak memory of the process", "MiB", memory),
        ("Peak memory of the client, touched", "times the bytes in flight", touched),
        ("Peak heap of the client, asked for", "times the bytes in flight", heap),
        ("Instructions in user space", "instructions per operation", instructions),
    ];
    for (title, unit, rows) in counted.iter().filter(|(_, _, rows)| !rows.is_empty()) {
        out += &bars(title, unit, rows);
    }
    out
}

fn idle_charts(sides: &[(&SideReport, &Sample)]) -> String {
    let resident = chart_of(sides, |_, sample| Some(vec![sample.rss_bytes_per_connection.max(0.0)]), total);
    let heap = chart_of(sides, |_, sample| Some(vec![sample.heap_bytes_per_connection.max(0.0)]), total);
    let cost = chart_of(sides, |_, sample| Some(vec![sample.cpu_ns]), total);
    bars("Resident memory", "bytes per connection", &resident)
        + &bars("Heap", "bytes per connection", &heap)
        + &bars("Processor time of a GET, while the connections are open", "nanoseconds", &cost)
}

fn details(out: &mut String, report: &ScenarioReport, sides: &[(&SideReport, &Sample)]) {
    let _ = write!(
        out,
        "<details><summary>All figures</summary><div class=\"wide\"><table><tr><th>side<th>CPU ns/op<th>user<th>system\
         <th>x {}<th>range of rounds<th>ops/s<th>p50 us<th>p99 us<th>p99.9 us<th>max us<th>allocs/op<th>bytes/op\
         <th>calls/op<th>switches/op<th>instr/op<th>peak MiB<th>client busy<th>server busy<th>limit</tr>",
        escape(&report.reference)
    );
    let flight = report.scenario.bytes_in_flight;
    if flight.is_some() {
        // The head's row goes on.
        out.truncate(out.len() - "</tr>".len());
        *out += "<th>client's peak</tr>";
    }
    for (side, sample) in sides {
        let or_dash = |count: Option<f64>| count.map_or_else(|| "–".to_owned(), short);
        let ratio = side.ratio.map_or(("–".to_owned(), "–".to_owned()), |ratio| {
            (format!("{:.2}", ratio.median), format!("{:.2}–{:.2}", ratio.low, ratio.high))
        });
        let cells = [
            number(sample.cpu_ns),
            number(sample.user_ns),
            number(sample.system_ns),
            ratio.0,
            ratio.1,
            number(sample.ops_per_second),
            number(sample.p50_us),
            number(sample.p99_us),
            number(sample.p999_us),
            number(sample.max_us),
            or_dash(side.counts.allocations),
            or_dash(side.counts.allocated_bytes),
            or_dash(side.counts.system_calls),
            short(sample.context_switches),
            or_dash(side.counts.user_instructions),
            format!("{:.1}", sample.peak_rss_kib / 1024.0),
            format!("{:.0} %", sample.client_busy * 100.0),
            format!("{:.0} %", sample.server_busy * 100.0),
            side.bottleneck.map_or("", Bottleneck::name).to_owned(),
        ];
        let _ = write!(out, "<tr><td class=\"{}\">{}", class(side.family), escape(&side.side));
        cells.iter().for_each(|cell| *out += &format!("<td>{cell}"));
        if let Some(flight) = flight {
            let _ = write!(out, "<td>{}", peaks(side, sample, flight));
        }
        *out += "</tr>";
    }
    *out += "</table></div></details>";
}

fn environment(out: &mut String, report: &Report) {
    let environment = &report.environment;
    let versions: Vec<String> =
        environment.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let tools = environment.tools.map_or_else(String::new, |tools| {
        let of =
            |has: bool, what: &str| format!("{what}: {}", if has { "yes" } else { "not available here" });
        [
            of(tools.perf, "system calls (perf)"),
            of(tools.valgrind, "instructions (callgrind, with --instructions)"),
        ]
        .join("; ")
    });
    let rows = [
        ("Command", environment.command.clone()),
        ("Versions", versions.join(", ")),
        ("Commit", environment.commit.clone()),
        ("Server", environment.server.clone()),
        ("Kernel", environment.kernel.clone()),
        ("Processor", format!("{}, {} cores", environment.cpu, environment.cores)),
        (
            "Settings",
            format!(
                "{} rounds of {} ms each, every run a process of its own, sides interleaved; client on core {}, server on \
                 core {}; took {} s",
                environment.rounds,
                environment.run_ms,
                environment.client_core,
                environment.server_core,
                environment.took_s
            ),
        ),
        ("Counted", tools),
    ];
    *out += "<section><h2>How it was measured</h2><div class=\"wide\"><table class=\"facts\">";
    for (name, value) in rows {
        let _ = write!(out, "<tr><th>{name}<td>{}</tr>", escape(&value));
    }
    *out += "</table></div><p>Figures are medians over the rounds. A ratio is the median of the ratios round by round, so \
             drift of the machine meets both sides alike. Processor time is that of all threads of the client's process. \
             benches/compare/README.md says how each client is configured and what is not measured.</p></section>";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Side;
    use crate::plan::{Wishes, scenarios};
    use crate::report::environment::Environment;
    use crate::report::{Outcome, Report, ScenarioReport};
    use clap::ValueEnum;

    fn report() -> Report {
        let outcome = |side: &Side| Outcome {
            side: *side,
            rounds: vec![Some(Sample {
                cpu_ns: 100.0,
                ops: 1.0,
                p50_us: 5.0,
                p99_us: 9.0,
                p999_us: 9.5,
                ..Sample::default()
            })],
            counts: Default::default(),
            failure: None,
        };
        let of = |scenario| {
            ScenarioReport::new(scenario, Side::Floor, Side::value_variants().iter().map(outcome).collect())
        };
        let plan = scenarios(&Wishes { is_full: true, ..Wishes::default() });
        Report { environment: Environment::here(), scenarios: plan.iter().map(of).collect() }
    }

    #[test]
    fn the_page_has_every_side_and_scenario_and_needs_nothing_else() {
        let report = report();
        let page = page(&report);
        for side in Side::value_variants() {
            assert!(page.contains(&format!(">{}</text>", side.name())), "{}", side.name());
        }
        for scenario in &report.scenarios {
            assert!(page.contains(&format!("<h2>{}</h2>", scenario.scenario.name)));
        }
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("prefers-color-scheme: dark") && page.contains(&report.environment.kernel));
    }

    #[test]
    fn a_report_can_be_written_and_read() {
        let report = report();
        let text = serde_json::to_string(&report).unwrap();
        let again: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(page(&again), page(&report));
    }
}
