//! The loops of what happens to orders after their grant, and to sales after their end.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ExpireOrders;

use super::Context;
use super::upkeep::every;

/// How long the delay queue is waited for at most.
const QUEUE_LOOK_EVERY: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// Most batches of one expiry sweep: 100,000 orders.
const EXPIRY_ROUNDS_MAX: usize = 200;
const PUBLISH_EVERY: Duration = Duration::from_millis(50);
const PUBLISH_ROUNDS_MAX: usize = 100;
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// Most rounds of one pruning: 100,000 events.
const PRUNE_ROUNDS_MAX: usize = 100;
const REFUND_EVERY: Duration = Duration::from_secs(1);
const RETIRE_EVERY: Duration = Duration::from_secs(5);

/// Expires what the ledger says is overdue, batch after batch.
pub(super) async fn expire_swept(context: Arc<Context>) {
    let (expire, stop) = (&context.system.expire, &context.stop);
    every(&context, "expiring orders", SWEEP_EVERY, || async {
        for _ in 0..EXPIRY_ROUNDS_MAX {
            if expire.sweep().await? < ExpireOrders::BATCH_MAX || stop.is_asked_for() {
                break;
            }
        }
        Ok(())
    })
    .await;
}

/// Expires what the delay queue says is due, as soon as it is.
pub(super) async fn expire_on_time(context: Arc<Context>) {
    let (expire, stop) = (&context.system.expire, &context.stop);
    let delays = &context.system.hot.delays;
    every(
        &context,
        "expiring orders on time",
        Duration::ZERO,
        || async {
            tokio::select! {
                waited = delays.wait(QUEUE_LOOK_EVERY) => waited?,
                () = stop.asked_for() => return Ok(()),
            }
            while expire.on_time().await? == ExpireOrders::BATCH_MAX && !stop.is_asked_for() {}
            Ok(())
        },
    )
    .await;
}

/// Tells those who want to be told.
pub(super) async fn publish_events(context: Arc<Context>) {
    let publish = &context.system.publish;
    let tell = every(&context, "publishing events", PUBLISH_EVERY, || async {
        for _ in 0..PUBLISH_ROUNDS_MAX {
            if publish.run().await? == 0 {
                break;
            }
        }
        Ok(())
    });
    let prune = every(&context, "pruning events", PRUNE_EVERY, || async {
        for _ in 0..PRUNE_ROUNDS_MAX {
            if publish.prune().await? == 0 {
                break;
            }
        }
        Ok(())
    });
    tokio::join!(tell, prune);
}

/// Has money sent back.
pub(super) async fn send_refunds(context: Arc<Context>) {
    let refunds = &context.system.send_refunds;
    every(&context, "sending refunds", REFUND_EVERY, || async {
        refunds.run().await.map(|_| ())
    })
    .await;
}

/// Takes sales that are over out of the gate.
pub(super) async fn retire_sales(context: Arc<Context>) {
    let retire = &context.system.retire;
    every(&context, "retiring sales", RETIRE_EVERY, || async {
        retire.run().await.map(|_| ())
    })
    .await;
}
