//! What an order, a waiting buyer and a request take: G12. On a fresh deployment.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::admission::PLENTY;
use crate::book::Book;
use crate::lab::Lab;
use crate::load::Plan;
use crate::machine::resident_bytes;
use crate::site::{Offer, Told};

const ORDERS: usize = 100_000;
const CONNECTIONS: usize = 4_000;
/// As many as the product takes, but for those of the benchmark itself.
const IDLE_CONNECTIONS: usize = 9_900;
const WHILE_FROZEN: Duration = Duration::from_millis(600);

pub(super) async fn per_order(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    lab.renew(&[("SECKILL_STREAM_KEEP_S", "1")]).await?;
    let offer = lab.site.sell(PLENTY, 0).await?;
    let (told, before) = fill(lab, &offer).await?;
    let taken = lab.redis_memory().await?.saturating_sub(before);
    lab.site.check(&offer, told).await?;
    book.value("G12a", taken as f64 / told.granted as f64);
    until_trimmed(lab).await?;

    let offer = lab.site.sell(1, ORDERS as u64 + 10).await?;
    let first = lab.crowd.purchases(&offer.id, 1)?;
    let first = lab.send(lab.closed(1), first).await?;
    lab.site.check(&offer, Told::from(&first.outcome)).await?;
    let (told, before) = fill(lab, &offer).await?;
    let told = told + Told::from(&first.outcome);
    lab.site.check(&offer, told).await?;
    let waiting = until_trimmed(lab).await?.saturating_sub(before);
    book.value("G12b", waiting as f64 / ORDERS as f64);
    in_flight(lab, book).await
}

/// Everybody of `ORDERS` buyers comes, with the worker away; returns what Redis had in use before.
async fn fill(lab: &mut Lab, offer: &Offer) -> anyhow::Result<(Told, u64)> {
    lab.site.send_worker_away().await?;
    let requests = lab.crowd.purchases(&offer.id, ORDERS)?;
    let before = lab.redis_memory().await?;
    let plan = Plan::closed(lab.site.address, 256, Duration::from_mins(2));
    let burst = lab.send(plan, requests).await?;
    let outcome = &burst.outcome;
    let there = outcome.granted + outcome.waitlisted;
    anyhow::ensure!(
        there == ORDERS as u64,
        "{there} of {ORDERS}: {:?}",
        outcome.statuses
    );
    Ok((Told::from(outcome), before))
}

/// Waits until nothing is trimmed any more, with the worker at work; returns what is in use then.
async fn until_trimmed(lab: &mut Lab) -> anyhow::Result<u64> {
    let (mut last, mut same) = (u64::MAX, 0);
    while same < 5 {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let now = lab.redis_memory().await?;
        // Connections and buffers come and go; an order takes more.
        same = if last.abs_diff(now) < 64 * 1_024 {
            same + 1
        } else {
            0
        };
        last = now;
    }
    Ok(last)
}

/// Memory of the process with open connections, and with a request under way on each: Redis is
/// frozen meanwhile, so that none is answered.
async fn in_flight(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let all = CONNECTIONS.to_string();
    lab.renew(&[("SECKILL_REQUESTS_MAX", &all)]).await?;
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.send_worker_away().await?;
    let requests = purchases(lab, &offer)?;
    let (pid, address) = (lab.site.api.pid(), lab.site.address);
    let alone = resident_bytes(pid);
    let connect = move || -> std::io::Result<Vec<TcpStream>> {
        (0..IDLE_CONNECTIONS).map(|_| connect(address)).collect()
    };
    let mut connections = tokio::task::spawn_blocking(connect).await??;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let connected = resident_bytes(pid);
    // They stay open until the end.
    let _idle = connections.split_off(CONNECTIONS);

    lab.servers.redis.freeze(true)?;
    let asked = tokio::task::spawn_blocking(move || ask(connections, &requests)).await?;
    tokio::time::sleep(WHILE_FROZEN).await;
    let asking = resident_bytes(pid);
    lab.servers.redis.freeze(false)?;
    let told = tokio::task::spawn_blocking(move || read(asked?)).await??;
    lab.site.check(&offer, told).await?;
    let each = |more: u64, than: u64, count: usize| {
        more.saturating_sub(than) as f64 / count as f64 / 1_024.0
    };
    book.value("G12c", each(asking, connected, CONNECTIONS));
    book.aside(
        "app memory per idle connection, of 9,900, KiB",
        each(connected, alone, IDLE_CONNECTIONS),
    );
    book.aside("app memory at rest, MiB", alone as f64 / 1_048_576.0);
    Ok(())
}

fn purchases(lab: &mut Lab, offer: &Offer) -> anyhow::Result<Vec<Vec<u8>>> {
    let requests = lab.crowd.purchases(&offer.id, CONNECTIONS)?;
    Ok((0..CONNECTIONS as u64)
        .map(|number| requests.bytes(number))
        .collect())
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

fn ask(mut streams: Vec<TcpStream>, requests: &[Vec<u8>]) -> std::io::Result<Vec<TcpStream>> {
    for (stream, request) in streams.iter_mut().zip(requests) {
        stream.write_all(request)?;
    }
    Ok(streams)
}

fn read(streams: Vec<TcpStream>) -> std::io::Result<Told> {
    let mut told = Told::default();
    for mut stream in streams {
        let mut answer = [0; 2_048];
        let read = stream.read(&mut answer)?;
        if answer[..read].starts_with(b"HTTP/1.1 202") {
            told.granted += 1;
        } else {
            told.unknown += 1;
        }
    }
    Ok(told)
}
