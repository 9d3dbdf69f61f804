//! The hot path in Redis keeps the contract of every port, under both schemes of order ids.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use std::sync::Arc;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, RedisResult};
use seckill_application::ports::{Clock, HotPath};
use seckill_domain::{PartitionId, Partitions, Timestamp, VoucherId};
use seckill_redis::{OrderIdScheme, RedisConfig, RedisHotPath};
use seckill_tests::contract::{BACKLOG_LIMIT, Harm, HotHarness, PARTITIONS};
use seckill_tests::stack;

/// The name of the consumer group, which is part of the deployment: another release must find it.
const GROUP: &str = "writers";

/// The clock of this process.
struct SystemClock {
    started: Instant,
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.expect("after 1970").as_millis();
        Timestamp::from_millis(i64::try_from(millis).expect("before the end of time"))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

struct HotStand {
    config: RedisConfig,
    ports: HotPath,
    behind: MultiplexedConnection,
}

async fn hot_stand() -> Option<HotStand> {
    stand(OrderIdScheme::Snowflake).await
}

async fn daily_counter_stand() -> Option<HotStand> {
    stand(OrderIdScheme::DailyCounter).await
}

async fn stand(order_ids: OrderIdScheme) -> Option<HotStand> {
    let stack = stack::shared().await?;
    let partitions = Partitions::new(PARTITIONS.try_into().expect("not zero"));
    let config = RedisConfig {
        namespace: stack.fresh_namespace(),
        backlog_limit: BACKLOG_LIMIT,
        order_ids,
        // On a new Redis the first id takes this long.
        id_lease: Duration::from_millis(500),
        ..RedisConfig::new(stack.redis_url(), partitions)
    };
    let client = redis::Client::open(stack.redis_url()).expect("a Redis URL");
    let behind = client.get_multiplexed_async_connection().await;
    Some(HotStand {
        ports: connect(&config).await,
        config,
        behind: behind.expect("Redis answers"),
    })
}

async fn connect(config: &RedisConfig) -> HotPath {
    let started = Instant::now();
    let clock = Arc::new(SystemClock { started });
    let connected = RedisHotPath::connect(config, clock).await;
    connected.expect("Redis answers").ports()
}

#[async_trait]
impl HotHarness for HotStand {
    fn hot(&self) -> &HotPath {
        &self.ports
    }

    async fn another_process(&self) -> HotPath {
        connect(&self.config).await
    }

    async fn gate_time(&self) -> Timestamp {
        let mut behind = self.behind.clone();
        let time: (i64, i64) = redis::cmd("TIME").query_async(&mut behind).await.unwrap();
        Timestamp::from_millis(time.0 * 1_000 + time.1 / 1_000)
    }

    async fn elapse(&self, time: Duration) {
        // A little more, since neighbours round to the millisecond.
        tokio::time::sleep(time + Duration::from_millis(5)).await;
    }

    async fn harm(&self, harm: Harm) {
        self.try_to_harm(harm).await.unwrap();
    }

    async fn pieces(&self, voucher: VoucherId) -> Vec<String> {
        let tag = self.tag(self.config.partitions.of(voucher));
        let of_vouchers = format!("{tag}:v");
        let of_this = format!("{tag}:v{voucher}:");
        let mut keys = self.keys(&format!("{tag}:*")).await.unwrap();
        keys.retain(|key| key.starts_with(&of_this) || !key.starts_with(&of_vouchers));
        keys.sort();
        keys
    }
}

impl HotStand {
    /// What all keys of a partition begin with.
    fn tag(&self, partition: PartitionId) -> String {
        format!("{{{}:p{partition}}}", self.config.namespace)
    }

    async fn keys(&self, pattern: &str) -> RedisResult<Vec<String>> {
        let mut behind = self.behind.clone();
        let mut found = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(pattern)
                .arg("COUNT")
                .arg(1_000);
            let (next, page): (u64, Vec<String>) = scan.query_async(&mut behind).await?;
            found.extend(page);
            cursor = next;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    /// The stream of the life that the partition is in.
    async fn stream(&self, partition: PartitionId) -> RedisResult<String> {
        let mut behind = self.behind.clone();
        let tag = self.tag(partition);
        let epoch: String = behind.hget(format!("{tag}:meta"), "epoch").await?;
        Ok(format!("{tag}:stream:{epoch}"))
    }

    async fn try_to_harm(&self, harm: Harm) -> RedisResult<()> {
        let mut behind = self.behind.clone();
        match harm {
            Harm::Wipe => {
                // All of this test's; others share the server.
                let namespace = &self.config.namespace;
                for pattern in [format!("{{{namespace}:*"), format!("{namespace}:*")] {
                    for key in self.keys(&pattern).await? {
                        let _: () = behind.del(key).await?;
                    }
                }
            }
            Harm::Lose { piece, .. } => {
                let lost: u64 = behind.del(&piece).await?;
                assert_eq!(lost, 1, "{piece} was there");
            }
            Harm::LoseGroup(partition) => {
                let stream = self.stream(partition).await?;
                let destroyed: u64 = behind.xgroup_destroy(stream, GROUP).await?;
                assert_eq!(destroyed, 1);
            }
            Harm::LoseStream(partition) => {
                let stream = self.stream(partition).await?;
                let lost: u64 = behind.del(stream).await?;
                assert_eq!(lost, 1);
            }
            Harm::PlantEntry { partition, fields } => {
                let stream = self.stream(partition).await?;
                let mut add = redis::cmd("XADD");
                add.arg(stream).arg("*");
                for (name, value) in fields {
                    add.arg(name).arg(value);
                }
                let _: String = add.query_async(&mut behind).await?;
            }
            Harm::PlantUnits { voucher, units } => {
                let tag = self.tag(self.config.partitions.of(voucher));
                let _: i64 = behind
                    .hincr(format!("{tag}:v{voucher}:sale"), "free", units)
                    .await?;
            }
        }
        Ok(())
    }
}

seckill_tests::hot_path_contract!(crate::hot_stand);

mod order_ids_by_daily_counter {
    seckill_tests::order_ids!(crate::daily_counter_stand);
}
