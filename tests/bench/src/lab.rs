//! Everything that experiments work with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use redis::aio::MultiplexedConnection;
use seckill_domain::PartitionId;
use sqlx::mysql::MySqlPool;

use crate::book::Cost;
use crate::children::Process;
use crate::load::{Crowd, Outcome, Pace, Plan, Requests, run};
use crate::machine::Busy;
use crate::raw::{self, Raw, Shape};
use crate::servers::{Programs, Servers};
use crate::site::{Offer, Site};

/// Purchases of a run for each of its seconds: so many tokens are signed ahead, and a run that has
/// used them ends earlier.
const PER_S_MAX: f64 = 30_000.0;
/// The share of a core from which on the generator is taken for the bottleneck.
const BUSY_CORES: f64 = 0.9;

/// Servers, the product, and buyers.
#[derive(Debug)]
pub struct Lab {
    /// How long one run takes.
    pub lasts: Duration,
    /// Both servers.
    pub servers: Servers,
    /// The product as it is deployed now.
    pub site: Site,
    /// A connection to Redis.
    pub redis: MultiplexedConnection,
    /// Buyers.
    pub crowd: Crowd,
    programs: Programs,
    product: PathBuf,
    sites: u32,
}

/// A run of the generator against a process, and what it took of the machine.
#[derive(Debug)]
pub struct Burst {
    /// What was seen.
    pub outcome: Outcome,
    /// What it took, per answer.
    pub cost: Cost,
}

/// How a backlog went into the ledger.
#[derive(Debug, Clone)]
pub struct Drain {
    /// Orders per second, from the first that arrived to the last.
    pub per_s: f64,
    /// What it took, per order.
    pub cost: Cost,
}

/// CPU times at an instant.
struct Meter {
    times: Vec<(&'static str, u32, Duration)>,
    busy: Busy,
}

impl Lab {
    /// Starts servers and product.
    pub async fn start(
        programs: Programs,
        product: PathBuf,
        lasts: Duration,
    ) -> anyhow::Result<Self> {
        let servers = Servers::start(&programs).await?;
        let redis = servers.connect_redis().await?;
        let site = Site::start(&product, &servers, "bench1", &[]).await?;
        Ok(Self {
            lasts,
            servers,
            site,
            redis,
            crowd: Crowd::default(),
            programs,
            product,
            sites: 1,
        })
    }

    /// Ends everything.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.site.stop().await?;
        self.servers.redis.kill().await?;
        self.servers.mysql.kill().await
    }

