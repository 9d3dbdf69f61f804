//! What is looked up when the page is asked for.

use std::time::Duration;

use seckill_application::Meters;
use seckill_application::ports::VoucherFilter;

use super::MetricSheet;
use crate::health::{Health, Vitals};

/// Most vouchers on the page, the newest first.
const VOUCHERS_MAX: usize = 100;
/// How long a neighbour may take; beyond it its numbers are left out.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn write(health: &Health, sheet: &mut MetricSheet) {
    let vitals = &health.vitals;
    neighbours(health, sheet).await;
    backlogs(health, sheet).await;
    if tokio::time::timeout(PATIENCE, sales(vitals, sheet))
        .await
        .is_err()
    {
        tracing::debug!("no sales on the page of metrics: a neighbour took too long");
    }
    let remembered = vitals.remembered.len() as u64;
    sheet.gauge(
        "seckill_remembered_grants",
        "Grants answered by this process that the ledger is not known to have",
        &[],
        remembered,
    );
    meters(&vitals.meters, sheet);
}

async fn neighbours(health: &Health, sheet: &mut MetricSheet) {
    let readiness = health.readiness().await;
    for neighbour in ["gate", "ledger"] {
        let up = u64::from(readiness.is_up(neighbour));
        let labels = [("neighbour", neighbour)];
        sheet.gauge(
            "seckill_neighbour_up",
            "Whether a neighbour answers",
            &labels,
            up,
        );
    }
}

async fn backlogs(health: &Health, sheet: &mut MetricSheet) {
    for (partition, backlog) in health.backlogs().await.unwrap_or_default() {
        let partition = partition.to_string();
        let labels = [("partition", &*partition)];
        for (name, help, value) in [
            (
                "seckill_stream_lag",
                "Decisions that the ledger does not have yet",
                backlog.decisions,
            ),
            (
                "seckill_stream_pending",
                "Entries delivered and not acknowledged",
                backlog.pending,
            ),
            (
                "seckill_stream_entries",
                "Entries in the stream",
                backlog.length,
            ),
        ] {
            sheet.gauge(name, help, &labels, value);
        }
    }
}

/// Free units and waiting buyers of the vouchers on sale, as the gate has them.
async fn sales(vitals: &Vitals, sheet: &mut MetricSheet) {
    let ledger = &vitals.ledger.ledger;
    let Ok(page) = ledger
        .vouchers(VoucherFilter::OnSale, None, VOUCHERS_MAX)
        .await
    else {
        return;
    };
    let ids: Vec<_> = page.items.iter().map(|voucher| voucher.id).collect();
    let Ok(facts) = vitals.hot.gate.facts(&ids).await else {
        return;
    };
    for (id, facts) in ids.iter().zip(facts) {
        let Some(facts) = facts else { continue };
        let id = id.to_string();
        let labels = [("voucher", &*id)];
        let free = u64::from(facts.pulse.free);
        let waiting = u64::from(facts.pulse.waiting);
        sheet.gauge(
            "seckill_free_units",
            "Units nobody has, at the gate",
            &labels,
            free,
        );
        sheet.gauge(
            "seckill_waitlist_length",
            "Buyers who wait",
            &labels,
            waiting,
        );
    }
}

fn meters(meters: &Meters, sheet: &mut MetricSheet) {
    for (name, help, counter) in [
        (
            "seckill_ledger_confirmed",
            "Decisions that the ledger confirmed",
            &meters.confirmed,
        ),
        (
            "seckill_ledger_refusals",
            "Granted orders that the ledger refused",
            &meters.rejected,
        ),
        (
            "seckill_parked",
            "Entries and decisions that were parked",
            &meters.parked,
        ),
        (
            "seckill_ledger_batches",
            "Batches applied to the ledger",
            &meters.batches,
        ),
        (
            "seckill_ledger_retries",
            "Batches that had to be tried again",
            &meters.batch_retries,
        ),
        (
            "seckill_orders_expired",
            "Orders that expired",
            &meters.expired,
        ),
        (
            "seckill_updates_followed",
            "Updates of the ledger that the gate followed",
            &meters.updates_followed,
        ),
        (
            "seckill_sales_loaded",
            "Sales loaded into the gate",
            &meters.sales_loaded,
        ),
        (
            "seckill_epochs_begun",
            "Times a partition began a new epoch",
            &meters.epochs_begun,
        ),
        (
            "seckill_grants_offered",
            "Grants offered to the gate again",
            &meters.grants_offered,
        ),
    ] {
        sheet.counter(name, help, &[], counter.get());
    }
}
