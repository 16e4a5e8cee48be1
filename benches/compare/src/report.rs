//! Medians, and per-round ratios to the floor.

use super::sides::{Cost, Side};

/// The costs of each side, a list per side in the order of rounds.
pub struct Table {
    rows: Vec<(Side, Vec<Cost>)>,
}

impl Table {
    pub fn new(sides: &[Side]) -> Self {
        Self { rows: sides.iter().map(|side| (*side, Vec::new())).collect() }
    }

    pub fn add(&mut self, side: Side, cost: Cost) {
        if let Some((_, costs)) = self.rows.iter_mut().find(|(row, _)| *row == side) {
            costs.push(cost);
        }
    }

    pub fn print(&self, callers: usize) {
        println!("W={callers}");
        println!("  {:<14}{:>9}{:>8}{:>8}{:>11}{:>12}  ratio to floor (median, range)", "side", "ns CPU/op", "user", "system", "allocs/op", "ops/s");
        let floor = self.rows.iter().find(|(side, _)| *side == Side::Floor).map(|(_, costs)| costs);
        for (side, costs) in &self.rows {
            let of = |figure: fn(&Cost) -> f64| median(costs.iter().map(figure).collect());
            let mut line = format!(
                "  {:<14}{:>9.0}{:>8.0}{:>8.0}{:>11.5}{:>12.0}",
                side.name(),
                of(|c| c.user_ns + c.system_ns),
                of(|c| c.user_ns),
                of(|c| c.system_ns),
                of(|c| c.allocations),
                of(|c| c.per_second),
            );
            if let Some(floor) = floor {
                let mut ratios: Vec<f64> = costs.iter().zip(floor).map(|(c, f)| c.cpu() / f.cpu()).collect();
                ratios.sort_by(f64::total_cmp);
                if let (Some(first), Some(last)) = (ratios.first(), ratios.last()) {
                    line += &format!("  {:.2} ({first:.2}-{last:.2})", median(ratios.clone()));
                }
            }
            println!("{line}");
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
