//! Sessions of order writers between two batches.
//!
//! A writer goes on with a session that was used a moment ago. Through the pool alone each batch
//! would ping the server, and now and then log in again because the connection is not back yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::Trouble;
use crate::session::Session;

/// The right of a writer to a session. There are as many as the pool has connections, half of them for
/// second halves of batches, so whoever has one finds a kept session or a connection in the pool, and
/// nobody waits for a turn because of somebody's half.
pub(crate) type Turn = OwnedSemaphorePermit;

/// Sessions that wait for the next batch, the last one used on top.
pub(crate) struct WriterSessions {
    turns: Arc<Semaphore>,
    beside: Arc<Semaphore>,
    kept: Mutex<Vec<Session>>,
    patience: Duration,
}

impl WriterSessions {
    pub(crate) fn new(writers: u32, patience: Duration) -> Self {
        let writers = usize::try_from(writers.max(1)).unwrap_or(1);
        Self {
            turns: Arc::new(Semaphore::new(writers)),
            beside: Arc::new(Semaphore::new(writers)),
            kept: Mutex::default(),
            patience,
        }
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) -> Result<Turn, Trouble> {
        let turn = self.turns.clone().acquire_owned();
        match tokio::time::timeout(self.patience, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Trouble::Crowded),
        }
    }

    /// A turn for a second session, if there is one.
    pub(crate) fn turn_beside(&self) -> Option<Turn> {
        self.beside.clone().try_acquire_owned().ok()
    }

    /// A session that was kept. The server may have ended it meanwhile.
    pub(crate) fn next(&self) -> Option<Session> {
        self.kept().pop()
    }

    /// Keeps a session for the next turn, unless the pool is closing.
    pub(crate) fn keep(&self, mut session: Session, may_keep: impl FnOnce() -> bool) {
        let turn = session.end_turn();
        let mut kept = self.kept();
        if may_keep() {
            kept.push(session);
        }
        drop(kept);
        drop(turn);
    }

    /// Lets all sessions go.
    pub(crate) fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Session>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
