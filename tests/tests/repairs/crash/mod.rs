//! A process stops between any two of its steps, for ever; others go on.
//!
//! A [`Scene`] is something a process does. It is played again and again, each time with the process
//! stopped one call further: before its first call, before its second, and so on until it gets to
//! the end; in memory once more, stopped after each of them. A fresh process finds what is left, on
//! the same stores. Between the end of a call and the beginning of the next nothing happens that
//! anybody else could see, so one pass sees every state of the stores. Who comes first afterwards
//! alternates: the sweeps of the workers, or the caller who asks again; in memory each has his turn
//! at every state.

mod careless;
mod ground;
mod mend;
mod money;
mod parked;
mod promote;
mod relay;
mod release;
mod retire;
mod stock;
mod story;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use seckill_tests::controls::{Branch, Cut, Fuse, drain};
use seckill_tests::matrix::Row;

use ground::{Ground, Place};
use story::Story;

/// Something that a process does, and what must come of it.
trait Scene: Sized {
    /// Calls before and after which the process must have been stopped, among others.
    const REACHES: &'static [&'static str];
    /// Whether every unit is accounted for at any time; not if the scene begins with one astray.
    const IS_CONSERVED: bool = true;

    /// What was there before.
    async fn set(place: &Arc<Place>) -> Self;

    /// The sale, and who was told what.
    fn story(&self) -> &Story;

    /// What the process does.
    async fn act(&self, process: &Branch);

    /// The caller asks again: whatever he is told is true. May be called at any time.
    async fn again(&self, process: &Branch);

    /// Whether the sweeps have nothing left to do, apart from what they have always to do.
    async fn is_over(&self, _process: &Branch) -> bool {
        true
    }

    /// What has become of it, once the caller was answered and all is quiet.
    async fn check(&self, process: &Branch);
}

/// More points than any scene has: a scene that never ends is broken.
const POINTS_MAX: usize = 500;

/// How often a process was stopped, and what it was at.
#[derive(Default)]
struct Stops {
    points: usize,
    /// Calls that were under way when it stopped, at most.
    under_way: usize,
}

impl Stops {
    /// In the row that lists the current test, if there is one.
    fn fill(&self, row: Option<Row>) {
        if let Some(mut row) = row {
            row.struck("the process ends before or after a step", self.under_way);
            row.ended(&format!("at each of {} points", self.points));
        }
    }
}

/// Stops the process at every point.
async fn at_every_step<S: Scene>(ground: &Ground) -> Stops {
    let mut stops = Stops::default();
    let sides: &[fn(usize) -> Cut] = match ground {
        Ground::Memory => &[Cut::Before, Cut::After],
        Ground::Servers { .. } => &[Cut::Before],
    };
    for side in sides {
        let mut reached = BTreeSet::new();
        for turn in 0.. {
            assert!(turn < POINTS_MAX, "it never ends");
            let Some((call, under_way)) = play::<S>(ground, side(turn)).await else {
                break;
            };
            reached.insert(call);
            stops.points += 1;
            stops.under_way = stops.under_way.max(under_way);
        }
        for call in S::REACHES {
            assert!(reached.contains(call), "{call} is not among {reached:?}");
        }
    }
    let (points, scene) = (stops.points, std::any::type_name::<S>());
    eprintln!("{points} points of {scene}");
    stops
}

