//! Clocks that jump by an hour, there and back (F26). Time is faked by a library that is loaded into
//! the process (libfaketime, Debian's package `faketime`); the monotonic clock goes on, as it does
//! when an administrator or NTP sets the clock.

use std::path::{Path, PathBuf};

use seckill_domain::{OrderStatus, VoucherId};
use seckill_tests::harness::{Asked, Call, Event, Offer, Process, Shop, Told, buyer};
use seckill_tests::matrix::Row;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::scene::{Sale, Scene, held, sells, until};

/// Where Debian puts it, by architecture, and others.
const FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
];

/// A clock that can be set.
struct Clock {
    offset: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// `None` without the library.
    fn set_right(folder: &Path) -> Option<Self> {
        let library = FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join("libfaketimeMT.so.1"))
            .find(|path| path.is_file())?;
        let offset = folder.join("clock");
        let clock = Self { offset, library };
        clock.jump_to(0);
        Some(clock)
    }

    /// So many seconds from the right time.
    fn jump_to(&self, seconds: i32) {
        // Whoever reads it in between must not find half a number.
        let next = self.offset.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}\n")).expect("a file");
        std::fs::rename(&next, &self.offset).expect("a file");
    }

    fn environment(&self) -> [(&'static str, String); 5] {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // The allocator of Redis asks for the time while the library begins, which then waits for
        // itself: that of the C library does not.
        let preloaded = format!("{} libc.so.6", text(&self.library));
        [
            ("LD_PRELOAD", preloaded),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.offset)),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}

const HOUR_S: i32 = 3_600;
const HOUR_MS: i64 = 3_600_000;

/// Open for hours, before and after.
fn long_sale(units: u32) -> Offer {
    Offer::of(units)
        .opens_in_ms(-3 * HOUR_MS)
        .closes_in_ms(3 * HOUR_MS)
}

/// The clock is put forward and back, and a payment window of two seconds ends in two seconds,
/// whatever anybody's clock says. All others go on.
async fn jumps(scene: &Scene, clock: &Clock, row: &mut Row, sale: &Sale, whose: &str) {
    let shop = scene.shop(&sale.process);
    let hasty = insist_on(&shop, &long_sale(10).payment_window_s(2)).await;
    for seconds in [HOUR_S, -HOUR_S] {
        let ledger = scene.ledger().await;
        let held = scene.pile_up(&ledger, 20).await;
        clock.jump_to(seconds);
        row.struck(&format!("{whose} {seconds:+} s"), scene.in_flight().await);
        held.release().await;
        sells(&sale.load, 30).await;
        let who = buyer();
        let order = shop.buy_settled(hasty, who).await;
        let unpaid = [OrderStatus::Queued, OrderStatus::PendingPayment];
        let seen = shop.order_past(order, who, &unpaid).await;
        assert_eq!(seen.order_status(), OrderStatus::Expired);
    }
}

/// Puts something on sale while the database has a crowd's orders to write.
async fn insist_on(shop: &Shop, offer: &Offer) -> VoucherId {
    let voucher = shop.draft(offer).await;
    until("it is on sale", async || {
        let reply = shop.steer(voucher, "publish").await;
        (reply.status == 200).then_some(()).ok_or(reply.text)
    })
    .await;
    voucher
}

/// Order ids keep rising, whatever the clock does: whoever asks after another was answered gets a
/// higher one. A repeat under a key, which gets the one that it had, does not count.
fn assert_ids_rise(events: &[Event]) {
    let granted = |event: &Event| match (&event.asked, &event.told) {
        (Asked::Purchase { key: None, .. }, Told::Purchase(answer)) => answer.granted(),
        _ => None,
    };
    let mut answered: Vec<_> = events
        .iter()
        .filter_map(|event| Some((event.ended, event.begun, granted(event)?)))
        .collect();
    answered.sort_unstable();
    let mut asked = answered.clone();
    asked.sort_unstable_by_key(|(_, begun, _)| *begun);
    let mut before = answered.into_iter().peekable();
    let mut highest = None;
    for (_, begun, order) in asked {
        while let Some((_, _, earlier)) = before.next_if(|(ended, ..)| *ended < begun) {
            highest = highest.max(Some(earlier));
        }
        assert!(Some(order) > highest, "{order} was drawn after {highest:?}");
    }
    assert!(highest.is_some(), "one after the other");
}

/// Windows of a quarter of an hour: nobody has expired.
async fn ends(sale: Sale, scene: &Scene, row: Row) {
    let (voucher, demand) = (sale.voucher, sale.demand);
    let verdict = sale.judged(scene).await;
    let expired = verdict
        .facts
        .orders
        .iter()
        .filter(|(_, order)| order.voucher == voucher && order.status == OrderStatus::Expired);
    let expired: Vec<_> = expired.map(|(order, _)| order).collect();
    assert!(expired.is_empty(), "{expired:?}");
    assert_ids_rise(&scene.history.events());
    held(scene, row, &verdict, demand);
}

const NO_LIBRARY: &str = "no libfaketime on this machine: install the package faketime";

/// What a process takes the time for, in seconds.
async fn told_by(process: &Process) -> i64 {
    let reply = process.shop().ask(Call::get("/livez")).await;
    let date = OffsetDateTime::parse(reply.header("date"), &Rfc2822);
    date.expect("a date").unix_timestamp()
}

/// The clock has jumped: without that nothing would have been tried.
#[track_caller]
fn assert_far(right: i64, far: i64) {
    assert!(far - right > i64::from(HOUR_S) / 2, "{right}, {far}");
}

/// The clock of a process of the service.
#[tokio::test]
async fn f26_the_clock_of_a_process_jumps() {
    let Some((mut row, mut scene)) = Scene::begin().await else {
        return;
    };
    let folder = scene.site.servers().redis.folder().to_owned();
    let Some(clock) = Clock::set_right(&folder) else {
        return row.skipped(NO_LIBRARY);
    };
    for (name, value) in clock.environment() {
        scene = scene.with(name, &value);
    }
    let sale = scene.busy_with(&long_sale(20_000), 8).await;
    let right = told_by(&sale.process).await;
    jumps(&scene, &clock, &mut row, &sale, "a process").await;
    clock.jump_to(HOUR_S);
    assert_far(right, told_by(&sale.process).await);
    clock.jump_to(0);
    ends(sale, &scene, row).await;
}

/// The clock of Redis: leases end early or late, and nothing else comes of it.
#[tokio::test]
async fn f26_the_clock_of_redis_jumps() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let redis = &scene.site.servers().redis;
    let Some(clock) = Clock::set_right(redis.folder()) else {
        return row.skipped(NO_LIBRARY);
    };
    for (name, value) in clock.environment() {
        redis.set_environment(name, &value);
    }
    redis.restart().await;
    let sale = scene.busy_with(&long_sale(20_000), 8).await;
    jumps(&scene, &clock, &mut row, &sale, "Redis").await;
    let time = redis::cmd("TIME");
    clock.jump_to(0);
    let (right, _): (i64, i64) = scene.gate().await.run(&time).await;
    clock.jump_to(HOUR_S);
    let (far, _): (i64, i64) = scene.gate().await.run(&time).await;
    assert_far(right, far);
    clock.jump_to(0);
    ends(sale, &scene, row).await;
}
