//! What the decorators and the database's connections count, for `/metrics`.

use std::sync::Arc;

use seckill_decorators::{
    BatchedGate, GATE_LATENCY_BOUNDS_US, GateMeters, GateOutcome, SoldOutGate,
};
use seckill_http::{MetricSheet, MetricSource};
use seckill_mysql::LedgerMeters;

pub(super) fn gate_source(
    meters: Arc<GateMeters>,
    batches: Arc<BatchedGate>,
    sold_out: Arc<SoldOutGate>,
) -> MetricSource {
    Box::new(move |sheet: &mut MetricSheet| {
        let seen = meters.snapshot();
        for (outcome, count) in GateOutcome::ALL.into_iter().zip(seen.outcomes) {
            sheet.counter(
                "seckill_gate_attempts",
                "Attempts by what the gate said; one purchase may ask more than once",
                &[("outcome", outcome.label())],
                count,
            );
        }
        sheet.latency(
            "seckill_gate_seconds",
            "How long a call of the gate took, for a whole batch of attempts",
            &[],
            &GATE_LATENCY_BOUNDS_US,
            &seen.buckets,
            seen.latency_us,
        );
        let turned_away = batches.tally().turned_away;
        let help = "Attempts that were not sent because too many waited, or for too long";
        sheet.counter("seckill_gate_turned_away", help, &[], turned_away);
        let help = "Attempts on a sale known to be sold out that the gate was not asked about";
        let answered = sold_out.answered();
        sheet.counter("seckill_gate_known_sold_out", help, &[], answered);
    })
}

pub(super) fn ledger_source(meters: Arc<LedgerMeters>) -> MetricSource {
    Box::new(move |sheet: &mut MetricSheet| {
        let counts = meters.counts();
        for (reason, count) in [
            ("deadlock", counts.deadlocks),
            ("lock_wait", counts.lock_wait_timeouts),
            ("statement_timeout", counts.statement_timeouts),
            ("batch_reexamined", counts.batches_reexamined),
        ] {
            let help = "Work of the database that had to be done again, by reason";
            sheet.counter(
                "seckill_database_retries",
                help,
                &[("reason", reason)],
                count,
            );
        }
        let help = "Large batches whose halves were written at the same time";
        let abreast = counts.batches_abreast;
        sheet.counter("seckill_database_batches_abreast", help, &[], abreast);
        let (opened, dropped) = (counts.connects, counts.connections_dropped);
        let help = "Connections to the database that were opened";
        sheet.counter("seckill_database_connects", help, &[], opened);
        let help = "Connections to the database that were closed in the middle of their work";
        sheet.counter("seckill_database_connections_dropped", help, &[], dropped);
    })
}
