//! Order writers, one after the other.

use std::sync::Arc;

use seckill_application::ports::{HotPath, LedgerPorts};
use seckill_application::{
    Fault, Meters, OrderWriter, RecoverPartition, WantedSales, WriterSettings,
};

use crate::world::{PARTITION, SECOND};

/// What every order writer needs.
pub(crate) struct Writers {
    pub(crate) recover: Arc<RecoverPartition>,
    pub(crate) wanted: Arc<WantedSales>,
    pub(crate) meters: Arc<Meters>,
}

impl Writers {
    /// One that takes over.
    pub(crate) async fn next(
        &self,
        hot: &HotPath,
        ledger: &LedgerPorts,
        consumer: &str,
    ) -> Result<OrderWriter, Fault> {
        let settings = WriterSettings {
            block: SECOND,
            ..WriterSettings::default()
        };
        self.next_with(hot, ledger, consumer, settings).await
    }

    /// One that takes over and works like this.
    pub(crate) async fn next_with(
        &self,
        hot: &HotPath,
        ledger: &LedgerPorts,
        consumer: &str,
        settings: WriterSettings,
    ) -> Result<OrderWriter, Fault> {
        OrderWriter::take_over(
            PARTITION,
            consumer.to_owned(),
            settings,
            hot,
            ledger,
            self.recover.clone(),
            self.wanted.clone(),
            self.meters.clone(),
        )
        .await
    }
}
