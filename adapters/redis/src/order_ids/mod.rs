//! New order ids, by one of two schemes.

mod daily;
mod snowflake;

use std::sync::Arc;

use seckill_application::ports::Clock;

use crate::config::{OrderIdScheme, RedisConfig};
use crate::store::Store;
pub(crate) use daily::DailyIds;
pub(crate) use snowflake::SnowflakeIds;

/// The generator of a process.
#[derive(Clone)]
pub(crate) enum Ids {
    Snowflake(Arc<SnowflakeIds>),
    Daily(Arc<DailyIds>),
}

impl Ids {
    pub(crate) fn new(config: &RedisConfig, store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        match config.order_ids {
            OrderIdScheme::Snowflake => {
                Self::Snowflake(Arc::new(SnowflakeIds::new(store, clock, config.id_lease)))
            }
            OrderIdScheme::DailyCounter => Self::Daily(Arc::new(DailyIds::new(store, clock))),
        }
    }
}
