//! What is looked up when the page is asked for.

use seckill_application::Meters;
use seckill_application::ports::{Backlog, VoucherFilter};
use seckill_domain::{PartitionId, Pulse, VoucherId};

use super::MetricSheet;
use crate::health::{Health, in_time};

/// Most vouchers on the page, the newest first.
const VOUCHERS_MAX: usize = 100;

/// What the neighbours said. What they did not say is left out of the page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    backlogs: Vec<(PartitionId, Backlog)>,
    sales: Vec<(VoucherId, Pulse)>,
}

pub(super) async fn write(health: &Health, sheet: &mut MetricSheet) {
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
    let samples = health.samples.get(Samples::take(health)).await;
    samples.write(sheet);
    let remembered = health.vitals.remembered.len() as u64;
    sheet.gauge(
        "seckill_remembered_answers",
        "Grants and places answered by this process that the ledger is not known to have",
        &[],
        remembered,
    );
    meters(&health.vitals.meters, sheet);
}

impl Samples {
    async fn take(health: &Health) -> Self {
        let (backlogs, sales) = futures::join!(health.backlogs(), Self::sales(health));
        Self {
            backlogs: backlogs.unwrap_or_default(),
            sales: sales.unwrap_or_default(),
        }
    }

    /// Free units and waiting buyers of the vouchers on sale, as the gate has them.
    async fn sales(health: &Health) -> Option<Vec<(VoucherId, Pulse)>> {
        let (hot, rows) = (&health.vitals.hot, &health.vitals.ledger);
        let on_sale = rows
            .ledger
            .vouchers(VoucherFilter::OnSale, None, VOUCHERS_MAX);
        let page = in_time(on_sale).await?;
        let ids: Vec<VoucherId> = page.items.iter().map(|voucher| voucher.id).collect();
        let facts = in_time(hot.gate.facts(&ids)).await?;
        let known = ids.into_iter().zip(facts);
        Some(
            known
                .filter_map(|(id, facts)| Some((id, facts?.pulse)))
                .collect(),
        )
    }

    fn write(&self, sheet: &mut MetricSheet) {
        for (partition, backlog) in &self.backlogs {
            let partition = partition.to_string();
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
                sheet.gauge(name, help, &[("partition", &*partition)], value);
            }
        }
        for (voucher, pulse) in &self.sales {
            let voucher = voucher.to_string();
            for (name, help, value) in [
                (
                    "seckill_free_units",
                    "Units nobody has, at the gate",
                    pulse.free,
                ),
                ("seckill_waitlist_length", "Buyers who wait", pulse.waiting),
            ] {
                sheet.gauge(name, help, &[("voucher", &*voucher)], u64::from(value));
            }
        }
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
            "seckill_sales_reloaded",
            "Sales loaded again because the gate had lost them or had them wrong",
            &meters.sales_reloaded,
        ),
        (
            "seckill_epochs_begun",
            "Times a partition began a new epoch",
            &meters.epochs_begun,
        ),
        (
            "seckill_answers_offered",
            "Grants and places offered to the gate again",
            &meters.answers_offered,
        ),
    ] {
        sheet.counter(name, help, &[], counter.get());
    }
}
