//! A second gate for one ledger.

use std::time::Duration;

use seckill_tests::harness::{Gate, Offer, Site, buyer, eventually};

use crate::{on_own_servers, on_own_stores};

on_own_stores!(
    a_second_gate_is_refused_while_the_first_is_in_use,
    a_process_is_stopped_whose_gate_was_replaced,
);
on_own_servers!(a_gate_that_was_wiped_is_the_same_gate);

async fn name_of(gate: &Gate) -> Option<String> {
    let name = gate.name("name");
    gate.run(redis::cmd("GET").arg(name)).await
}

async fn a_second_gate_is_refused_while_the_first_is_in_use(site: Site) {
    let process = site.start().await;
    let voucher = process.shop().sell(&Offer::of(5)).await;
    let elsewhere = format!("{}/9", site.gate_url().trim_end_matches('/'));
    let gate = [("SECKILL_GATE", &*elsewhere)];
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let secret = (
        "SECKILL_AUTH_SECRET",
        "a secret that is long enough for HS256",
    );
    let refused = site.run_with(&serve, &[gate[0], secret]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "SECKILL_GATE: this ledger has another gate";
    assert!(refused.err.contains(said), "{refused:?}");
    // Whoever comes with the same gate is welcome meanwhile.
    let second = site.start().await;
    for process in [&process, &second] {
        process.shop().buy_settled(voucher, buyer()).await;
    }
    // A gate that nobody uses any more makes way, and nobody has to do anything about it.
    process.stop().await;
    second.kill();
    let moved = site.with("SECKILL_GATE", &elsewhere).start().await;
    moved.shop().buy_settled(voucher, buyer()).await;
    assert!(moved.log().contains("the ledger has a new gate"));
}

async fn a_gate_that_was_wiped_is_the_same_gate(site: Site) {
    let process = site.start().await;
    let voucher = process.shop().sell(&Offer::of(5)).await;
    process.shop().buy_settled(voucher, buyer()).await;
    let gate = site.gate().await;
    let name = name_of(&gate).await.expect("it has a name");
    gate.flush_all().await;
    let second = site.start().await;
    assert_eq!(name_of(&gate).await, Some(name.clone()));
    second.shop().buy_settled(voucher, buyer()).await;
    // With nobody there to give the name back it has a new one soon.
    process.kill();
    second.kill();
    gate.flush_all().await;
    let third = site.start().await;
    third.shop().buy_settled(voucher, buyer()).await;
    assert_ne!(name_of(&gate).await, Some(name));
}

async fn a_process_is_stopped_whose_gate_was_replaced(site: Site) {
    let process = site.start().await;
    let statement = "UPDATE deployment SET gate = LPAD(?, 32, '0')";
    assert_eq!(site.ledger().await.change(statement, 7).await, 1);
    eventually("it has ended", Duration::from_secs(30), async || {
        let ended = process.log().contains("not serving");
        ended.then_some(()).ok_or(process.log())
    })
    .await;
    assert!(process.log().contains("the ledger has another gate"));
}
