//! What happens when nobody pays: G15.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use sqlx::Connection as _;
use sqlx::mysql::{MySqlConnection, MySqlPool};

use super::admission::PLENTY;
use crate::book::Book;
use crate::client::ask;
use crate::lab::Lab;
use crate::load::Plan;
use crate::published;
use crate::site::{Offer, Told};

const ORDERS: usize = 100_000;
/// Long enough that all are in the ledger before the first expires.
const WINDOW_S: u64 = 30;
const PROMOTIONS: usize = 50;

pub(super) async fn expiry(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    // All are due when the worker comes back: how fast is it?
    let offer = sold(lab).await?;
    lab.site.call_worker().await?;
    lab.site.drained(&offer).await?;
    lab.site.send_worker_away().await?;
    until_due(lab, &offer).await?;
    lab.site.call_worker().await?;
    let ours = returned(lab, &offer).await?;
    lab.site.send_worker_away().await?;
    let theirs = one_by_one(lab).await?;
    book.pair("G15a", ours, theirs);

    // The worker is there all the time: how late is it?
    let offer = sold(lab).await?;
    lab.site.call_worker().await?;
    lab.site.drained(&offer).await?;
    returned(lab, &offer).await?;
    book.value("G15b", lateness_p99(lab, &offer).await?);
    book.value("G15c", promotion_p99(lab).await?);
    Ok(())
}

/// 100,000 orders, decided with the worker away.
async fn sold(lab: &mut Lab) -> anyhow::Result<Offer> {
    let offer = lab.site.sell_for(PLENTY, 0, WINDOW_S).await?;
    lab.site.send_worker_away().await?;
    let requests = lab.crowd.purchases(&offer.id, ORDERS)?;
    let plan = Plan::closed(lab.site.address, 256, Duration::from_mins(2));
    let burst = lab.send(plan, requests).await?;
    let granted = Told::from(&burst.outcome).granted;
    ensure!(
        granted == ORDERS as u64,
        "{granted} of {ORDERS}: {:?}",
        burst.outcome.statuses
    );
    Ok(offer)
}

async fn until_due(lab: &Lab, offer: &Offer) -> anyhow::Result<()> {
    let select = "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), MAX(expires_at)) FROM orders \
                  WHERE voucher_id = ?";
    let select = sqlx::query_scalar(select).bind(offer.id.parse::<u64>()?);
    let left: i64 = select.fetch_one(&lab.site.database).await?;
    tokio::time::sleep(Duration::from_micros(u64::try_from(left).unwrap_or(0))).await;
    Ok(())
}

