//! The loops of a process, as the binary runs them, with pauses that suit short runs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};

use seckill_application::ports::{Lease, LeaseOwner};
use seckill_application::{ExpireOrders, Fault, OrderWriter, ReconcileScope, Step, WriterSettings};
use seckill_domain::PartitionId;

use crate::coverage::Seen;
use crate::node::Node;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// How long applied entries stay; longer than any call can be late.
pub(crate) const KEPT: Duration = Duration::from_secs(10);
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_millis(500);
const IDLE_PAUSE: Duration = Duration::from_millis(5);
const RELOAD_GRACE: Duration = Duration::from_millis(300);
const HEAD_START: Duration = Duration::from_millis(25);
const LOADERS: usize = 2;
/// Longer than what a failover loses is old.
const RETIRE_EVERY: Duration = Duration::from_secs(3);
const RECONCILE_EVERY: Duration = Duration::from_secs(5);

/// Starts every loop of a process.
pub(crate) fn start(node: &Arc<Node>) {
    for _ in 0..LOADERS {
        spawn(node, load_wanted);
    }
    every(node, 150 * MS, |node| async move {
        node.remembered.offer().await
    });
    every(node, 150 * MS, |node| async move {
        node.remembered.settle().await
    });
    every(node, node.nature.dice.millis(20..=250), |node| async move {
        node.relay.sweep().await.map(drop)
    });
    every(node, SECOND, |node| async move { node.upkeep.run().await });
    every(node, 500 * MS, |node| async move {
        while node.expire.sweep().await? == ExpireOrders::BATCH_MAX {}
        Ok(())
    });
    every(node, Duration::ZERO, |node| async move {
        node.hot.delays.wait(SECOND).await?;
        while node.expire.on_time().await? == ExpireOrders::BATCH_MAX {}
        Ok(())
    });
    every(node, 400 * MS, |node| async move {
        node.publish.run().await.map(drop)
    });
    every(node, SECOND, |node| async move {
        node.send_refunds.run().await.map(drop)
    });
    every(node, RETIRE_EVERY, |node| async move {
        let retired = node.retire.run().await?;
        node.nature.coverage.add(Seen::Retirement, retired as u64);
        Ok(())
    });
    every(node, RECONCILE_EVERY, reconcile);
    for partition in node.partitions.all() {
        spawn(node, move |node| write_partition(node, partition));
    }
}

