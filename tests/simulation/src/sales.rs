//! Administrators: they put vouchers on sale, and change their minds.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ports::{Clock as _, NewAdjustment, NewVoucher, ParkedReply};
use seckill_application::{AdjustStockReply, RefundReply, SteerCommand, SteerReply};
use seckill_domain::{Amendment, Money, OrderStatus, SaleWindow, VoucherId, VoucherTerms};

use crate::coverage::Seen;
use crate::dice::Dice;
use crate::note;
use crate::site::Site;

/// What one unit costs.
pub const PRICE_MINOR: u64 = 100;

fn money(minor: u64) -> Money {
    Money {
        minor,
        currency: "CNY".parse().expect("a currency"),
    }
}

/// A voucher with settings by chance.
fn new_voucher(site: &Site) -> NewVoucher {
    let dice = &site.nature.dice;
    let opens_at = site.nature.clock.now();
    let closes_in = if dice.chance(250) {
        dice.millis(8_000..=40_000)
    } else {
        Duration::from_hours(24)
    };
    NewVoucher {
        terms: VoucherTerms {
            title: "Hot pot for two".to_owned(),
            description: None,
            face_value: money(2 * PRICE_MINOR),
            price: money(PRICE_MINOR),
            per_buyer_limit: dice.count(1..=3),
            window: SaleWindow {
                opens_at,
                closes_at: opens_at.plus(closes_in),
            },
            payment_window: Duration::from_secs(dice.within(2..=15)),
            waitlist_capacity: if dice.chance(750) {
                dice.count(1..=12)
            } else {
                0
            },
        },
        total_units: dice.count(2..=10),
    }
}

/// Puts a voucher on sale, whatever it takes.
pub async fn publish(site: Arc<Site>) {
    let new = new_voucher(&site);
    let voucher = loop {
        let new = new.clone();
        let asked = site.ask(site.any_process(), |node| async move {
            node.draft.run(&new).await
        });
        match asked.await {
            Ok((_, Ok(Ok(voucher)))) => break voucher.id,
            Ok((_, Ok(Err(refusal)))) => panic!("{refusal:?}"),
            _ => site.nature.sleep(Duration::from_millis(50)).await,
        }
    };
    while !matches!(
        steer(&site, voucher, SteerCommand::Publish).await,
        Some(SteerReply::Done(_))
    ) {
        site.nature.sleep(Duration::from_millis(50)).await;
    }
    note!(site.nature.trace, "voucher {voucher} is on sale: {new:?}");
    site.vouchers.lock().expect("no panic").push(voucher);
}

async fn steer(site: &Site, voucher: VoucherId, command: SteerCommand) -> Option<SteerReply> {
    note!(site.nature.trace, "admin: {command:?} {voucher}");
    let asked = site.ask(site.any_process(), move |node| async move {
        node.steer.run(voucher, command).await
    });
    let (_, reply) = asked.await.ok()?;
    reply.ok()
}

/// Does a few things within a time.
pub async fn administer(site: Arc<Site>, within: Duration) {
    let dice = site.nature.dice.clone();
    let actions = dice.count(0..=8);
    let millis = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    for _ in 0..actions {
        site.nature
            .sleep(dice.millis(0..=millis / u64::from(actions)))
            .await;
        let Some(voucher) = dice.pick(&site.on_sale()).copied() else {
            continue;
        };
        match dice.below(100) {
            0..30 => adjust(&site, voucher, few(&dice, 5)).await,
            30..50 => adjust(&site, voucher, -few(&dice, 3)).await,
            50..65 => pause(&site, voucher).await,
            65..70 => close(&site, voucher).await,
            70..78 => widen(&site, voucher).await,
            78..88 => settle_parked(&site).await,
            _ => refund(&site, voucher).await,
        }
    }
}

fn few(dice: &Dice, most: u32) -> i32 {
    i32::try_from(dice.count(1..=most)).unwrap_or(1)
}

