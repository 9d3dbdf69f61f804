//! The disk is full under Redis or under the database, on a small file system in memory (F29).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::{Scene, held, refused, until};

/// A small disk. Dropped, it is gone.
struct SmallDisk {
    place: PathBuf,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new(program).args(arguments).output();
    let ran = ran.map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    ran.status.success().then_some(()).ok_or(said)
}

impl SmallDisk {
    /// Puts a disk of so many megabytes in the place of a folder, with what is in it. An error if
    /// this user may not mount.
    fn under(place: &Path, megabytes: u32) -> Result<Self, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (place, kept) = (text(place), text(&place.with_extension("kept")));
        let size = format!("size={megabytes}m");
        run("cp", &["-a", &place, &kept])?;
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &place])?;
        let disk = Self {
            place: PathBuf::from(&place),
        };
        run("cp", &["-a", &format!("{kept}/."), &place])?;
        run("rm", &["-rf", &kept])?;
        Ok(disk)
    }

    /// Not a byte is left.
    fn fill(&self) {
        let filler = format!("of={}", self.filler().display());
        // It says that the disk is full, which is what is wanted.
        let written = run("dd", &["if=/dev/zero", &filler, "bs=4k"]);
        assert!(written.is_err_and(|said| said.contains("No space")));
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("the filler");
    }

    fn filler(&self) -> PathBuf {
        self.place.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: its server may still be there.
        let _ = run("umount", &["-l", &self.place.to_string_lossy()]);
    }
}

/// Redis can write no more. Under `everysec` it refuses writes (MISCONF) and goes on once there is
/// space; under `always` it gives up, and whoever watches it starts it again.
#[tokio::test]
async fn f29_the_disk_is_full_under_redis() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let redis = &scene.site.servers().redis;
    redis.stop().await;
    let disk = match SmallDisk::under(redis.folder(), 32) {
        Ok(disk) => disk,
        Err(error) => return row.skipped(&format!("no small disk: {error}")),
    };
    redis.start().await;
    let sale = scene.busy(20_000, 8).await;
    let ledger = scene.ledger().await;
    for policy in ["everysec", "always"] {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("appendfsync").arg(policy);
        scene.gate().await.run::<()>(&set).await;
        let stalled = scene.pile_up(&ledger, 20).await;
        row.struck(
            &format!("no space for Redis, {policy}"),
            scene.in_flight().await,
        );
        disk.fill();
        refused(&scene.history).await;
        if policy == "always" {
            until("Redis gives up", async || {
                (!redis.is_running()).then_some(()).ok_or(String::new())
            })
            .await;
        }
        stalled.release().await;
        disk.free();
        redis.start().await;
        sale.sells(30).await;
    }
    sale.ends(&scene, row).await;
    redis.kill().await;
}

/// The database can write no more. Purchases go on: their orders wait, and none of them is given up.
#[tokio::test]
async fn f29_the_disk_is_full_under_the_database() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let mysql = &scene.site.servers().mysql;
    mysql.stop().await;
    let disk = match SmallDisk::under(&mysql.folder().join("data"), 320) {
        Ok(disk) => disk,
        Err(error) => return row.skipped(&format!("no small disk: {error}")),
    };
    mysql.start().await;
    let sale = scene.busy(50_000, 48).await;
    disk.fill();
    // Until the files have no room left for orders.
    until("the ledger falls behind", async || {
        let in_flight = scene.in_flight().await;
        (in_flight >= 300)
            .then_some(())
            .ok_or(in_flight.to_string())
    })
    .await;
    row.struck("no space for the database", scene.in_flight().await);
    disk.free();
    sale.sells(50).await;
    let demand = sale.demand;
    let verdict = sale.judged(&scene).await;
    let parked = scene.ledger().await.parked().await;
    assert_eq!(parked, 0, "orders were given up");
    held(&scene, row, &verdict, demand);
    mysql.kill().await;
}