fn spawn<F>(node: &Arc<Node>, work: impl FnOnce(Arc<Node>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    node.nature.spawner.spawn(node.group, work(node.clone()));
}

/// Does something again and again; after a fault, after a longer and longer pause.
fn every<F>(
    node: &Arc<Node>,
    period: Duration,
    mut act: impl FnMut(Arc<Node>) -> F + Send + 'static,
) where
    F: Future<Output = Result<(), Fault>> + Send,
{
    spawn(node, async move |node: Arc<Node>| {
        let mut backoff = Backoff::default();
        node.clock.sleep(node.nature.dice.millis(0..=200)).await;
        loop {
            let pause = match act(node.clone()).await {
                Ok(()) => {
                    backoff = Backoff::default();
                    period
                }
                Err(_) => backoff.next().max(period),
            };
            node.clock.sleep(pause).await;
        }
    });
}

#[derive(Default)]
struct Backoff(u32);

impl Backoff {
    fn next(&mut self) -> Duration {
        let pause = (50 * MS)
            .saturating_mul(1 << self.0.min(10))
            .min(2 * SECOND);
        self.0 += 1;
        pause
    }
}

async fn load_wanted(node: Arc<Node>) {
    let mut backoff = Backoff::default();
    loop {
        let voucher = node.wanted.next().await;
        node.clock.sleep(HEAD_START).await;
        match node.load.run(voucher, RELOAD_GRACE).await {
            Ok(_) => backoff = Backoff::default(),
            Err(_) => node.clock.sleep(backoff.next()).await,
        }
    }
}

async fn reconcile(node: Arc<Node>) -> Result<(), Fault> {
    let scope = ReconcileScope {
        full: node.nature.dice.chance(500),
        dry_run: false,
    };
    let rests = node.watch.rests();
    let Some(report) = node.reconcile.run(scope).await? else {
        return Ok(());
    };
    node.watch.reconciled(&report, rests);
    Ok(())
}

/// Asks for a partition's lease, and writes its orders while it has it.
async fn write_partition(node: Arc<Node>, partition: PartitionId) {
    let name = format!("writer:{partition}");
    let owner = LeaseOwner(format!("{}:{name}", node.group.0));
    let mut backoff = Backoff::default();
    node.clock.sleep(node.nature.dice.millis(0..=50)).await;
    loop {
        let pause = match node.hot.leases.acquire(&name, &owner, LEASE_TTL).await {
            Ok(None) => ASK_EVERY,
            Ok(Some(lease)) => shift(&node, partition, &owner, &lease).await,
            Err(_) => backoff.next(),
        };
        node.clock.sleep(pause).await;
    }
}

/// From taking a lease to giving it back; returns how long to wait before asking again.
async fn shift(node: &Node, partition: PartitionId, owner: &LeaseOwner, lease: &Lease) -> Duration {
    let (lost, watched) = futures::channel::oneshot::channel();
    let work = write(node, partition, &owner.0, watched);
    let guard = renew(node, lease, lost);
    let pause = match select(Box::pin(work), Box::pin(guard)).await {
        Either::Left((pause, _)) => pause,
        // The step under way is always finished.
        Either::Right(((), work)) => work.await,
    };
    drop(node.hot.leases.release(lease).await);
    pause
}

/// The watchdog: returns when the lease is lost, and says so.
async fn renew(node: &Node, lease: &Lease, lost: futures::channel::oneshot::Sender<()>) {
    let mut held_until = node.clock.monotonic() + LEASE_TTL;
    loop {
        node.clock.sleep(LEASE_TTL / 3).await;
        let asked = node.clock.monotonic();
        match node.hot.leases.renew(lease, LEASE_TTL).await {
            Ok(true) => held_until = asked + LEASE_TTL,
            Err(_) if node.clock.monotonic() < held_until => {}
            Ok(false) | Err(_) => break,
        }
    }
    drop(lost);
}

async fn write(
    node: &Node,
    partition: PartitionId,
    consumer: &str,
    mut lost: futures::channel::oneshot::Receiver<()>,
) -> Duration {
    let mut backoff = Backoff::default();
    let mut goes_on = move || matches!(lost.try_recv(), Ok(None));
    let settings = WriterSettings {
        read_max: node.nature.dice.below(8) + 1,
        batch_min: node.nature.dice.below(6) + 1,
        block: 500 * MS,
        keep: KEPT,
    };
    let mut writer = loop {
        let taken = OrderWriter::take_over(
            partition,
            consumer.to_owned(),
            settings,
            &node.hot,
            &node.ledger,
            node.recover.clone(),
            node.wanted.clone(),
            node.meters.clone(),
        );
        match taken.await {
            Ok(writer) => break writer,
            Err(_) if goes_on() => node.clock.sleep(backoff.next()).await,
            Err(_) => return ASK_EVERY,
        }
    };
    let mut trim_at = node.clock.monotonic() + SECOND;
    while goes_on() {
        match writer.step().await {
            Ok(Step::Applied(_)) => backoff = Backoff::default(),
            Ok(Step::Idle) => {
                backoff = Backoff::default();
                node.clock.sleep(IDLE_PAUSE).await;
            }
            Ok(Step::Fenced) => {
                node.nature.coverage.saw(Seen::Fenced);
                return ASK_EVERY;
            }
            Err(_) => node.clock.sleep(backoff.next()).await,
        }
        if node.clock.monotonic() >= trim_at {
            drop(writer.trim().await);
            trim_at = node.clock.monotonic() + SECOND;
        }
    }
    Duration::ZERO
}
