//! One message at a time.

use redis::AsyncCommands as _;
use redis::streams::{StreamId, StreamReadOptions, StreamReadReply};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::{GROUP, STREAM, connect};

/// The tables: the same kinds of columns and keys as the published ones.
pub(super) const SCHEMA: [&str; 2] = [
    "CREATE TABLE vouchers (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, stock INT NOT NULL) \
     ENGINE = InnoDB",
    "CREATE TABLE orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, \
     user_id BIGINT UNSIGNED NOT NULL, voucher_id BIGINT UNSIGNED NOT NULL, \
     status TINYINT UNSIGNED NOT NULL DEFAULT 1, \
     created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
     UNIQUE KEY once (user_id, voucher_id), KEY due (status, created_at)) ENGINE = InnoDB",
];

/// What one message costs the database: between `BEGIN` and `COMMIT`, look, take, insert.
pub const STATEMENTS: [&str; 3] = [
    "SELECT COUNT(*) FROM orders WHERE user_id = ? AND voucher_id = ?",
    "UPDATE vouchers SET stock = stock - 1 WHERE id = ? AND stock > 0",
    "INSERT INTO orders (id, user_id, voucher_id) VALUES (?, ?, ?)",
];

/// Consumes until something fails.
pub async fn consume(redis: &str, mysql: &str) -> anyhow::Result<()> {
    // A connection of its own for the blocking read, and one for the acknowledgements.
    let mut reader = connect(redis, None).await?;
    let mut redis = connect(redis, None).await?;
    let mut database = mysql.parse::<MySqlConnectOptions>()?.connect().await?;
    let options = StreamReadOptions::default()
        .group(GROUP, "c1")
        .count(1)
        .block(2_000);
    loop {
        let read: Option<StreamReadReply> =
            reader.xread_options(&[STREAM], &[">"], &options).await?;
        let messages = read
            .into_iter()
            .flat_map(|read| read.keys)
            .flat_map(|key| key.ids);
        for message in messages {
            create_order(&mut database, &message).await?;
            redis
                .xack::<_, _, _, ()>(STREAM, GROUP, &[&message.id])
                .await?;
        }
    }
}

async fn create_order(database: &mut MySqlConnection, message: &StreamId) -> anyhow::Result<()> {
    let field = |name| message.get::<u64>(name).unwrap_or_default();
    let (order, user, voucher) = (field("id"), field("userId"), field("voucherId"));
    let mut transaction = database.begin().await?;
    let bought: i64 = sqlx::query_scalar(STATEMENTS[0])
        .bind(user)
        .bind(voucher)
        .fetch_one(&mut *transaction)
        .await?;
    if bought > 0 {
        return Ok(());
    }
    let taken = sqlx::query(STATEMENTS[1])
        .bind(voucher)
        .execute(&mut *transaction)
        .await?;
    if taken.rows_affected() == 0 {
        return Ok(());
    }
    sqlx::query(STATEMENTS[2])
        .bind(order)
        .bind(user)
        .bind(voucher)
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}
