//! Guards of the gate when it follows the ledger.

use std::sync::Arc;

use seckill_application::ports::{HotPath, LedgerPorts, NewAdjustment};
use seckill_application::{AdjustStockReply, Loaded, Relayed};
use seckill_domain::invariants::InvariantId::Conservation;
use seckill_domain::{BuyerId, GateChange};
use seckill_tests::controls::{
    Bench, Branch, Control, Findings, KeptUpdates, Offer, Stores, TamperedGate, gate,
};

const OFFER: Offer = Offer {
    units: 10,
    limit: 1,
    waitlist: 0,
};

/// An order is cancelled. Two who compared ledger and gate just before the gate heard of it each have
/// its units released once more, as a repair does.
async fn a_release_is_repaired_twice(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let branch = bench.branch().await;
    let voucher = branch.on_sale(OFFER).await;
    let order = branch.granted(&voucher, 7).await;
    branch.settle().await;
    branch.give_up(order, 7).await;
    for _ in 0..2 {
        let mut repair = branch.stores.ledger.ledger.begin().await.unwrap();
        let release = GateChange::Release {
            order,
            buyer: BuyerId::new(7),
            quantity: 1,
        };
        repair.push_update(voucher.id, &[release]).await.unwrap();
        repair.commit().await.unwrap();
    }
    assert_eq!(
        branch.relay.run(voucher.id).await.unwrap(),
        Relayed::UpToDate
    );
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **holder check of a release**. Each repeat of a release makes a unit out of
/// nothing: the gate has 12 free units of 10 (I1).
#[tokio::test]
async fn a_release_takes_from_the_holder_or_does_nothing() {
    let control = Control::of(gate::RELEASE_FROM_HOLDER);
    let Some(pair) = control.run(a_release_is_repaired_twice).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into()]);
}

/// Units are added; the relay hands the update over and dies before the outbox knows; the next relay
/// hands it over again.
async fn an_update_comes_twice(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let updates = Arc::new(KeptUpdates(stores.ledger.updates.clone()));
    let ledger = LedgerPorts {
        updates,
        ..stores.ledger.clone()
    };
    let branch = Branch::over(Stores { ledger, ..stores });
    let voucher = branch.on_sale(OFFER).await;
    let wish = NewAdjustment {
        voucher: voucher.id,
        delta: 5,
        reason: "more have come".to_owned(),
        key: None,
    };
    let added = branch.adjust.run(&wish).await.unwrap();
    assert!(matches!(added, AdjustStockReply::Done(_)), "{added:?}");
    assert_eq!(
        branch.relay.run(voucher.id).await.unwrap(),
        Relayed::UpToDate
    );
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **check of the gate version** that ignores what is not newer. An update that comes
/// twice adds its units twice: the gate has units that the ledger does not (I1).
#[tokio::test]
async fn the_gate_version_makes_a_relay_repeatable() {
    let control = Control::of(gate::VERSION_IS_NEWER);
    let Some(pair) = control.run(an_update_comes_twice).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into()]);
}

/// Two orders are cancelled. The first update reached a Redis that lost it again, so the outbox has
/// forgotten it; the second comes.
async fn an_update_is_missing(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let deaf = TamperedGate {
        deaf: true,
        ..TamperedGate::before(stores.hot.gate.clone())
    };
    let hot = HotPath {
        gate: Arc::new(deaf),
        ..stores.hot.clone()
    };
    let unheard = Branch::over(Stores {
        hot,
        ..stores.clone()
    });
    let branch = Branch::over(stores);
    let voucher = branch.on_sale(OFFER).await;
    let orders = [
        branch.granted(&voucher, 7).await,
        branch.granted(&voucher, 8).await,
    ];
    branch.settle().await;
    unheard.give_up(orders[0], 7).await;
    let ports = &branch.stores.ledger;
    let first = ports.ledger.voucher(voucher.id).await.unwrap();
    let first = first.expect("a voucher").version;
    ports.updates.forget(voucher.id, first).await.unwrap();
    unheard.give_up(orders[1], 8).await;
    if branch.relay.run(voucher.id).await.unwrap() == Relayed::NotLoaded {
        let loaded = branch.load.run(voucher.id, std::time::Duration::ZERO).await;
        assert_eq!(loaded.unwrap(), Loaded::Loaded);
    }
    findings.check_units(&branch.tally(&voucher).await);
    findings
}

/// Takes away the **check of the gate version** that refuses gaps. A gate that lost an update
/// follows the next one, and the unit of the lost one never comes back: a stock black hole (I1).
#[tokio::test]
async fn the_gate_version_finds_a_lost_update() {
    let control = Control::of(gate::VERSION_HAS_NO_GAP);
    let Some(pair) = control.run(an_update_is_missing).await else {
        return;
    };
    pair.assert_guards_against([Conservation.into()]);
}
