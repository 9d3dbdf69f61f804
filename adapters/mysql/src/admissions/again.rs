//! A parked decision, judged and written once more by itself.

use seckill_application::ports::{BatchItem, ParkReason, Verdict};
use seckill_domain::{Epoch, PartitionId};

use super::plan::Plan;
use super::writes;
use super::{judge, known};
use crate::fault::Trouble;
use crate::session::Session;

/// What becomes of it.
pub(crate) struct Again<'b>(Plan<'b>);

/// Judges a decision as if it came now, with `units` more in its voucher's stock, whose row is
/// locked from now on. The caller puts them there before he has the plan written.
pub(crate) async fn judge_again<'b>(
    session: &mut Session,
    item: &'b [BatchItem; 1],
    units: u32,
) -> Result<Again<'b>, Trouble> {
    let mut known = known::load(session, item).await?;
    for sale in known.sales.values_mut() {
        sale.stock += u64::from(units);
    }
    judge::judge(known, item).map(Again)
}

impl Again<'_> {
    /// The verdict, if the plan is written.
    pub(crate) fn verdict(&self) -> Verdict {
        let verdict = self.0.verdicts.first().copied();
        verdict.unwrap_or(Verdict::Parked(ParkReason::Unreadable))
    }

    /// Writes the plan. `false` if the database does not have it so.
    pub(crate) async fn write(
        &self,
        session: &mut Session,
        partition: PartitionId,
        epoch: Epoch,
    ) -> Result<bool, Trouble> {
        let written = writes::write(session, partition, epoch, &self.0).await?;
        Ok(written.is_some())
    }
}
