//! Guards between the stream and the ledger.

use std::sync::Arc;

use seckill_application::Step;
use seckill_application::ports::{HotPath, LedgerPorts};
use seckill_domain::invariants::InvariantId::{Conservation, NoSilentLoss, Once};
use seckill_domain::{OrderId, OrderStatus, PartitionId, Voucher};
use seckill_tests::controls::{
    self, AckOrder, Bench, Branch, BrokerStream, Checkpoint, Control, Failure, Findings, Offer,
    Stores, TamperedAdmissions, drain, ledger,
};

/// What [`take_over`](seckill_application::ports::AdmissionLedger::take_over) promises.
const ONE_WRITER: Failure = Failure::Rule("only the newest fence writes");

const OFFER: Offer = Offer {
    units: 10,
    limit: 2,
    waitlist: 0,
};

/// A process that stops when it has read a batch and not applied it.
fn stopping(stores: &Stores, any_fence: bool) -> (Branch, Checkpoint) {
    let checkpoint = Checkpoint::default();
    let admissions = TamperedAdmissions {
        inner: stores.ledger.admissions.clone(),
        before_apply: Some(checkpoint.clone()),
        any_fence,
    };
    let ledger = LedgerPorts {
        admissions: Arc::new(admissions),
        ..stores.ledger.clone()
    };
    let stores = Stores {
        ledger,
        ..stores.clone()
    };
    (Branch::over(stores), checkpoint)
}

/// Whether the writer that took over applies the order before the other one wakes up.
#[derive(Clone, Copy)]
enum Successor {
    Waits,
    Applies,
}

/// What became of it.
struct Woken {
    /// The step of the writer that was paused.
    step: Step,
    branch: Branch,
    voucher: Voucher,
    order: OrderId,
}

/// A writer has read an order and is paused. Another one takes over. The first wakes up.
async fn a_paused_writer(stores: &Stores, any_fence: bool, then: Successor) -> Woken {
    let branch = Branch::over(stores.clone());
    let voucher = branch.on_sale(OFFER).await;
    let order = branch.granted(&voucher, 7).await;
    let (slow, checkpoint) = stopping(stores, any_fence);
    let mut paused = slow.writer("paused").await;
    let paused = tokio::spawn(async move { paused.step().await });
    checkpoint.reached().await;
    let mut successor = branch.writer("successor").await;
    if matches!(then, Successor::Applies) {
        drain(&mut successor).await;
    }
    checkpoint.pass();
    let step = paused.await.unwrap().unwrap();
    drain(&mut successor).await;
    Woken {
        step,
        branch,
        voucher,
        order,
    }
}

async fn the_successor_waits(stores: Stores, any_fence: bool) -> Findings {
    let mut findings = Findings::default();
    let woken = a_paused_writer(&stores, any_fence, Successor::Waits).await;
    let fenced = woken.step == Step::Fenced;
    findings.check(ONE_WRITER, fenced, format!("{:?}", woken.step));
    let status = woken.branch.status(woken.order, 7).await;
    let is_there = status == Some(OrderStatus::PendingPayment);
    findings.check(NoSilentLoss, is_there, format!("{status:?}"));
    findings.check_units(&woken.branch.tally(&woken.voucher).await);
    findings
}

/// Takes away the **fence**. A writer that was overtaken while it was paused still writes. The
/// position, which both know, lets only one of them write an order, so the invariants hold: the fence
/// is what makes it the one that holds the lease.
#[tokio::test]
async fn the_fence_shuts_an_overtaken_writer_out() {
    let scenario = async |bench: Bench| the_successor_waits(bench.stores().await, false).await;
    let Some(pair) = Control::of(ledger::FENCE).run(scenario).await else {
        return;
    };
    pair.assert_guards_against([ONE_WRITER]);
}

/// The same on the in-memory adapters, where a decorator puts the fence in force in the place of
/// each batch's own.
#[tokio::test]
async fn the_fence_shuts_an_overtaken_writer_out_in_memory() {
    let pair = controls::Pair {
        guarded: the_successor_waits(controls::memory(), false).await,
        unguarded: the_successor_waits(controls::memory(), true).await,
    };
    pair.assert_guards_against([ONE_WRITER]);
}

