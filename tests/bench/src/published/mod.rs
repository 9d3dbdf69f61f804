//! The design that is published again and again, as a reference: one call of a script per request,
//! and a consumer that takes one message at a time into the database.
//!
//! It is given what the product has: the same build profile, allocator and HTTP library, prepared
//! statements, `TCP_NODELAY`, one shared connection with the same buffers. It is spared what the
//! product does besides: rate limits, metrics, request ids, a trace of each request, problem
//! documents, an idempotency key, a waitlist. Its holes are left as they are published.

mod consumer;
mod door;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo as _};
use sqlx::mysql::MySqlPool;

pub use consumer::{STATEMENTS, consume};
pub use door::serve;

/// The one voucher that is on sale.
pub const VOUCHER: u64 = 1;
/// Its free units.
pub const STOCK: &str = "published:stock:1";
/// Its buyers.
pub const BUYERS: &str = "published:buyers:1";
/// Orders on their way to the database.
pub const STREAM: &str = "published:orders";
/// The consumer group of the stream.
pub const GROUP: &str = "published";

/// Stock, then repeat, then take, remember and send: in one step.
pub const SCRIPT: &str = r"
if tonumber(redis.call('get', KEYS[1])) <= 0 then
  return 1
end
if redis.call('sismember', KEYS[2], ARGV[2]) == 1 then
  return 2
end
redis.call('incrby', KEYS[1], -1)
redis.call('sadd', KEYS[2], ARGV[2])
redis.call('xadd', KEYS[3], '*', 'userId', ARGV[2], 'voucherId', ARGV[1], 'id', ARGV[3])
return 0
";

/// Where the design's process works.
#[derive(Debug, Clone, clap::Args)]
pub struct PublishedArgs {
    /// Where to answer requests; without it none are
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// The address of Redis
    #[arg(long)]
    redis: String,
    /// The address of the database; without it nothing is consumed
    #[arg(long)]
    mysql: Option<String>,
}

/// A connection with the product's settings.
pub async fn connect(url: &str, wait: Option<Duration>) -> anyhow::Result<MultiplexedConnection> {
    let info = url.into_connection_info()?;
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(1)))
        .set_response_timeout(wait)
        .set_pipeline_buffer_size(4_096)
        .set_write_backpressure_boundary(64 * 1_024);
    let client = Client::open(info)?;
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

/// Puts the voucher on sale, in Redis and in an empty database.
pub async fn put_on_sale(
    redis: &mut MultiplexedConnection,
    database: &MySqlPool,
    units: u64,
) -> anyhow::Result<()> {
    for statement in consumer::SCHEMA {
        sqlx::raw_sql(statement).execute(database).await?;
    }
    sqlx::query("INSERT INTO vouchers (id, stock) VALUES (?, ?)")
        .bind(VOUCHER)
        .bind(units)
        .execute(database)
        .await?;
    let mut setup = redis::pipe();
    setup.cmd("UNLINK").arg(&[STOCK, BUYERS, STREAM]).ignore();
    setup.cmd("SET").arg(STOCK).arg(units).ignore();
    setup
        .cmd("XGROUP")
        .arg("CREATE")
        .arg(STREAM)
        .arg(GROUP)
        .arg("0")
        .arg("MKSTREAM")
        .ignore();
    setup.query_async::<()>(redis).await?;
    Ok(())
}

/// Runs the design's process until it is killed.
pub fn run(args: &PublishedArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (redis, mysql) = (args.redis.clone(), args.mysql.clone());
        let consumer = tokio::spawn(async move {
            match &mysql {
                Some(mysql) => consume(&redis, mysql).await,
                None => std::future::pending().await,
            }
        });
        let (redis, listen) = (args.redis.clone(), args.listen);
        let door = tokio::spawn(async move {
            match listen {
                Some(listen) => serve(listen, &redis).await,
                None => std::future::pending().await,
            }
        });
        // Tasks of their own, so that neither waits for the other's turn.
        tokio::select! {
            ended = consumer => ended?.context("the consumer"),
            ended = door => ended?.context("the door"),
        }
    })
}
