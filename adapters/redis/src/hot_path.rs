//! The ports over one Redis.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{Clock, HotPath, OrderIds};

use crate::admission_stream::RedisStream;
use crate::config::RedisConfig;
use crate::connection::Dialer;
use crate::delay_queue::RedisDelays;
use crate::gate_loader::RedisLoader;
use crate::leases::RedisLeases;
use crate::notices::{RedisFeed, RedisNotifier};
use crate::order_ids::Ids;
use crate::purchase_gate::RedisGate;
use crate::server::{self, Server};
use crate::store::Store;
use crate::subscription::Subscription;

/// The hot path in Redis. Clones are handles on the same connections.
#[derive(Clone)]
pub struct RedisHotPath {
    pub(crate) store: Arc<Store>,
    subscription: Arc<Subscription>,
    clock: Arc<dyn Clock>,
    ids: Ids,
    server: Server,
}

impl RedisHotPath {
    /// Connects, looks at what kind of Redis it is, and leases what order ids need. Refuses settings
    /// that cannot work and a Redis that is too old or throws keys away. Spawns nothing: whoever
    /// holds this calls [`RedisHotPath::keep`] every [`RedisHotPath::keep_every`].
    ///
    /// `clock` measures leases and waits where something has to be waited for.
    pub async fn connect(config: &RedisConfig, clock: Arc<dyn Clock>) -> Result<Self, Fault> {
        config.check()?;
        let dialer = Dialer::new(config)?;
        let store = Arc::new(Store::new(config, dialer.clone())?);
        let subscription = Subscription::new(dialer, &config.namespace, clock.clone());
        let server = server::examine(&store).await?;
        let ids = Ids::new(config, store.clone(), clock.clone());
        let hot_path = Self {
            store,
            subscription: Arc::new(subscription),
            clock,
            ids,
            server,
        };
        hot_path.keep().await?;
        Ok(hot_path)
    }

    /// Its ports. Every call gives handles on the same connections.
    pub fn ports(&self) -> HotPath {
        let order_ids: Arc<dyn OrderIds> = match &self.ids {
            Ids::Snowflake(ids) => ids.clone(),
            Ids::Daily(ids) => ids.clone(),
        };
        HotPath {
            gate: Arc::new(RedisGate(self.store.clone())),
            loader: Arc::new(RedisLoader(self.store.clone())),
            stream: Arc::new(RedisStream(self.store.clone())),
            leases: Arc::new(RedisLeases(self.store.clone())),
            order_ids,
            delays: Arc::new(RedisDelays {
                store: self.store.clone(),
                clock: self.clock.clone(),
                subscription: self.subscription.clone(),
            }),
            notifier: Arc::new(RedisNotifier(self.store.clone())),
            feed: Arc::new(RedisFeed(self.subscription.clone())),
        }
    }

    /// What Redis was when it was connected to.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What Redis is now; a fault if it could not be connected to any more.
    pub async fn examine(&self) -> Result<Server, Fault> {
        server::examine(&self.store).await
    }

    /// Renews what has to be renewed, so that no order id has to wait for it. Missing it costs
    /// waiting, never uniqueness.
    pub async fn keep(&self) -> Result<(), Fault> {
        match &self.ids {
            Ids::Snowflake(ids) => ids.keep().await,
            Ids::Daily(_) => Ok(()),
        }
    }

    /// How often [`RedisHotPath::keep`] should be called.
    pub fn keep_every(&self) -> Duration {
        match &self.ids {
            Ids::Snowflake(ids) => ids.keep_every(),
            Ids::Daily(_) => Duration::from_mins(1),
        }
    }
}
