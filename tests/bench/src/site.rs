//! The product: an API process, and a worker process that can be sent away and called back.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use redis::aio::MultiplexedConnection;
use seckill_domain::{PartitionId, Partitions, VoucherId};
use serde_json::json;
use sqlx::mysql::MySqlPool;

use crate::children::Process;
use crate::client::{ask, must};
use crate::load::{Outcome, SECRET, admin_token};
use crate::servers::{Servers, free_port};

const READY_WITHIN: Duration = Duration::from_mins(1);
const DRAINED_WITHIN: Duration = Duration::from_mins(3);
const PARTITIONS: u16 = 4;

/// A fresh deployment of the product: its own namespace and database.
#[derive(Debug)]
pub struct Site {
    /// The process that answers.
    pub api: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// The process that drains and expires, if it is there.
    pub worker: Option<Process>,
    /// Its database.
    pub database: MySqlPool,
    redis: MultiplexedConnection,
    product: PathBuf,
    settings: Vec<(&'static str, String)>,
    namespace: String,
    admin: String,
    logs: PathBuf,
}

/// A voucher on sale.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its id.
    pub id: String,
    /// Its units.
    pub units: u64,
}

/// The decisions of a partition, as the gate counts them.
#[derive(Debug)]
pub struct Decisions {
    redis: MultiplexedConnection,
    partition: PartitionId,
    meta: String,
}

impl Decisions {
    /// The number of the last one.
    pub async fn last(&mut self) -> anyhow::Result<u64> {
        let mut get = redis::cmd("HGET");
        Ok(get
            .arg(&self.meta)
            .arg("seq")
            .query_async(&mut self.redis)
            .await?)
    }
}

/// What buyers of a voucher were told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// How many were granted.
    pub granted: u64,
    /// Of how many nobody knows: no answer, or one that says so.
    pub unknown: u64,
}

impl From<&Outcome> for Told {
    fn from(outcome: &Outcome) -> Self {
        Self {
            granted: outcome.granted,
            unknown: outcome.lost + outcome.of_status(503),
        }
    }
}

impl std::ops::Add for Told {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            granted: self.granted + other.granted,
            unknown: self.unknown + other.unknown,
        }
    }
}

