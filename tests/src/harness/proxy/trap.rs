//! Waiting for one request, and doing something to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::watch;

/// How long a test waits for its request to come by.
const SPRUNG_WITHIN: Duration = Duration::from_secs(30);

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It does not arrive, nor does anything behind it, until [`Trap::release`].
    Held,
    /// It arrives and is done, and nothing more is heard from the server on this connection.
    Unanswered,
    /// It arrives and is done, and the connection breaks after so many bytes of the reply.
    Broken {
        /// Bytes that the process still gets.
        after: usize,
    },
}

/// A request that is waited for. Dropped, it is waited for no longer, and goes on if it was held.
#[derive(Debug)]
pub struct Trap(Arc<Snare>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Set,
    Sprung,
    Released,
}

/// The part of a trap that the connections know.
#[derive(Debug)]
pub(super) struct Snare {
    texts: Vec<Vec<u8>>,
    fate: Fate,
    /// Requests that are still let pass.
    let_pass: AtomicUsize,
    /// Some request has been chosen, or none is to be any more.
    over: AtomicBool,
    stage: watch::Sender<Stage>,
}

impl Trap {
    pub(super) fn of(snare: Arc<Snare>) -> Self {
        Self(snare)
    }

    /// Whether it has happened. What [`Fate::Held`] holds has not reached the server; of the others
    /// the server has done what was asked, since it has begun to answer.
    pub fn is_sprung(&self) -> bool {
        *self.0.stage.borrow() != Stage::Set
    }

    /// Returns when it has happened, and panics if it does not.
    pub async fn sprung(&self) {
        let mut stage = self.0.stage.subscribe();
        let happened = stage.wait_for(|stage| *stage != Stage::Set);
        let happened = tokio::time::timeout(SPRUNG_WITHIN, happened).await;
        assert!(happened.is_ok(), "no such request in {SPRUNG_WITHIN:?}");
    }

    /// What was held goes on.
    pub fn release(&self) {
        self.0.over.store(true, Relaxed);
        self.0.stage.send_replace(Stage::Released);
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.release();
    }
}

impl Snare {
    pub(super) fn new(texts: &[&str], nth: usize, fate: Fate) -> Self {
        assert!(!texts.is_empty() && nth > 0, "a request to wait for");
        Self {
            texts: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            fate,
            let_pass: AtomicUsize::new(nth - 1),
            over: AtomicBool::new(false),
            stage: watch::Sender::new(Stage::Set),
        }
    }

    pub(super) fn fate(&self) -> Fate {
        self.fate
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    pub(super) fn spring(&self) {
        self.stage.send_if_modified(|stage| {
            let sprung = *stage == Stage::Set;
            if sprung {
                *stage = Stage::Sprung;
            }
            sprung
        });
    }

    pub(super) async fn until_released(&self) {
        let mut stage = self.stage.subscribe();
        // An error would mean that the trap is gone, and a snare goes with its trap.
        let _ = stage.wait_for(|stage| *stage == Stage::Released).await;
    }

    /// Whether the request in hand is the one.
    fn takes(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.let_pass
            .fetch_update(Relaxed, Relaxed, one_less)
            .is_err()
            && !self.over.swap(true, Relaxed)
    }
}

/// What one connection has said of what is waited for.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// By the place of the snare among all of the proxy.
    progress: HashMap<usize, Progress>,
}

/// How far one connection is with one snare.
#[derive(Debug, Default)]
struct Progress {
    /// How many of its texts were heard.
    texts: usize,
    /// The last bytes since: the next text may have begun in them.
    tail: Vec<u8>,
}

impl Heard {
    /// The process says something more. Returns the snare that it steps into, if any.
    pub(super) fn more(&mut self, bytes: &[u8], snares: &[Arc<Snare>]) -> Option<Arc<Snare>> {
        let set = snares.iter().enumerate().filter(|(_, set)| !set.is_over());
        for (place, snare) in set {
            let progress = self.progress.entry(place).or_default();
            if progress.is_through(bytes, &snare.texts) && snare.takes() {
                return Some(Arc::clone(snare));
            }
        }
        None
    }
}

impl Progress {
    /// Whether the last of the texts has come. Then it begins anew.
    fn is_through(&mut self, bytes: &[u8], texts: &[Vec<u8>]) -> bool {
        self.tail.extend_from_slice(bytes);
        let mut rest = self.tail.as_slice();
        while let Some(wanted) = texts.get(self.texts) {
            let found = rest.windows(wanted.len()).position(|some| some == wanted);
            let Some(at) = found else { break };
            rest = &rest[at + wanted.len()..];
            self.texts += 1;
        }
        let Some(wanted) = texts.get(self.texts) else {
            *self = Self::default();
            return true;
        };
        let kept = rest.len().min(wanted.len() - 1);
        self.tail = rest[rest.len() - kept..].to_vec();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(texts: &[&str], nth: usize, said: &[&str]) -> Option<usize> {
        let snares = [Arc::new(Snare::new(texts, nth, Fate::Held))];
        let mut heard = Heard::default();
        said.iter()
            .position(|some| heard.more(some.as_bytes(), &snares).is_some())
    }

    #[test]
    fn texts_are_heard_one_after_the_other_and_across_packets() {
        assert_eq!(heard(&["COMMIT"], 1, &["BEGIN", "xxCOMMITyy"]), Some(1));
        assert_eq!(heard(&["COMMIT"], 1, &["COM", "M", "IT", "x"]), Some(2));
        assert_eq!(
            heard(&["42", "COMMIT"], 1, &["COMMIT 42", "COMMIT"]),
            Some(1)
        );
        assert_eq!(heard(&["42", "COMMIT"], 1, &["42COMMIT"]), Some(0));
        assert_eq!(
            heard(&["42", "COMMIT"], 1, &["COMMIT", "4", "COMMIT"]),
            None
        );
    }

    #[test]
    fn others_are_let_pass_and_one_is_enough() {
        assert_eq!(heard(&["x"], 3, &["x", "x", "x", "x"]), Some(2));
        let snares = [Arc::new(Snare::new(&["x"], 1, Fate::Held))];
        let (mut one, mut other) = (Heard::default(), Heard::default());
        assert!(one.more(b"x", &snares).is_some());
        assert!(other.more(b"x", &snares).is_none());
    }
}