async fn adjust(site: &Site, voucher: VoucherId, delta: i32) {
    let wish = NewAdjustment {
        voucher,
        delta,
        reason: "demand".to_owned(),
        key: Some(
            format!("adj-{}", site.nature.dice.within(0..=u64::MAX))
                .parse()
                .expect("a key"),
        ),
    };
    for _ in 0..3 {
        let wish = wish.clone();
        let asked = site.ask(site.any_process(), |node| async move {
            node.adjust.run(&wish).await
        });
        if let Ok((_, Ok(reply))) = asked.await {
            note!(
                site.nature.trace,
                "admin: {delta:+} of {voucher}: {reply:?}"
            );
            if matches!(reply, AdjustStockReply::Done(_)) {
                let seen = if delta > 0 {
                    Seen::TopUp
                } else {
                    Seen::Withdrawal
                };
                site.nature.coverage.saw(seen);
            }
            return;
        }
    }
}

async fn pause(site: &Site, voucher: VoucherId) {
    if matches!(
        steer(site, voucher, SteerCommand::Pause).await,
        Some(SteerReply::Done(_))
    ) {
        site.nature.coverage.saw(Seen::Pause);
    }
    site.nature
        .sleep(site.nature.dice.millis(100..=3_000))
        .await;
    for _ in 0..3 {
        if steer(site, voucher, SteerCommand::Resume).await.is_some() {
            return;
        }
    }
}

async fn close(site: &Site, voucher: VoucherId) {
    if matches!(
        steer(site, voucher, SteerCommand::Close).await,
        Some(SteerReply::Done(_))
    ) {
        site.nature.coverage.saw(Seen::Close);
    }
}

async fn widen(site: &Site, voucher: VoucherId) {
    let change = Amendment {
        waitlist_capacity: Some(site.nature.dice.count(0..=15)),
        ..Amendment::default()
    };
    steer(site, voucher, SteerCommand::Amend(change)).await;
}

/// Settles a parked message, one way or the other.
async fn settle_parked(site: &Site) {
    let asked = site.ask(site.any_process(), |node| async move {
        node.parked.list(true, None, 100).await
    });
    let Ok((_, Ok(waiting))) = asked.await else {
        return;
    };
    let Some(id) = site.nature.dice.pick(&waiting.items).map(|it| it.id) else {
        return;
    };
    let replays = site.nature.dice.chance(300);
    let asked = site.ask(site.any_process(), move |node| async move {
        if replays {
            node.parked.replay(id).await
        } else {
            node.parked.discard(id, "forged").await
        }
    });
    let Ok((_, reply)) = asked.await else { return };
    note!(
        site.nature.trace,
        "admin: parked message {id}, replay {replays}: {reply:?}"
    );
    if matches!(reply, Ok(ParkedReply::Settled)) {
        site.nature.coverage.saw(Seen::ParkedSettled);
    }
}

/// Refunds somebody's paid order.
async fn refund(site: &Site, voucher: VoucherId) {
    let paid = {
        let told = site.promises.told();
        let ours = |order| {
            told.orders
                .get(order)
                .is_some_and(|it| it.voucher == voucher)
        };
        let ends = told.ends.iter().filter(|(order, _)| ours(order));
        let paid: Vec<_> = ends
            .filter(|(_, status)| *status == OrderStatus::Paid)
            .map(|(order, _)| *order)
            .collect();
        paid
    };
    let Some(order) = site.nature.dice.pick(&paid).copied() else {
        return;
    };
    let asked = site.ask(site.any_process(), move |node| async move {
        node.refund.run(order).await
    });
    if let Ok((_, Ok(RefundReply::Refunded(order)))) = asked.await {
        note!(site.nature.trace, "admin: refunded {}", order.id);
        site.nature.coverage.saw(Seen::Refund);
        site.promises.end(order.id, order.status());
    }
}