/// Plays a scene with the process stopped there. Returns the call at which it stopped, and how many
/// were under way; `None` if it got to the end.
async fn play<S: Scene>(ground: &Ground, cut: Cut) -> Option<(&'static str, usize)> {
    let place = ground.place();
    let scene = S::set(&place).await;
    let fuse = Arc::new(Fuse::at(cut));
    let process = place.doomed(&fuse);
    let done = fuse.run_counting(scene.act(&process)).await;
    drop(process);
    let stopped_at = fuse.stopped_at();
    assert_eq!(done.is_err(), stopped_at.is_some(), "{cut:?}");
    let _told = OnPanic(format!(
        "{} stopped {cut:?} {stopped_at:?}",
        std::any::type_name::<S>()
    ));

    let next = place.branch();
    let story = scene.story();
    if S::IS_CONSERVED {
        story.assert_conserved(&next).await;
    }
    place.let_claims_run_out(&story.orders()).await;
    if asks_first(cut) {
        scene.again(&next).await;
    }
    recover(&scene, &next).await;
    if S::IS_CONSERVED {
        story.assert_conserved(&next).await;
    }
    scene.again(&next).await;
    recover(&scene, &next).await;
    scene.check(&next).await;
    story.assert_sound(&next).await;
    place.put_away(story.voucher()).await;
    stopped_at.zip(done.err())
}

/// Whether the caller asks again before any worker has come by. The state before a call is the state
/// after the one before it, and gets the other answer.
fn asks_first(cut: Cut) -> bool {
    match cut {
        Cut::Before(turn) | Cut::After(turn) => turn % 2 == 1,
        Cut::BeforeAny(_) => false,
    }
}

/// How often the workers come by until nothing is left to do.
const ROUNDS_MAX: usize = 500;

/// The workers of a fresh process do what they always do, until nothing is left to do. None of them
/// reconciles.
async fn recover<S: Scene>(scene: &S, process: &Branch) {
    let story = scene.story();
    let mut writer = process.writer("next").await;
    let mut left = String::new();
    for _ in 0..ROUNDS_MAX {
        drain(&mut writer).await;
        while process.expire.sweep().await.unwrap() > 0 {}
        process.expire.on_time().await.unwrap();
        process.upkeep.run().await.unwrap();
        process.relay.sweep().await.unwrap();
        process.load_wanted(&mut writer).await;
        process.retire.run().await.unwrap();
        let publisher = story.place().publisher(process, "next");
        publisher.run().await.unwrap();
        left = story.unquiet(process).await;
        if left.is_empty() && scene.is_over(process).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("something does not drain: {left}");
}

/// Says where a process was stopped, if what follows fails.
struct OnPanic(String);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {}", self.0);
        }
    }
}

/// Plays a scene on servers, if there are to be some.
async fn at_every_step_on_servers<S: Scene>() -> Option<Stops> {
    let ground = Ground::servers().await?;
    Some(at_every_step::<S>(&ground).await)
}

/// What came of all scenes of a room, on servers; if there were none, nothing was driven.
fn all_of_a_room(row: Option<Row>, scenes: &[Option<Stops>]) {
    let played: Option<Vec<&Stops>> = scenes.iter().map(Option::as_ref).collect();
    let Some(played) = played else {
        if let Some(row) = row {
            row.skipped("only memory was asked for");
        }
        return;
    };
    let most = played.iter().map(|stops| stops.under_way).max();
    let all = Stops {
        points: played.iter().map(|stops| stops.points).sum(),
        under_way: most.unwrap_or(0),
    };
    all.fill(row);
}

/// Stamps scenes into tests: in memory one each; on servers, which take their time to have written
/// what they say is written, all of a room at once.
macro_rules! at_every_step {
    ($($name:ident => $scene:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                let row = seckill_tests::matrix::Row::of_this_test();
                let ground = crate::crash::ground::Ground::memory();
                crate::crash::at_every_step::<super::$scene>(&ground).await.fill(row);
            })+
        }

        mod servers {
            use futures::FutureExt as _;
            use futures::future::join_all;

            /// Stands for: several writes, one after the other: a crash between them loses the unit
            /// (2.23).
            #[tokio::test]
            async fn every_scene_of_this_room() {
                let row = seckill_tests::matrix::Row::of_this_test();
                let scenes = vec![
                    $(crate::crash::at_every_step_on_servers::<super::$scene>().boxed_local()),+
                ];
                crate::crash::all_of_a_room(row, &join_all(scenes).await);
            }
        }
    };
}
use at_every_step as stamped;
