//! Reports of reconciliations that ran.

use std::collections::HashMap;

use seckill_application::Fault;
use seckill_application::ports::{
    Difference, DifferenceKind, LastRuns, Page, Report, Told, VoucherFinding,
};
use seckill_domain::invariants::Tally;
use seckill_domain::{BuyerId, Claim, OrderId, Timestamp, VoucherId};
use sqlx::mysql::MySqlRow;
use time::PrimitiveDateTime;

use super::loads;
use crate::fault::{Trouble, at_most};
use crate::json_rows::{JsonRows, json_ids, json_parts, wanted_ids};
use crate::page::{all, highest, page};
use crate::row::{get, get_text, get_time, moment, words};
use crate::session::{Session, Statement, give_up, statement};
use crate::store::Store;

const FORGOTTEN_MAX: usize = 100;

words!(
    /// The word for what is wrong about an order.
    difference_word, read_difference, DifferenceKind {
        NotDelivered = "not_delivered",
        MessageGone = "message_gone",
        HolderGone = "holder_gone",
        NotReleased = "not_released",
        WaiterGone = "waiter_gone",
        WaiterUnknown = "waiter_unknown",
        PlaceDiffers = "place_differs",
    }
);

/// Stores a report, whole or not at all. Returns its number.
pub(super) async fn store(store: &Store, report: &Report) -> Result<u64, Fault> {
    const PORT: &str = "reconciliations.store";
    let mut session = store.begin(PORT).await?;
    match write(&mut session, report).await {
        Ok(id) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            Ok(id)
        }
        Err(trouble) => Err(give_up(session, PORT, trouble).await),
    }
}

async fn write(session: &mut Session, report: &Report) -> Result<u64, Trouble> {
    const HEAD: &str = "INSERT INTO reconciliations \
           (started_at, finished_at, is_full, is_dry_run) VALUES (?, ?, ?, ?)";
    let head = statement(HEAD)
        .bind(at(report.started_at)?)
        .bind(at(report.finished_at)?)
        .bind(report.full)
        .bind(report.dry_run);
    let id = session.execute(head).await?.last_insert_id();
    write_findings(session, id, report).await?;
    write_differences(session, id, report).await?;
    if !report.dry_run {
        loads::tell(session, report).await?;
    }
    Ok(id)
}

fn at(when: Timestamp) -> Result<PrimitiveDateTime, Trouble> {
    moment(when).ok_or_else(|| Trouble::broken("a time outside the years 1 to 9999"))
}

async fn write_findings(session: &mut Session, id: u64, report: &Report) -> Result<(), Trouble> {
    const SQL: &str = "INSERT INTO reconciliation_findings \
           (reconciliation_id, place, voucher_id, total_units, free_units, in_flight_units, \
            parked_units, awaiting_payment_units, paid_units, holds, free_drift, at_gate, \
            reloads, stock_drift, terms_differ) \
         SELECT ?, new.place, new.voucher, new.total, new.free, new.in_flight, new.parked, \
            new.awaiting, new.paid, new.holds, new.drift, new.at_gate, new.reloads, \
            new.stock_drift, new.terms_differ \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             place INT UNSIGNED PATH '$[0]', \
             voucher BIGINT UNSIGNED PATH '$[1]', \
             total BIGINT PATH '$[2]', \
             free BIGINT PATH '$[3]', \
             in_flight BIGINT PATH '$[4]', \
             parked BIGINT PATH '$[5]', \
             awaiting BIGINT PATH '$[6]', \
             paid BIGINT PATH '$[7]', \
             holds INT PATH '$[8]', \
             drift BIGINT PATH '$[9]', \
             at_gate INT PATH '$[10]', \
             reloads INT UNSIGNED PATH '$[11]', \
             stock_drift BIGINT PATH '$[12]', \
             terms_differ INT PATH '$[13]')) new";
    let rows = finding_rows(report)?;
    insert(session, || statement(SQL).bind(id), rows).await
}

fn finding_rows(report: &Report) -> Result<Vec<JsonRows>, Trouble> {
    let rows = report.vouchers.iter().enumerate().map(|(place, found)| {
        let tally = &found.tally;
        (
            place,
            found.voucher.get(),
            tally.total,
            tally.free,
            tally.in_flight,
            tally.parked,
            tally.awaiting_payment,
            tally.paid,
            u8::from(found.holds),
            found.free_drift,
            u8::from(found.at_gate),
            found.reloads,
            found.stock_drift,
            u8::from(found.terms_differ),
        )
    });
    json_parts(rows)
}