/// Waits until the database has all units back; the rate from the first that is seen. Then the gate
/// must have them as well.
async fn returned(lab: &mut Lab, offer: &Offer) -> anyhow::Result<f64> {
    let id = offer.id.parse::<u64>()?;
    let all = i32::try_from(offer.units)?;
    let gone = i32::try_from(ORDERS)?;
    let stock = async |database: &MySqlPool| -> anyhow::Result<i32> {
        let select = "SELECT stock_units FROM voucher_stock WHERE voucher_id = ?";
        Ok(sqlx::query_scalar(select)
            .bind(id)
            .fetch_one(database)
            .await?)
    };
    let (begun, mut first) = (Instant::now(), None);
    let rate = loop {
        let (now, units) = (Instant::now(), stock(&lab.site.database).await?);
        if units > all - gone && first.is_none() {
            first = Some((now, units));
        }
        if units == all {
            let (since, from) = first.context("nothing was seen of the expiry")?;
            break f64::from(all - from) / (now - since).as_secs_f64();
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(3),
            "not expired: {units} of {all} units"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let path = format!("GET /v1/admin/vouchers/{}/balance", offer.id);
    loop {
        let (_, balance) = ask(lab.site.address, &path, Some(lab.site.admin()), None).await?;
        if balance["holds"] == true && balance["free"].as_u64() == Some(offer.units) {
            return Ok(rate);
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(3),
            "not at the gate: {balance}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn lateness_p99(lab: &Lab, offer: &Offer) -> anyhow::Result<f64> {
    let select = "SELECT TIMESTAMPDIFF(MICROSECOND, expires_at, updated_at) FROM orders \
                  WHERE voucher_id = ? AND status = 'expired' ORDER BY 1 DESC LIMIT 1 OFFSET ?";
    let select = sqlx::query_scalar(select)
        .bind(offer.id.parse::<u64>()?)
        .bind(u64::try_from(ORDERS / 100)?);
    let late: i64 = select.fetch_one(&lab.site.database).await?;
    Ok(late as f64 / 1e6)
}

/// One unit goes from buyer to buyer: each cancels, and the next one's order must be his.
async fn promotion_p99(lab: &mut Lab) -> anyhow::Result<f64> {
    let offer = lab.site.sell(1, PROMOTIONS as u64 + 1).await?;
    lab.site.call_worker().await?;
    let address = lab.site.address;
    let mut orders = Vec::new();
    for _ in 0..=PROMOTIONS {
        let token = lab.crowd.token()?;
        let buy = format!("POST /v1/vouchers/{}/purchases", offer.id);
        let (_, bought) = ask(address, &buy, Some(&token), None).await?;
        let order = bought["order_id"]
            .as_str()
            .with_context(|| format!("no order: {bought}"))?;
        orders.push((token, order.to_owned()));
    }
    let mut took = Vec::new();
    for pair in orders.windows(2) {
        let [(holder, held), (next, waiting)] = pair else {
            continue;
        };
        let begun = Instant::now();
        let cancel = format!("POST /v1/orders/{held}/cancellation");
        let (status, cancelled) = ask(address, &cancel, Some(holder), None).await?;
        ensure!(status == 200, "not cancelled: {status} {cancelled}");
        let look = format!("GET /v1/orders/{waiting}");
        loop {
            let (_, order) = ask(address, &look, Some(next), None).await?;
            // Given his units, whether or not the ledger has that yet.
            if order["status"] == "queued" || order["status"] == "pending_payment" {
                break;
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(30),
                "not promoted: {order}"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        took.push(begun.elapsed());
    }
    let last = Told {
        granted: 1,
        unknown: 0,
    };
    lab.site.check(&offer, last).await?;
    took.sort();
    // Of so few the highest is the 99th percentile.
    Ok(took.last().context("nobody was promoted")?.as_secs_f64())
}

/// Orders a second that are cancelled as it is published: look, cancel, give the unit back, in the
/// database and then in Redis.
async fn one_by_one(lab: &mut Lab) -> anyhow::Result<f64> {
    const MANY: u64 = 10_000;
    let pool = lab.empty_database("published").await?;
    published::put_on_sale(&mut lab.redis, &pool, PLENTY).await?;
    let fill = format!(
        "INSERT INTO orders (id, user_id, voucher_id) \
         SELECT seq, seq * 2654435761 % 1000000007, 1 FROM seq_1_to_{MANY}"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(fill))
        .execute(&pool)
        .await?;
    let mut database = pool.acquire().await?.detach();
    let begun = Instant::now();
    let mut order = 0;
    while begun.elapsed() < lab.lasts && order < MANY {
        order += 1;
        cancel(&mut database, order).await?;
        let mut back = redis::pipe();
        back.cmd("INCR").arg(published::STOCK).ignore();
        let buyer = order.wrapping_mul(2_654_435_761) % 1_000_000_007;
        back.cmd("SREM").arg(published::BUYERS).arg(buyer).ignore();
        back.query_async::<()>(&mut lab.redis).await?;
    }
    let rate = order as f64 / begun.elapsed().as_secs_f64();
    let stock: i64 = sqlx::query_scalar("SELECT stock FROM vouchers")
        .fetch_one(&mut database)
        .await?;
    let mut left = redis::cmd("GET");
    let left: i64 = left
        .arg(published::STOCK)
        .query_async(&mut lab.redis)
        .await?;
    let all = i64::try_from(PLENTY + order)?;
    ensure!(
        (stock, left) == (all, all),
        "one by one: {stock} in the database, {left} in Redis, not {all}"
    );
    database.close().await?;
    pool.close().await;
    Ok(rate)
}

async fn cancel(database: &mut MySqlConnection, order: u64) -> anyhow::Result<()> {
    let mut transaction = database.begin().await?;
    let select = "SELECT status FROM orders WHERE id = ?";
    let status: u8 = sqlx::query_scalar(select)
        .bind(order)
        .fetch_one(&mut *transaction)
        .await?;
    ensure!(status == 1, "order {order} is in state {status}");
    for statement in [
        "UPDATE orders SET status = 4 WHERE id = ?",
        "UPDATE vouchers SET stock = stock + 1 WHERE id = (SELECT voucher_id FROM orders WHERE id = ?)",
    ] {
        sqlx::query(statement)
            .bind(order)
            .execute(&mut *transaction)
            .await?;
    }
    Ok(transaction.commit().await?)
}
