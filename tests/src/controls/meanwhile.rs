//! What somebody else does in the middle of another's work.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

/// Happens once, when somebody comes by; by default nothing happens.
#[derive(Default)]
pub struct Meanwhile(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Meanwhile {
    /// This happens.
    pub fn of(act: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(act))))
    }

    /// Whoever comes by waits until it has happened; later ones do not notice it.
    pub async fn happen(&self) {
        let act = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(act) = act {
            act.await;
        }
    }
}