async fn write_differences(session: &mut Session, id: u64, report: &Report) -> Result<(), Trouble> {
    const SQL: &str = "INSERT INTO reconciliation_differences \
           (reconciliation_id, finding_place, place, order_id, user_id, quantity, kind, repaired, \
            idempotency_key) \
         SELECT ?, new.finding, new.place, new.subject, new.buyer, new.quantity, new.kind, \
            new.repaired, new.idempotency_key \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             finding INT UNSIGNED PATH '$[0]', \
             place INT UNSIGNED PATH '$[1]', \
             subject BIGINT UNSIGNED PATH '$[2]', \
             buyer BIGINT UNSIGNED PATH '$[3]', \
             quantity INT UNSIGNED PATH '$[4]', \
             kind VARCHAR(16) CHARACTER SET ascii PATH '$[5]', \
             repaired INT PATH '$[6]', \
             idempotency_key VARCHAR(64) CHARACTER SET ascii PATH '$[7]')) new";
    let rows = difference_rows(report)?;
    insert(session, || statement(SQL).bind(id), rows).await
}

fn difference_rows(report: &Report) -> Result<Vec<JsonRows>, Trouble> {
    let rows = report.vouchers.iter().enumerate().flat_map(|(at, found)| {
        let differences = found.differences.iter().enumerate();
        differences.map(move |(place, difference)| {
            let claim = &difference.claim;
            (
                at,
                place,
                claim.order.get(),
                claim.buyer.get(),
                claim.quantity,
                difference_word(difference.kind),
                u8::from(difference.repaired),
                claim
                    .key
                    .as_ref()
                    .map(seckill_domain::IdempotencyKey::as_str),
            )
        })
    });
    json_parts(rows)
}

async fn insert(
    session: &mut Session,
    statement: impl Fn() -> Statement<'static>,
    rows: Vec<JsonRows>,
) -> Result<(), Trouble> {
    for part in rows {
        session.execute(statement().bind(part.text)).await?;
    }
    Ok(())
}

/// When the last ones that could repair began.
pub(super) async fn last_runs(store: &Store) -> Result<LastRuns, Fault> {
    const PORT: &str = "reconciliations.last_runs";
    /// From the end of an index each.
    const SQL: &str = "SELECT 0 AS is_full, last.started_at \
         FROM (SELECT started_at FROM reconciliations WHERE is_dry_run = 0 AND is_full = 0 \
           ORDER BY id DESC LIMIT 1) last \
         UNION ALL SELECT 1 AS is_full, last.started_at \
         FROM (SELECT started_at FROM reconciliations WHERE is_dry_run = 0 AND is_full = 1 \
           ORDER BY id DESC LIMIT 1) last";
    let rows = store.read(PORT, || statement(SQL)).await?;
    let runs = all(PORT, &rows, |row| {
        Ok((
            get::<i64>(row, "is_full")? != 0,
            get_time(row, "started_at")?,
        ))
    })?;
    let full = runs.iter().find(|(is_full, _)| *is_full);
    Ok(LastRuns {
        any: runs.iter().map(|(_, at)| *at).max(),
        full: full.map(|(_, at)| *at),
    })
}

/// What the newest report about a voucher that was no dry run told of its orders.
pub(super) async fn told_before(store: &Store, voucher: VoucherId) -> Result<Vec<Told>, Fault> {
    const PORT: &str = "reconciliations.told_before";
    const SQL: &str = "SELECT d.order_id, d.user_id, d.kind FROM ( \
           SELECT f.reconciliation_id, f.place FROM reconciliation_findings f \
             STRAIGHT_JOIN reconciliations r ON r.id = f.reconciliation_id AND r.is_dry_run = 0 \
           WHERE f.voucher_id = ? ORDER BY f.reconciliation_id DESC LIMIT 1) newest \
         JOIN reconciliation_differences d ON d.reconciliation_id = newest.reconciliation_id \
           AND d.finding_place = newest.place";
    let read = || statement(SQL).bind(voucher.get());
    let rows = store.read(PORT, read).await?;
    all(PORT, &rows, |row| {
        Ok(Told {
            order: OrderId::new(get(row, "order_id")?),
            buyer: BuyerId::new(get(row, "user_id")?),
            kind: read_difference(get(row, "kind")?)?,
        })
    })
}

/// Forgets old reports, with all that was found.
pub(super) async fn forget(store: &Store, before: Timestamp, max: usize) -> Result<usize, Fault> {
    const PORT: &str = "reconciliations.forget";
    /// Looks at the oldest ones alone. Inside another table, because the servers do not read from
    /// what they delete from.
    const SQL: &str = "DELETE FROM reconciliations WHERE started_at < ? \
         AND id IN (SELECT id FROM (SELECT id FROM reconciliations ORDER BY id LIMIT ?) oldest)";
    at_most(PORT, max, FORGOTTEN_MAX)?;
    let before = at(before).map_err(|trouble| trouble.before_commit(PORT))?;
    let write = || statement(SQL).bind(before).bind(max as u64);
    let forgotten = store.write(PORT, write).await?;
    Ok(usize::try_from(forgotten).unwrap_or(max))
}

