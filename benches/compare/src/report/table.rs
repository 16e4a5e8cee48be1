//! The table on the terminal, a scenario at a time.

use super::{ScenarioReport, SideReport};
use crate::meter::Sample;
use std::fmt::Write;

pub fn table(report: &ScenarioReport) -> String {
    let mut out = format!("{}\n", report.scenario.name);
    let width = report.sides.iter().map(|side| side.side.len()).max().unwrap_or(0).max(8);
    if report.is_idle() {
        let _ = writeln!(
            out,
            "  {:<width$} {:>12} {:>12} {:>11}",
            "side", "RSS B/conn", "heap B/conn", "CPU ns/GET"
        );
    } else {
        let _ = writeln!(
            out,
            "  {:<width$} {:>9} {:>8} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>9}  {:<8} to {}",
            "side",
            "CPU ns/op",
            "user",
            "system",
            "ops/s",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "max us",
            "alloc/op",
            "B/op",
            "calls/op",
            "switches",
            "RSS MiB",
            "instr/op",
            "limit",
            report.reference,
        );
    }
    let flight = report.scenario.bytes_in_flight;
    for side in &report.sides {
        match &side.median {
            Some(median) if report.is_idle() => {
                let (rss, heap) = (median.rss_bytes_per_connection, median.heap_bytes_per_connection);
                let cpu = median.cpu_ns;
                let _ = writeln!(out, "  {:<width$} {rss:>12.0} {heap:>12.0} {cpu:>11.0}", side.side);
            }
            Some(median) => {
                let _ = write!(out, "  {:<width$} {}", side.side, figures(side, median));
                if let Some(flight) = flight {
                    let _ = write!(out, "  peak {}", peaks(side, median, flight));
                }
                out.push('\n');
            }
            None => {}
        }
        if let Some(failure) = &side.failure {
            let _ = writeln!(out, "  {:<width$} failed: {failure}", side.side);
        }
    }
    if let Some(warning) = &report.warning {
        let _ = writeln!(out, "  ! {warning}");
    }
    out
}

fn figures(side: &SideReport, median: &Sample) -> String {
    let counts = &side.counts;
    let or_dash = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), short);
    let mut line = format!(
        "{:>9.0} {:>8.0} {:>8.0} {:>10.0} {:>9.1} {:>9.1} {:>9.1} {:>9.0}",
        median.cpu_ns,
        median.user_ns,
        median.system_ns,
        median.ops_per_second,
        median.p50_us,
        median.p99_us,
        median.p999_us,
        median.max_us,
    );
    let _ = write!(
        line,
        " {:>8} {:>9} {:>8} {:>8} {:>8.1} {:>9}  {:<8}",
        or_dash(counts.allocations),
        or_dash(counts.allocated_bytes),
        or_dash(counts.system_calls),
        short(median.context_switches),
        median.peak_rss_kib / 1024.0,
        or_dash(counts.user_instructions),
        side.bottleneck.map_or("", |bottleneck| bottleneck.name()),
    );
    if let Some(ratio) = &side.ratio {
        let _ = write!(line, " {:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high);
    }
    line
}

/// Peak memory against the bytes in flight: what was touched, what of the heap was asked for.
pub fn peaks(side: &SideReport, median: &Sample, flight: f64) -> String {
    let heap = side.counts.peak_heap_bytes.map_or_else(|| "-".to_owned(), |bytes| short(bytes / flight));
    let touched = median.peak_grown_bytes;
    format!("{:.1} MiB, x {} touched, x {heap} heap", touched / (1 << 20) as f64, short(touched / flight))
}

/// Three digits that matter.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v < 0.00005 => "0".to_owned(),
        v if v < 0.1 => format!("{value:.4}"),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!([0.0, 0.0123, 1.5, 42.0, 1234.5].map(short), ["0", "0.0123", "1.50", "42.0", "1234"]);
    }
}
