//! Charts as SVG text. Colours come from the page's style sheet, so that they follow light and dark.

use std::fmt::Write;

/// A row of a bar chart.
pub struct Bar<'a> {
    pub label: &'a str,
    /// Of the style sheet: `floor`, `uring`, `epoll`, `peer`.
    pub class: &'a str,
    /// Drawn one after the other, each fainter than the one before.
    pub parts: Vec<f64>,
    /// At the end of the bar.
    pub note: String,
}

/// A row of a chart of ranges, on a logarithmic axis.
pub struct Span<'a> {
    pub label: &'a str,
    pub class: &'a str,
    /// Ascending; the first is a filled circle, the others are marks on the line.
    pub points: Vec<f64>,
    pub note: String,
}

/// A line of a chart with two logarithmic axes.
pub struct Line<'a> {
    pub label: &'a str,
    pub class: &'a str,
    /// Told apart by dashes within a class.
    pub dash: usize,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 560.0;
const LABELS: f64 = 138.0;
const NOTES: f64 = 112.0;
const PLOT: f64 = WIDTH - LABELS - NOTES;
const ROW: f64 = 22.0;
const HEAD: f64 = 26.0;
const FOOT: f64 = 34.0;

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(out: &mut String, title: &str, height: f64) {
    let title = escape(title);
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\
         <text class=\"title\" x=\"0\" y=\"14\">{title}</text>"
    );
}

fn rule(out: &mut String, x: f64, bottom: f64, label: &str) {
    let _ = write!(
        out,
        "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\
         <text class=\"tick\" x=\"{x:.1}\" y=\"{}\">{label}</text>",
        bottom + 13.0
    );
}

fn axis_name(out: &mut String, bottom: f64, unit: &str) {
    let _ = write!(
        out,
        "<text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>",
        LABELS + PLOT / 2.0,
        bottom + 28.0,
        escape(unit)
    );
}

fn row_label(out: &mut String, row: usize, label: &str, class: &str) -> f64 {
    let middle = HEAD + ROW * (row as f64 + 0.5);
    let _ = write!(
        out,
        "<text class=\"row {class}\" x=\"{}\" y=\"{:.1}\">{}</text>",
        LABELS - 8.0,
        middle + 4.0,
        escape(label)
    );
    middle
}

