//! After the last unit: G11.

use super::admission::static_replies;
use crate::book::Book;
use crate::lab::Lab;
use crate::site::Told;

pub(super) async fn sold_out(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let offer = lab.site.sell(1, 0).await?;
    let last = lab.crowd.purchases(&offer.id, 1)?;
    let bought = lab.send(lab.closed(1), last).await?;
    lab.site.check(&offer, Told::from(&bought.outcome)).await?;
    lab.site.send_worker_away().await?;

    let plan = lab.closed(64);
    let requests = lab.purchases(&offer, &plan)?;
    let before = lab.script_calls().await?;
    let rejected = lab.send(plan, requests).await?;
    let calls = lab.script_calls().await?.saturating_sub(before);
    let told = Told::from(&bought.outcome) + Told::from(&rejected.outcome);
    lab.site.check(&offer, told).await?;
    let rejections = rejected.outcome.of_status(409);
    anyhow::ensure!(
        rejections > 0 && rejections + rejected.outcome.lost == rejected.outcome.sent,
        "not all were rejected: {:?}",
        rejected.outcome.statuses
    );

    let fixed = static_replies(lab, book).await?;
    let per_s = rejections as f64 / rejected.outcome.took.as_secs_f64();
    book.pair("G11a", per_s, fixed.outcome.answered_per_s());
    book.pair("G11b", calls as f64, rejections as f64);
    book.cost("rejection after sell-out", rejected.cost);
    Ok(())
}