/// Reports, newest first.
pub(super) async fn list(
    store: &Store,
    port: &'static str,
    before: Option<u64>,
    limit: usize,
) -> Result<Page<Report>, Fault> {
    const HEADS: &str = "SELECT id, started_at, finished_at, is_full, is_dry_run \
         FROM reconciliations WHERE id <= ? ORDER BY id DESC LIMIT ?";
    const FINDINGS: &str = concat!(
        "SELECT f.reconciliation_id, f.voucher_id, f.total_units, f.free_units, \
           f.in_flight_units, f.parked_units, f.awaiting_payment_units, f.paid_units, f.holds, \
           f.free_drift, f.at_gate, f.reloads, f.stock_drift, f.terms_differ FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN reconciliation_findings f ON f.reconciliation_id = wanted.id \
         ORDER BY f.reconciliation_id, f.place"
    );
    const DIFFERENCES: &str = concat!(
        "SELECT d.reconciliation_id, d.finding_place, d.order_id, d.user_id, d.quantity, \
           d.idempotency_key, d.kind, d.repaired FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN reconciliation_differences d ON d.reconciliation_id = wanted.id \
         ORDER BY d.reconciliation_id, d.finding_place, d.place"
    );
    let read = || {
        statement(HEADS)
            .bind(highest(before))
            .bind(limit as u64 + 1)
    };
    let heads = store.read(port, read).await?;
    let mut reports = page(port, &heads, limit, head, |report| report.id)?;
    let ids = json_ids(reports.items.iter().map(|report| report.id));
    let findings = store.read(port, || statement(FINDINGS).bind(&ids)).await?;
    let differences = store
        .read(port, || statement(DIFFERENCES).bind(&ids))
        .await?;
    let filled = fill(&mut reports.items, &findings, &differences);
    filled.map_err(|trouble| trouble.before_commit(port))?;
    Ok(reports)
}

/// Puts what was found into its report, and each difference into its finding.
fn fill(
    reports: &mut [Report],
    findings: &[MySqlRow],
    differences: &[MySqlRow],
) -> Result<(), Trouble> {
    let places = reports.iter().enumerate();
    let places: HashMap<u64, usize> = places.map(|(place, report)| (report.id, place)).collect();
    for row in findings {
        let place = places.get(&get(row, "reconciliation_id")?).copied();
        if let Some(report) = place.and_then(|place| reports.get_mut(place)) {
            report.vouchers.push(finding(row)?);
        }
    }
    for row in differences {
        let place = places.get(&get(row, "reconciliation_id")?).copied();
        let finding: u32 = get(row, "finding_place")?;
        let report = place.and_then(|place| reports.get_mut(place));
        let found = report.and_then(|report| report.vouchers.get_mut(finding as usize));
        if let Some(found) = found {
            let voucher = found.voucher;
            found.differences.push(difference(row, voucher)?);
        }
    }
    Ok(())
}

fn head(row: &MySqlRow) -> Result<Report, Trouble> {
    Ok(Report {
        id: get(row, "id")?,
        started_at: get_time(row, "started_at")?,
        finished_at: get_time(row, "finished_at")?,
        full: get::<u8>(row, "is_full")? != 0,
        dry_run: get::<u8>(row, "is_dry_run")? != 0,
        vouchers: Vec::new(),
    })
}

fn finding(row: &MySqlRow) -> Result<VoucherFinding, Trouble> {
    Ok(VoucherFinding {
        voucher: VoucherId::new(get(row, "voucher_id")?),
        tally: Tally {
            total: get(row, "total_units")?,
            free: get(row, "free_units")?,
            in_flight: get(row, "in_flight_units")?,
            parked: get(row, "parked_units")?,
            awaiting_payment: get(row, "awaiting_payment_units")?,
            paid: get(row, "paid_units")?,
        },
        holds: get::<u8>(row, "holds")? != 0,
        free_drift: get(row, "free_drift")?,
        stock_drift: get(row, "stock_drift")?,
        terms_differ: get::<u8>(row, "terms_differ")? != 0,
        at_gate: get::<u8>(row, "at_gate")? != 0,
        reloads: get(row, "reloads")?,
        differences: Vec::new(),
    })
}

fn difference(row: &MySqlRow, voucher: VoucherId) -> Result<Difference, Trouble> {
    Ok(Difference {
        claim: Claim {
            order: OrderId::new(get(row, "order_id")?),
            voucher,
            buyer: BuyerId::new(get(row, "user_id")?),
            quantity: get(row, "quantity")?,
            key: get_text(row, "idempotency_key")?,
        },
        kind: read_difference(get(row, "kind")?)?,
        repaired: get::<u8>(row, "repaired")? != 0,
    })
}