/// Horizontal bars from zero.
pub fn bars(title: &str, unit: &str, rows: &[Bar<'_>]) -> String {
    let bottom = HEAD + ROW * rows.len() as f64;
    let largest = rows.iter().map(|row| row.parts.iter().sum()).fold(0.0, f64::max);
    let (step, end) = ticks(largest);
    let x = |value: f64| LABELS + PLOT * value / end;
    let mut out = String::new();
    open(&mut out, title, bottom + FOOT);
    let mut tick = 0.0;
    while tick <= end * 1.001 {
        rule(&mut out, x(tick), bottom, &number(tick));
        tick += step;
    }
    axis_name(&mut out, bottom, unit);
    for (index, row) in rows.iter().enumerate() {
        let middle = row_label(&mut out, index, row.label, row.class);
        let mut from = 0.0;
        for (part, value) in row.parts.iter().enumerate() {
            let _ = write!(
                out,
                "<rect class=\"{} part{part}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
                row.class,
                x(from),
                middle - 7.0,
                (x(from + value) - x(from)).max(0.0)
            );
            from += value;
        }
        let _ = write!(
            out,
            "<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(from) + 5.0,
            middle + 4.0,
            escape(&row.note)
        );
    }
    out + "</svg>"
}

/// Ranges on a logarithmic axis.
pub fn spans(title: &str, unit: &str, rows: &[Span<'_>]) -> String {
    let bottom = HEAD + ROW * rows.len() as f64;
    let points = || rows.iter().flat_map(|row| row.points.iter().copied()).filter(|point| *point > 0.0);
    let Some((low, high)) = decades(points()) else { return String::new() };
    let x = |value: f64| LABELS + PLOT * place(value, low, high);
    let mut out = String::new();
    open(&mut out, title, bottom + FOOT);
    for decade in low..=high {
        rule(&mut out, x(10_f64.powi(decade)), bottom, &number(10_f64.powi(decade)));
    }
    axis_name(&mut out, bottom, unit);
    for (index, row) in rows.iter().enumerate() {
        let middle = row_label(&mut out, index, row.label, row.class);
        let (first, last) =
            (row.points.first().copied().unwrap_or(1.0), row.points.last().copied().unwrap_or(1.0));
        let _ = write!(
            out,
            "<line class=\"span {}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>",
            row.class,
            x(first),
            x(last)
        );
        for (mark, point) in row.points.iter().enumerate() {
            let _ = write!(
                out,
                "<circle class=\"{} part{mark}\" cx=\"{:.1}\" cy=\"{middle}\" r=\"{}\"/>",
                row.class,
                x(*point),
                if mark == 0 { 5.0 } else { 3.5 }
            );
        }
        let _ = write!(
            out,
            "<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(last) + 8.0,
            middle + 4.0,
            escape(&row.note)
        );
    }
    out + "</svg>"
}

/// Lines over two logarithmic axes, with a legend.
pub fn lines(title: &str, x_unit: &str, y_unit: &str, lines: &[Line<'_>]) -> String {
    const LEFT: f64 = 64.0;
    const RIGHT: f64 = 150.0;
    const BOTTOM: f64 = 320.0;
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let Some((low, high)) = decades(all().map(|point| point.1)) else { return String::new() };
    let mut columns: Vec<f64> = all().map(|point| point.0).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let (Some(&first), Some(&last)) = (columns.first(), columns.last()) else { return String::new() };
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (value / first).ln() / (last / first).ln().max(1e-9);
    let y = |value: f64| BOTTOM - (BOTTOM - HEAD) * place(value, low, high);
    let mut out = String::new();
    open(&mut out, title, BOTTOM + FOOT);
    for &column in &columns {
        rule(&mut out, x(column), BOTTOM, &number(column));
    }
    for decade in low..=high {
        let value = 10_f64.powi(decade);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick left\" x=\"{}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(value) + 4.0,
            number(value),
            y = y(value)
        );
    }
    let _ = write!(
        out,
        "<text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>\
         <text class=\"tick\" transform=\"translate(12 {}) rotate(-90)\">{}</text>",
        LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
        BOTTOM + 28.0,
        escape(x_unit),
        (BOTTOM + HEAD) / 2.0,
        escape(y_unit)
    );
    for (index, line) in lines.iter().enumerate() {
        let path: Vec<String> =
            line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        let class = format!("{} dash{}", line.class, line.dash);
        let legend = HEAD + 8.0 + index as f64 * 18.0;
        let _ = write!(
            out,
            "<polyline class=\"curve {class}\" points=\"{}\"/>\
             <line class=\"curve {class}\" x1=\"{}\" x2=\"{}\" y1=\"{legend}\" y2=\"{legend}\"/>\
             <text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
            path.join(" "),
            WIDTH - RIGHT + 10.0,
            WIDTH - RIGHT + 32.0,
            WIDTH - RIGHT + 37.0,
            legend + 4.0,
            escape(line.label)
        );
    }
    out + "</svg>"
}

/// Distance between ticks, and the end of an axis that begins at zero.
fn ticks(largest: f64) -> (f64, f64) {
    if largest <= 0.0 {
        return (1.0, 1.0);
    }
    let rough = largest / 4.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    (step, (largest / step).ceil() * step)
}

/// Powers of ten that hold all values.
fn decades(values: impl Iterator<Item = f64>) -> Option<(i32, i32)> {
    let (low, high) =
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if !low.is_finite() || low <= 0.0 {
        return None;
    }
    let (low, high) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    Some((low, high.max(low + 1)))
}

fn place(value: f64, low: i32, high: i32) -> f64 {
    ((value.max(1e-12).log10() - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0)
}

/// With k and M for thousands and millions.
pub fn number(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        v if v >= 999_500.0 => (value / 1e6, "M"),
        v if v >= 9_999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        v if v >= 100.0 || value.fract() == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_beyond_the_largest_value() {
        assert_eq!(ticks(7.3), (2.0, 8.0));
        assert_eq!(ticks(100.0), (25.0, 100.0));
        assert_eq!(ticks(0.0), (1.0, 1.0));
        assert_eq!(decades([33.0, 4500.0].into_iter()), Some((1, 4)));
        assert_eq!(decades([10.0].into_iter()), Some((1, 2)));
        assert_eq!(decades([].into_iter()), None);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.0123, 0.5, 42.25, 1234.0, 45_600.0, 2_500_000.0].map(number),
            ["0", "0.0123", "0.5", "42.2", "1234", "45.6k", "2.5M"]
        );
    }
}
