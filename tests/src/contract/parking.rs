//! Parked messages to settle.

use seckill_application::ports::{
    AdjustmentReply, AdjustmentState, BatchItem, EntryId, NewAdjustment, ParkReason, ParkedMessage,
    ParkedReply, Unreadable, Verdict,
};
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, GateUpdate, GateVersion, SaleStatus, Voucher, VoucherId,
};

use super::desk::{Desk, claim, terms};

pub(super) const SETTLED: ParkedReply = ParkedReply::Settled;

pub(super) const UNFIT: ParkedReply = ParkedReply::StillUnfit(ParkReason::BadValues);

pub(super) async fn list(desk: &Desk<'_>, waiting: bool) -> Vec<ParkedMessage> {
    let page = desk.ports.parked.list(waiting, None, 100).await.unwrap();
    page.items
}

pub(super) async fn newest(desk: &Desk<'_>) -> ParkedMessage {
    list(desk, false).await.remove(0)
}

pub(super) async fn replay(desk: &Desk<'_>, message: &ParkedMessage) -> ParkedReply {
    desk.ports.parked.replay(message.id).await.unwrap()
}

pub(super) async fn discard(desk: &Desk<'_>, message: &ParkedMessage) -> ParkedReply {
    let discarded = desk.ports.parked.discard(message.id, "nobody's").await;
    discarded.unwrap()
}

/// Parks a decision, and returns its message.
pub(super) async fn parked(desk: &Desk<'_>, decision: Decision) -> ParkedMessage {
    let verdict = desk.apply_one(decision).await;
    assert!(matches!(verdict, Verdict::Parked(_)), "{verdict:?}");
    newest(desk).await
}

/// A voucher of whose draft these claims are parked, and that is on sale since.
pub(super) async fn published_late(
    desk: &Desk<'_>,
    units: u32,
    limit: u32,
    decisions: impl Fn(&Voucher) -> Vec<Decision>,
) -> (Voucher, Vec<ParkedMessage>) {
    let draft = desk.draft(units, terms(limit)).await;
    for decision in decisions(&draft) {
        parked(desk, decision).await;
    }
    let published = SaleStatus::Published;
    let voucher = desk.set_status(draft.id, published, false).await;
    let mut messages = list(desk, true).await;
    messages.reverse();
    (voucher, messages)
}

/// A voucher that was not in the ledger when these claims came, and is on sale since.
pub(super) async fn missing_before(
    desk: &Desk<'_>,
    units: u32,
    decisions: impl Fn(&Voucher) -> Vec<Decision>,
) -> (Voucher, Vec<ParkedMessage>) {
    let before = desk.voucher(1, 1).await;
    let missing = Voucher {
        id: VoucherId::new(before.id.get() + 1),
        ..before
    };
    for decision in decisions(&missing) {
        let message = parked(desk, decision).await;
        let known = (message.reason, message.units);
        assert_eq!(known, (ParkReason::UnknownVoucher, 0), "of no stock yet");
    }
    let voucher = desk.voucher(units, 2).await;
    assert_eq!(voucher.id, missing.id);
    let mut messages = list(desk, true).await;
    messages.reverse();
    (voucher, messages)
}

/// One whose grant is parked.
pub(super) async fn one_parked(desk: &Desk<'_>) -> (Voucher, ParkedMessage, Claim) {
    let grant = |voucher: &Voucher| vec![Decision::Granted(claim(voucher, 1, 2))];
    let (voucher, mut messages) = published_late(desk, 5, 2, grant).await;
    let message = messages.remove(0);
    let claim = message.claim.clone().expect("a grant");
    (voucher, message, claim)
}

pub(super) async fn updates(desk: &Desk<'_>, voucher: &Voucher) -> Vec<GateUpdate> {
    let start = GateVersion::default();
    let updates = desk.ports.updates.after(voucher.id, start, 100).await;
    updates.unwrap()
}

/// A grant of the order of another buyer's live one, which nobody can apply.
pub(super) fn impostor(of: &Claim, quantity: u32) -> Claim {
    Claim {
        buyer: BuyerId::new(of.buyer.get() + 500),
        quantity,
        ..of.clone()
    }
}

fn unreadable(entry: EntryId) -> BatchItem {
    let body = Unreadable {
        raw: "{\"v\":9} \u{706b} 'quoted' \\".to_owned(),
        reason: "version 9".to_owned(),
        named: None,
    };
    BatchItem::Unreadable {
        entry,
        body,
        taken: None,
    }
}

pub(super) async fn parked_unreadable(desk: &Desk<'_>) -> ParkedMessage {
    let voucher = desk.voucher(5, 1).await;
    let partition = desk.partition_of(voucher.id);
    let mut batch = desk.batch(partition, Vec::new()).await;
    batch.up_to.counter += 1;
    batch.items = vec![unreadable(batch.up_to)];
    desk.commit(&batch).await;
    let message = newest(desk).await;
    assert_eq!((message.partition, message.entry), (partition, batch.up_to));
    message
}

pub(super) fn unknown(voucher: &Voucher) -> VoucherId {
    VoucherId::new(voucher.id.get() + 1_000 * u64::from(super::PARTITIONS))
}

/// A withdrawal that is parked, on a voucher that is on sale since.
pub(super) async fn withdrawal(desk: &Desk<'_>) -> (Voucher, ParkedMessage, AdjustmentId) {
    let draft = desk.draft(5, terms(1)).await;
    let mut unit = desk.begin().await;
    let wish = NewAdjustment {
        voucher: draft.id,
        delta: -2,
        reason: "spoiled".to_owned(),
        key: None,
    };
    let recorded = unit.record_adjustment(&wish).await.unwrap();
    let AdjustmentReply::Recorded(recorded) = recorded else {
        panic!("{recorded:?}");
    };
    unit.commit().await.unwrap();
    let withdrawn = Decision::Withdrawn {
        voucher: draft.id,
        units: 2,
        adjustment: recorded.id,
    };
    let message = parked(desk, withdrawn).await;
    assert_eq!(message.claim, None);
    let published = SaleStatus::Published;
    let voucher = desk.set_status(draft.id, published, false).await;
    (voucher, message, recorded.id)
}

pub(super) async fn state_of(desk: &Desk<'_>, id: AdjustmentId) -> AdjustmentState {
    let stored = desk.begin().await.adjustment(id).await.unwrap();
    stored.expect("an adjustment").state
}
