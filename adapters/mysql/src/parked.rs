//! Messages that could not be applied.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{Page, ParkedMessage, ParkedMessages, ParkedReply};

use crate::store::Store;

#[async_trait]
impl ParkedMessages for Store {
    async fn list(&self, _: bool, _: Option<u64>, _: usize) -> Result<Page<ParkedMessage>, Fault> {
        Err(Fault::broken("parked.list", "not there yet"))
    }

    async fn replay(&self, _: u64) -> Result<ParkedReply, Fault> {
        Err(Fault::broken("parked.replay", "not there yet"))
    }

    async fn discard(&self, _: u64, _: &str) -> Result<ParkedReply, Fault> {
        Err(Fault::broken("parked.discard", "not there yet"))
    }
}