    /// A fresh deployment on empty stores, with these settings.
    pub async fn renew(&mut self, settings: &[(&'static str, &str)]) -> anyhow::Result<()> {
        self.sites += 1;
        let old = format!("bench{}", self.sites - 1);
        let new = format!("bench{}", self.sites);
        self.site.send_worker_away().await?;
        redis::cmd("FLUSHALL")
            .query_async::<()>(&mut self.redis)
            .await?;
        let site = Site::start(&self.product, &self.servers, &new, settings).await?;
        std::mem::replace(&mut self.site, site).stop().await?;
        let drop = sqlx::AssertSqlSafe(format!("DROP DATABASE {old}"));
        sqlx::raw_sql(drop).execute(&self.site.database).await?;
        Ok(())
    }

    /// An empty database for a reference.
    pub async fn empty_database(&self, name: &str) -> anyhow::Result<MySqlPool> {
        let recreate = format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}");
        let recreate = sqlx::AssertSqlSafe(recreate);
        sqlx::raw_sql(recreate).execute(&self.site.database).await?;
        self.servers.connect_mysql(name).await
    }

    /// As many purchases by new buyers as a run of this plan can take.
    pub fn purchases(&mut self, offer: &Offer, plan: &Plan) -> anyhow::Result<Requests> {
        self.crowd
            .purchases(&offer.id, plan.requests_max(PER_S_MAX))
    }

    /// New buyers come to the product's voucher.
    pub async fn burst(&mut self, offer: &Offer, plan: Plan) -> anyhow::Result<Burst> {
        let requests = self.purchases(offer, &plan)?;
        self.send(plan, requests).await
    }

    /// Requests to the product.
    pub async fn send(&self, plan: Plan, requests: Requests) -> anyhow::Result<Burst> {
        self.send_to(plan, requests, &self.processes()).await
    }

    /// Requests, while the CPU times of these processes are counted.
    pub async fn send_to(
        &self,
        plan: Plan,
        requests: Requests,
        processes: &[(&'static str, u32)],
    ) -> anyhow::Result<Burst> {
        let meter = Meter::read(processes);
        let outcome = tokio::task::spawn_blocking(move || run(&plan, &requests)).await??;
        let answers = outcome.statuses.values().sum::<u64>();
        let cost = meter.cost(answers, outcome.answered_per_s(), outcome.generator_cores());
        ensure!(answers > 0, "nobody answered");
        // In a closed loop it just is one of those who share the machine; a schedule it must keep.
        let late = matches!(plan.pace, Pace::Open { .. }) && outcome.generator_cores() > BUSY_CORES;
        ensure!(!late, "the generator was too busy to keep its schedule");
        Ok(Burst { outcome, cost })
    }

    fn processes(&self) -> Vec<(&'static str, u32)> {
        let worker = self
            .site
            .worker
            .as_ref()
            .map(|worker| ("worker", worker.pid()));
        let mut processes = vec![
            ("app", self.site.api.pid()),
            ("redis", self.servers.redis.pid()),
        ];
        processes.extend(worker);
        processes.push(("mysql", self.servers.mysql.pid()));
        processes
    }

    /// The raw reference, for as long as a run takes.
    pub async fn raw(&self, connections: u32, attempts: u32) -> anyhow::Result<Raw> {
        let shape = Shape {
            connections,
            attempts,
        };
        raw::measure(&self.programs, &self.servers, shape, self.lasts).await
    }

    /// Calls the worker and watches the backlog of a voucher's partition go into the ledger.
    pub async fn drain(&mut self, offer: &Offer) -> anyhow::Result<Drain> {
        let (partition, seq) = self.site.decided(offer).await?;
        let meter = Meter::read(&[
            ("redis", self.servers.redis.pid()),
            ("mysql", self.servers.mysql.pid()),
        ]);
        let database = self.site.database.clone();
        let watch = tokio::spawn(watch(database, partition, seq));
        self.site.call_worker().await?;
        let (per_s, orders) = watch.await??;
        let mut cost = meter.cost(orders, per_s, 0.0);
        if let Some(worker) = &self.site.worker {
            // It was started for this: its start is counted in.
            cost.us
                .insert("worker", worker.cpu().as_secs_f64() * 1e6 / orders as f64);
        }
        Ok(Drain { per_s, cost })
    }

    /// `always`, `everysec` or `no`.
    pub async fn fsync(&mut self, when: &str) -> anyhow::Result<()> {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("appendfsync").arg(when);
        Ok(set.query_async(&mut self.redis).await?)
    }

    /// How often Redis was called with a script so far: by the product, that is every call of a
    /// purchase.
    pub async fn script_calls(&mut self) -> anyhow::Result<u64> {
        let mut info = redis::cmd("INFO");
        let stats: String = info
            .arg("commandstats")
            .query_async(&mut self.redis)
            .await?;
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = line.and_then(|line| line.split(',').next()?.parse().ok());
        Ok(calls.unwrap_or_default())
    }

    /// How many statements the database was sent so far.
    pub async fn statements(&self) -> anyhow::Result<u64> {
        let status = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                      WHERE VARIABLE_NAME = 'QUESTIONS'";
        let value: String = sqlx::query_scalar(status)
            .fetch_one(&self.site.database)
            .await?;
        Ok(value.parse()?)
    }

    /// Bytes of Redis's memory in use.
    pub async fn redis_memory(&mut self) -> anyhow::Result<u64> {
        let mut info = redis::cmd("INFO");
        let memory: String = info.arg("memory").query_async(&mut self.redis).await?;
        let line = memory
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|line| line.trim().parse().ok())
            .context("no used_memory")
    }

    /// Kills Redis and starts it on its data.
    pub async fn restart_redis(&mut self) -> anyhow::Result<Duration> {
        let took = self.servers.restart_redis(&self.programs).await?;
        self.redis = self.servers.connect_redis().await?;
        self.site.reconnect(&self.servers).await?;
        Ok(took)
    }

    /// A process of the published design.
    pub async fn published(
        &self,
        listen: Option<SocketAddr>,
        database: Option<&str>,
    ) -> anyhow::Result<Process> {
        let program = std::env::current_exe()?;
        let mut args = vec![
            "published".to_owned(),
            "--redis".to_owned(),
            self.servers.redis_url(),
        ];
        if let Some(listen) = listen {
            args.extend(["--listen".to_owned(), listen.to_string()]);
        }
        if let Some(database) = database {
            args.extend(["--mysql".to_owned(), self.servers.mysql_url(database)]);
        }
        let log = self.servers.folder.path().join("published.log");
        let mut process = Process::start("the published design", &program, args, &[], &log)?;
        let ready = async || match listen {
            Some(listen) => tokio::net::TcpStream::connect(listen).await.is_ok(),
            None => true,
        };
        process.until(Duration::from_secs(10), ready).await?;
        Ok(process)
    }

    /// A closed loop against the product, for one run.
    pub fn closed(&self, connections: usize) -> Plan {
        Plan::closed(self.site.address, connections, self.lasts)
    }

    /// A fixed schedule against the product, for one run.
    pub fn open(&self, connections: usize, per_s: f64) -> Plan {
        Plan::open(self.site.address, connections, per_s, self.lasts)
    }
}

impl Meter {
    fn read(processes: &[(&'static str, u32)]) -> Self {
        let times = processes.iter();
        Self {
            times: times
                .map(|(name, pid)| (*name, *pid, crate::machine::process_cpu(*pid)))
                .collect(),
            busy: Busy::now(),
        }
    }

    fn cost(&self, count: u64, per_s: f64, generator_cores: f64) -> Cost {
        let us = self.times.iter().map(|(name, pid, before)| {
            let took = crate::machine::process_cpu(*pid).saturating_sub(*before);
            (*name, took.as_secs_f64() * 1e6 / count.max(1) as f64)
        });
        Cost {
            per_s,
            us: us.collect(),
            generator_cores,
            machine_busy: Busy::now().since(self.busy),
        }
    }
}

/// Watches a partition until the ledger has everything up to `seq`: the rate from the first batch
/// that is seen to the last, and how many decisions there were in all.
async fn watch(
    database: MySqlPool,
    partition: PartitionId,
    seq: u64,
) -> anyhow::Result<(f64, u64)> {
    let applied = async || -> anyhow::Result<u64> {
        let select = "SELECT applied_seq FROM partitions WHERE partition_id = ?";
        Ok(sqlx::query_scalar(select)
            .bind(partition.get())
            .fetch_one(&database)
            .await?)
    };
    let (begun, at_first) = (Instant::now(), applied().await?);
    let mut first = None;
    loop {
        let (now, at) = (Instant::now(), applied().await?);
        if at > at_first && first.is_none() {
            first = Some((now, at));
        }
        if at >= seq {
            let (since, from) = first.context("nothing was seen of the drain")?;
            ensure!(at > from, "drained before it could be watched");
            return Ok((
                (at - from) as f64 / (now - since).as_secs_f64(),
                at - at_first,
            ));
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(3),
            "not drained: {at} of {seq}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
