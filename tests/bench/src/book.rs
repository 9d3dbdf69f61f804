//! The goals, what was measured for each, and how it is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::goals::{Goal, LINES, Line};

/// One measured value.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    /// The value.
    pub value: f64,
    /// What was divided.
    pub a: f64,
    /// By what.
    pub b: Option<f64>,
}

/// What an experiment took of the machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cost {
    /// Orders or requests per second.
    pub per_s: f64,
    /// Microseconds of CPU per order or request, by process.
    pub us: BTreeMap<&'static str, f64>,
    /// The share of a core that the load generator took.
    pub generator_cores: f64,
    /// The share of the whole machine that was busy.
    pub machine_busy: f64,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Book {
    samples: BTreeMap<&'static str, Vec<Sample>>,
    /// Runs without a number, by row, and why.
    void: BTreeMap<&'static str, Vec<String>>,
    costs: BTreeMap<String, Vec<Cost>>,
    notes: BTreeMap<String, Vec<f64>>,
}

/// How a row came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At least as good as hoped for.
    Stretch,
    /// Good enough.
    Must,
    /// Not good enough.
    Missed,
    /// Not one run has a number.
    Void,
}

/// A row with its outcome.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    #[serde(flatten)]
    line: Line,
    median: Option<f64>,
    lowest: f64,
    highest: f64,
    /// The median of what was divided, and of what it was divided by.
    a: Option<f64>,
    b: Option<f64>,
    pairs: usize,
    void: usize,
    /// How it came out.
    pub verdict: Verdict,
}

impl Book {
    /// Notes a pair: the value is `a / b`. One that was divided by nothing is void.
    pub fn pair(&mut self, id: &'static str, a: f64, b: f64) {
        let value = a / b;
        if !value.is_finite() {
            return self.void(id, format!("{a} by {b} is no ratio"));
        }
        self.note(
            id,
            Sample {
                value,
                a,
                b: Some(b),
            },
        );
    }

    /// Notes a value that is not a ratio.
    pub fn value(&mut self, id: &'static str, value: f64) {
        self.note(
            id,
            Sample {
                value,
                a: value,
                b: None,
            },
        );
    }

    fn note(&mut self, id: &'static str, sample: Sample) {
        eprintln!("  {id:5} {}", told(&sample));
        self.samples.entry(id).or_default().push(sample);
    }

    /// Notes what an experiment took.
    pub fn cost(&mut self, what: &str, cost: Cost) {
        self.costs.entry(what.to_owned()).or_default().push(cost);
    }

    /// Notes something that belongs to no goal.
    pub fn aside(&mut self, what: &str, value: f64) {
        self.notes.entry(what.to_owned()).or_default().push(value);
    }

    /// Notes a run that has no number.
    pub fn void(&mut self, id: &'static str, why: String) {
        eprintln!("  {id:5} VOID: {why}");
        self.void.entry(id).or_default().push(why);
    }

    /// How many runs have no number, by row.
    pub fn runs_void(&self) -> usize {
        self.void.values().map(Vec::len).sum()
    }

    /// The rows that were measured or tried.
    pub fn rows(&self) -> Vec<Row> {
        LINES.iter().filter_map(|line| self.row(*line)).collect()
    }