async fn the_successor_applies(bench: Bench) -> Findings {
    const TIMES: &str = "SELECT CAST(COUNT(*) AS SIGNED) FROM orders WHERE id = ?";
    let mut findings = Findings::default();
    let stores = bench.stores().await;
    let woken = a_paused_writer(&stores, false, Successor::Applies).await;
    let fenced = woken.step == Step::Fenced;
    findings.check(ONE_WRITER, fenced, format!("{:?}", woken.step));
    let times = bench.number(TIMES, woken.order.get()).await;
    findings.check_once(times.try_into().unwrap(), 0);
    findings.check_units(&woken.branch.tally(&woken.voucher).await);
    findings
}

/// Takes away the **fenced move of the position** (fence, epoch and position), the primary key of
/// orders being gone. A paused writer applies a second time what its successor has applied: the
/// order takes its units twice (I5), and the sale has more units than there are (I1).
#[tokio::test]
async fn the_fenced_position_applies_a_decision_once() {
    let control = Control::of(ledger::FENCED_POSITION).without(ledger::ORDER_ONCE);
    let Some(pair) = control.run(the_successor_applies).await else {
        return;
    };
    pair.assert_guards_against([ONE_WRITER, Conservation.into(), Once.into()]);
}

/// A writer is killed between reading and committing, and another one takes over.
async fn a_killed_writer(stores: Stores, order: AckOrder) -> Findings {
    let mut findings = Findings::default();
    let stream = BrokerStream::new(stores.hot.stream.clone(), order);
    let hot = HotPath {
        stream: Arc::new(stream),
        ..stores.hot.clone()
    };
    let stores = Stores { hot, ..stores };
    let branch = Branch::over(stores.clone());
    let voucher = branch.on_sale(OFFER).await;
    let (doomed, checkpoint) = stopping(&stores, false);
    let mut doomed = doomed.writer("doomed").await;
    assert_eq!(
        doomed.step().await.unwrap(),
        Step::Idle,
        "it waits for news"
    );
    let order = branch.granted(&voucher, 7).await;
    let doomed = tokio::spawn(async move { doomed.step().await });
    checkpoint.reached().await;
    doomed.abort();
    assert!(doomed.await.unwrap_err().is_cancelled(), "it is killed");

    branch.settle().await;
    let partition = PartitionId::new(0);
    let backlog = stores.hot.stream.backlog(partition).await.unwrap();
    assert_eq!(backlog.pending, 0, "nothing is left to deliver");
    let known = stores.ledger.ledger.stages(&[order]).await.unwrap();
    let seen = format!("order {order} was granted; the ledger knows {known:?}");
    findings.check(NoSilentLoss, known.len() == 1, seen);
    findings
}

/// Takes away **ack after commit**, for a consumer that takes what is acknowledged for done, as ours
/// does not: it goes on from the ledger's position. A writer that dies between reading and
/// committing takes the order with it: granted, in no ledger, and not delivered again (I4).
#[tokio::test]
async fn an_entry_is_acknowledged_after_the_commit() {
    let (Some(first), Some(second)) = (Bench::intact().await, Bench::intact().await) else {
        return;
    };
    let pair = controls::Pair {
        guarded: a_killed_writer(first.stores().await, AckOrder::AfterCommit).await,
        unguarded: a_killed_writer(second.stores().await, AckOrder::OnRead).await,
    };
    pair.assert_guards_against([NoSilentLoss.into()]);
}

/// The same on the in-memory adapters.
#[tokio::test]
async fn an_entry_is_acknowledged_after_the_commit_in_memory() {
    let pair = controls::Pair {
        guarded: a_killed_writer(controls::memory(), AckOrder::AfterCommit).await,
        unguarded: a_killed_writer(controls::memory(), AckOrder::OnRead).await,
    };
    pair.assert_guards_against([NoSilentLoss.into()]);
}
