//! The table of what happened.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::history::{Call, History};
use super::plan::Plan;

/// Outcomes and latencies, for people.
pub(super) fn table(plan: &Plan, history: &History, rushed: Duration) -> String {
    let log = history.log();
    let mut text = String::new();
    let presses: u64 = log
        .answers
        .iter()
        .filter(|((call, _), _)| *call == Call::Buy)
        .map(|(_, count)| count)
        .sum();
    let _ = writeln!(
        text,
        "{} buyers, {} units, voucher {}, seed {}: {presses} purchases in {:.3} s, {:.0} a second",
        plan.buyers,
        plan.units,
        history.voucher,
        plan.seed,
        rushed.as_secs_f64(),
        per_second(presses, rushed),
    );
    let waited = log.orders.values().filter(|order| order.waited).count();
    let granted = log.orders.len() - waited;
    let _ = writeln!(
        text,
        "{granted} orders were granted at once, {waited} waited\n"
    );
    let _ = writeln!(text, "  {:<14} {:<24} {:>9}", "call", "answer", "count");
    for ((call, word), count) in &log.answers {
        let _ = writeln!(text, "  {:<14} {word:<24} {count:>9}", call.word());
    }
    let _ = writeln!(
        text,
        "\n  {:<14} {:>9} {:>9} {:>9} {:>9}",
        "latency", "p50", "p95", "p99", "max"
    );
    for (call, latencies) in &log.latencies {
        let _ = writeln!(
            text,
            "  {:<14} {:>9} {:>9} {:>9} {:>9}",
            call.word(),
            at(latencies, 0.50),
            at(latencies, 0.95),
            at(latencies, 0.99),
            millis(latencies.max()),
        );
    }
    text
}

fn at(latencies: &Histogram<u64>, quantile: f64) -> String {
    millis(latencies.value_at_quantile(quantile))
}

#[expect(clippy::cast_precision_loss, reason = "a rounded number for people")]
fn millis(micros: u64) -> String {
    format!("{:.2} ms", micros as f64 / 1_000.0)
}

#[expect(clippy::cast_precision_loss, reason = "a rounded number for people")]
fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(f64::EPSILON)
}