    fn row(&self, line: Line) -> Option<Row> {
        let none = Vec::new();
        let samples = self.samples.get(line.id).unwrap_or(&none);
        // A row that failed as a whole is noted under the goal's number.
        let goal = line.id.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let void = self
            .void
            .get(line.id)
            .or_else(|| self.void.get(goal))
            .map_or(0, Vec::len);
        if samples.is_empty() && void == 0 {
            return None;
        }
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let median = median(&values);
        Some(Row {
            line,
            median,
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            a: self::median(&samples.iter().map(|it| it.a).collect::<Vec<_>>()),
            b: self::median(&samples.iter().filter_map(|it| it.b).collect::<Vec<_>>()),
            pairs: samples.len(),
            void,
            verdict: median.map_or(Verdict::Void, |median| line.goal.judge(median)),
        })
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:5} {:52} {:>9} {:>9} {:>9} {:>17} {:>10} {:>10} {:6} {:>5}  verdict",
            "row", "what", "median", "must", "stretch", "range", "a", "b", "unit", "pairs"
        );
        for row in self.rows() {
            let (sign, must, stretch) = row.line.goal.parts();
            let median = row.median.map_or("-".to_owned(), short);
            let range = format!("{} .. {}", short(row.lowest), short(row.highest));
            let void = if row.void > 0 {
                format!(" ({} void)", row.void)
            } else {
                String::new()
            };
            let verdict = match row.verdict {
                Verdict::Stretch => "stretch",
                Verdict::Must => "must",
                Verdict::Missed => "MISSED",
                Verdict::Void => "VOID",
            };
            let _ = writeln!(
                text,
                "{:5} {:52} {median:>9} {:>9} {:>9} {range:>17} {:>10} {:>10} {:6} {:>5}  {verdict}{void}",
                row.line.id,
                row.line.what,
                format!("{sign}{}", short(must)),
                format!("{sign}{}", short(stretch)),
                row.a.map_or(String::new(), short),
                row.b.map_or(String::new(), short),
                row.line.units,
                row.pairs,
            );
        }
        text.push_str(&self.cost_table());
        text
    }

    fn cost_table(&self) -> String {
        let mut text = String::from("\nCPU microseconds per order or request (medians)\n");
        for (what, costs) in &self.costs {
            let of = |pick: &dyn Fn(&Cost) -> f64| {
                median(&costs.iter().map(pick).collect::<Vec<_>>()).unwrap_or(0.0)
            };
            let _ = write!(text, "  {what:52} {:>8}/s ", short(of(&|cost| cost.per_s)));
            let names: std::collections::BTreeSet<_> = costs
                .iter()
                .flat_map(|cost| cost.us.keys().copied())
                .collect();
            for name in names {
                let us = of(&|cost| cost.us.get(name).copied().unwrap_or(0.0));
                let _ = write!(text, " {name} {}", short(us));
            }
            let _ = writeln!(
                text,
                "  generator {:.0} % of a core, machine {:.0} % busy",
                of(&|cost| cost.generator_cores) * 100.0,
                of(&|cost| cost.machine_busy) * 100.0
            );
        }
        if !self.notes.is_empty() {
            text.push_str("\nBeside the goals (medians)\n");
        }
        for (what, values) in &self.notes {
            let _ = writeln!(text, "  {what:60} {}", short(median(values).unwrap_or(0.0)));
        }
        text
    }
}

impl Goal {
    fn judge(self, value: f64) -> Verdict {
        let reached = |goal: f64| match self {
            Self::AtLeast { .. } => value >= goal,
            // Background calls of a second count as nothing once they are spread over a run.
            Self::AtMost { .. } => value <= goal + 0.001,
        };
        let (_, must, stretch) = self.parts();
        if reached(stretch) && reached(must) {
            Verdict::Stretch
        } else if reached(must) {
            Verdict::Must
        } else {
            Verdict::Missed
        }
    }

    fn parts(self) -> (&'static str, f64, f64) {
        match self {
            Self::AtLeast { must, stretch } => (">=", must, stretch),
            Self::AtMost { must, stretch } => ("<=", must, stretch),
        }
    }
}

/// The middle one; of two, their mean.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[low], sorted[high]))
}

fn told(sample: &Sample) -> String {
    match sample.b {
        Some(b) => format!(
            "{} ({} / {})",
            short(sample.value),
            short(sample.a),
            short(b)
        ),
        None => short(sample.value),
    }
}

/// Three or four digits are all that there is to know.
fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn a_row_is_judged_by_its_median_and_a_run_that_failed_has_no_number() {
        let mut book = Book::default();
        book.pair("G1", 80.0, 100.0);
        book.pair("G1", 200.0, 100.0);
        book.pair("G1", 76.0, 100.0);
        book.void("G1", "a unit is gone".to_owned());
        book.pair("G3", 5.0, 10.0);
        book.void("G7", "nothing was drained".to_owned());
        book.pair("G5", 80.0, 0.0);
        let rows: Vec<_> = book
            .rows()
            .iter()
            .map(|row| (row.line.id, row.verdict))
            .collect();
        let expected = [
            ("G1", Verdict::Must),
            ("G3", Verdict::Missed),
            ("G5", Verdict::Void),
            ("G7", Verdict::Void),
        ];
        assert_eq!(rows, expected);
        let table = book.table();
        assert!(
            table.contains("must (1 void)") && table.contains("MISSED"),
            "{table}"
        );
    }
}
