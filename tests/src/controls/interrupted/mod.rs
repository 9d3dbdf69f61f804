//! A process that stops for ever before or after one of its calls.

mod fuse;
mod hot;
mod ledger;
mod unit;

use std::sync::Arc;

use seckill_application::ports::{HotPath, LedgerPorts};

use super::Stores;
pub use fuse::{Cut, Fuse};

/// A port whose calls are counted, one of which may be the process's last.
struct Interrupted<P: ?Sized> {
    inner: Arc<P>,
    fuse: Arc<Fuse>,
}

impl<P: ?Sized> Interrupted<P> {
    fn before(inner: &Arc<P>, fuse: &Arc<Fuse>) -> Arc<Self> {
        Arc::new(Self {
            inner: inner.clone(),
            fuse: fuse.clone(),
        })
    }
}

/// The ports of a process that stops where the fuse says.
pub fn interrupted(stores: &Stores, fuse: &Arc<Fuse>) -> Stores {
    Stores {
        hot: hot_path(&stores.hot, fuse),
        ledger: ledger_ports(&stores.ledger, fuse),
        clock: stores.clock.clone(),
    }
}

fn hot_path(inner: &HotPath, fuse: &Arc<Fuse>) -> HotPath {
    HotPath {
        gate: Interrupted::before(&inner.gate, fuse),
        loader: Interrupted::before(&inner.loader, fuse),
        stream: Interrupted::before(&inner.stream, fuse),
        leases: Interrupted::before(&inner.leases, fuse),
        order_ids: Interrupted::before(&inner.order_ids, fuse),
        delays: Interrupted::before(&inner.delays, fuse),
        notifier: Interrupted::before(&inner.notifier, fuse),
        // Only wakes people of the same process, and goes with it.
        feed: inner.feed.clone(),
    }
}

fn ledger_ports(inner: &LedgerPorts, fuse: &Arc<Fuse>) -> LedgerPorts {
    LedgerPorts {
        ledger: Interrupted::before(&inner.ledger, fuse),
        admissions: Interrupted::before(&inner.admissions, fuse),
        updates: Interrupted::before(&inner.updates, fuse),
        events: Interrupted::before(&inner.events, fuse),
        parked: Interrupted::before(&inner.parked, fuse),
        money: Interrupted::before(&inner.money, fuse),
        reconciliations: Interrupted::before(&inner.reconciliations, fuse),
    }
}

/// Implements a port: each method is one call that the fuse counts.
macro_rules! counted {
    ($port:ident as $name:literal {
        $($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*
    }) => {
        #[async_trait]
        impl $port for Interrupted<dyn $port> {
            $(async fn $method(&self, $($arg: $ty),*) -> Result<$reply, Fault> {
                const NAME: &str = concat!($name, ".", stringify!($method));
                self.fuse.call(NAME, self.inner.$method($($arg),*)).await
            })*
        }
    };
}
use counted;