impl Site {
    /// Starts an API and a worker process on an empty database.
    pub async fn start(
        product: &Path,
        servers: &Servers,
        name: &str,
        extra: &[(&'static str, &str)],
    ) -> anyhow::Result<Self> {
        let root = servers.connect_mysql("").await?;
        // Its name is made here: letters and digits.
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&root).await?;
        root.close().await;
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut settings = vec![
            ("SECKILL_GATE", servers.redis_url()),
            ("SECKILL_LEDGER", servers.mysql_url(name)),
            ("SECKILL_AUTH_SECRET", SECRET.to_owned()),
            ("SECKILL_NAMESPACE", name.to_owned()),
            ("SECKILL_PARTITIONS", PARTITIONS.to_string()),
            // It would run in the middle of one run and not in the middle of another.
            ("SECKILL_RECONCILE_EVERY_S", "86400".to_owned()),
        ];
        settings.extend(
            extra
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let logs = servers.folder.path().to_owned();
        let api = start(product, "api", address, &settings, &logs).await?;
        let mut site = Self {
            api,
            address,
            worker: None,
            database: servers.connect_mysql(name).await?,
            redis: servers.connect_redis().await?,
            product: product.to_owned(),
            settings,
            namespace: name.to_owned(),
            admin: admin_token()?,
            logs,
        };
        site.call_worker().await?;
        Ok(site)
    }

    /// Connects to Redis again, which has been restarted.
    pub async fn reconnect(&mut self, servers: &Servers) -> anyhow::Result<()> {
        self.redis = servers.connect_redis().await?;
        Ok(())
    }

    /// Starts the worker process, if there is none.
    pub async fn call_worker(&mut self) -> anyhow::Result<()> {
        if self.worker.is_none() {
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
            let worker =
                start(&self.product, "worker", address, &self.settings, &self.logs).await?;
            self.worker = Some(worker);
        }
        Ok(())
    }

    /// Stops the worker process.
    pub async fn send_worker_away(&mut self) -> anyhow::Result<()> {
        match self.worker.take() {
            Some(worker) => worker.stop().await,
            None => Ok(()),
        }
    }

    /// Stops everything.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.send_worker_away().await?;
        self.api.stop().await?;
        self.database.close().await;
        Ok(())
    }

    /// Puts a voucher on sale: one per buyer, waiting places as given.
    pub async fn sell(&self, units: u64, waitlist: u64) -> anyhow::Result<Offer> {
        self.sell_for(units, waitlist, 86_400).await
    }

    /// The same with a payment window in seconds.
    pub async fn sell_for(
        &self,
        units: u64,
        waitlist: u64,
        window_s: u64,
    ) -> anyhow::Result<Offer> {
        let body = json!({
            "title": "A voucher", "face_value_minor": 1_000, "price_minor": 100, "currency": "CNY",
            "total_units": units, "per_buyer_limit": 1, "waitlist_capacity": waitlist,
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "payment_window_s": window_s,
        });
        let made = must(
            self.address,
            "POST /v1/admin/vouchers",
            &self.admin,
            Some(&body),
        )
        .await?;
        let id = made["id"]
            .as_str()
            .context("a voucher without an id")?
            .to_owned();
        let publish = format!("POST /v1/admin/vouchers/{id}/publish");
        must(self.address, &publish, &self.admin, None).await?;
        Ok(Offer { id, units })
    }

    /// The partition of a voucher, and the last decision there.
    pub async fn decided(&self, offer: &Offer) -> anyhow::Result<(PartitionId, u64)> {
        let mut decisions = self.decisions(offer)?;
        Ok((decisions.partition, decisions.last().await?))
    }

    /// The decisions of a voucher's partition.
    pub fn decisions(&self, offer: &Offer) -> anyhow::Result<Decisions> {
        let partitions = NonZeroU16::new(PARTITIONS).context("partitions")?;
        let voucher: u64 = offer.id.parse()?;
        let partition = Partitions::new(partitions).of(VoucherId::new(voucher));
        Ok(Decisions {
            redis: self.redis.clone(),
            partition,
            meta: format!("{{{}:p{partition}}}:meta", self.namespace),
        })
    }

    /// The last decision of a partition that the ledger has.
    pub async fn applied(&self, partition: PartitionId) -> anyhow::Result<u64> {
        let select = "SELECT applied_seq FROM partitions WHERE partition_id = ?";
        let select = sqlx::query_scalar(select).bind(partition.get());
        Ok(select.fetch_one(&self.database).await?)
    }

    /// Waits until the ledger has everything that the gate decided.
    pub async fn drained(&self, offer: &Offer) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let (partition, seq) = self.decided(offer).await?;
            let applied = self.applied(partition).await?;
            if applied == seq {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < DRAINED_WITHIN,
                "not drained: {applied} of {seq}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// An administrator's token.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Drains, and checks that no unit was lost or sold twice, and that everybody who was told so
    /// has his order: the balance, the ledger's rows, and what buyers were told must agree.
    pub async fn check(&mut self, offer: &Offer, told: Told) -> anyhow::Result<()> {
        self.call_worker().await?;
        self.drained(offer).await?;
        let path = format!("GET /v1/admin/vouchers/{}/balance", offer.id);
        let balance = must(self.address, &path, &self.admin, None).await?;
        let units = |name: &str| balance[name].as_u64().unwrap_or(u64::MAX);
        let (free, live) = (units("free"), units("awaiting_payment"));
        let settled = balance["holds"] == true && units("in_flight") == 0 && units("parked") == 0;
        ensure!(
            settled && free.checked_add(live) == Some(offer.units),
            "not conserved: {balance}"
        );
        let Told { granted, unknown } = told;
        if live < granted || live > granted + unknown {
            bail!("{granted} were granted, {unknown} unknown, but {live} orders live");
        }
        let select = "SELECT COUNT(*), COUNT(DISTINCT user_id) FROM orders \
                      WHERE voucher_id = ? AND status = 'pending_payment'";
        let select = sqlx::query_as::<_, (i64, i64)>(select).bind(offer.id.parse::<u64>()?);
        let (orders, buyers) = select.fetch_one(&self.database).await?;
        let live = i64::try_from(live)?;
        ensure!(
            orders == live && buyers == live,
            "{orders} orders of {buyers} buyers, {live} live"
        );
        Ok(())
    }
}

async fn start(
    product: &Path,
    role: &'static str,
    address: SocketAddr,
    settings: &[(&'static str, String)],
    logs: &Path,
) -> anyhow::Result<Process> {
    let listen = address.to_string();
    let args = ["serve", "--role", role, "--listen", &listen];
    let log = logs.join(format!("{role}.log"));
    let mut process = Process::start(role, product, args, settings, &log)?;
    let ready = async || {
        let answer = ask(address, "GET /readyz", None, None).await;
        answer.is_ok_and(|(status, _)| status == 200)
    };
    process.until(READY_WITHIN, ready).await?;
    Ok(process)
}
