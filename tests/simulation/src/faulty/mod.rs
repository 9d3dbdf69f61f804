//! Every port, with a way in front of it on which requests and answers get lost, come late, or take
//! long.

mod hot;
mod ledger;
mod unit;

use std::sync::Arc;

use seckill_application::ports::{HotPath, LedgerPorts, Payments};

use crate::link::Link;
use crate::watch::Watch;

/// A port behind a way.
pub(crate) struct Faulty<P: ?Sized> {
    inner: Arc<P>,
    link: Arc<Link>,
    watch: Arc<Watch>,
}

impl<P: ?Sized> Faulty<P> {
    fn before(inner: &Arc<P>, link: &Arc<Link>, watch: &Arc<Watch>) -> Arc<Self> {
        Arc::new(Self {
            inner: inner.clone(),
            link: link.clone(),
            watch: watch.clone(),
        })
    }
}

/// The ports of the hot store, as one process sees them.
pub(crate) fn hot(inner: &HotPath, link: &Arc<Link>, watch: &Arc<Watch>) -> HotPath {
    HotPath {
        gate: Faulty::before(&inner.gate, link, watch),
        loader: Faulty::before(&inner.loader, link, watch),
        stream: Faulty::before(&inner.stream, link, watch),
        leases: Faulty::before(&inner.leases, link, watch),
        // Ids are drawn from what a process has at hand.
        order_ids: inner.order_ids.clone(),
        delays: Faulty::before(&inner.delays, link, watch),
        notifier: Faulty::before(&inner.notifier, link, watch),
        feed: Faulty::before(&inner.feed, link, watch),
    }
}

/// The ports of the ledger, as one process sees them.
pub(crate) fn ledger(inner: &LedgerPorts, link: &Arc<Link>, watch: &Arc<Watch>) -> LedgerPorts {
    LedgerPorts {
        ledger: Faulty::before(&inner.ledger, link, watch),
        admissions: Faulty::before(&inner.admissions, link, watch),
        updates: Faulty::before(&inner.updates, link, watch),
        events: Faulty::before(&inner.events, link, watch),
        parked: Faulty::before(&inner.parked, link, watch),
        money: Faulty::before(&inner.money, link, watch),
        reconciliations: Faulty::before(&inner.reconciliations, link, watch),
    }
}

/// The payment provider, as one process sees it.
pub(crate) fn payments(
    inner: &Arc<dyn Payments>,
    link: &Arc<Link>,
    watch: &Arc<Watch>,
) -> Arc<dyn Payments> {
    Faulty::before(inner, link, watch)
}

/// Implements a port: each method is one call over the way. Those under `late` may be carried out
/// after their caller has given them up; `extra` are written by hand.
macro_rules! faulty {
    ($port:ident as $name:literal {
        $($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*
    } late {
        $($late:ident($($arg_l:ident: $ty_l:ty),*) -> $reply_l:ty
            { $($kept:ident = $own:expr),* } ($($lent:expr),*);)*
    } extra { $($extra:tt)* }) => {
        #[async_trait]
        impl $port for Faulty<dyn $port> {
            $(async fn $method(&self, $($arg: $ty),*) -> Result<$reply, Fault> {
                const NAME: &str = concat!($name, ".", stringify!($method));
                self.link.call(NAME, self.inner.$method($($arg),*)).await
            })*
            $(async fn $late(&self, $($arg_l: $ty_l),*) -> Result<$reply_l, Fault> {
                const NAME: &str = concat!($name, ".", stringify!($late));
                let inner = self.inner.clone();
                let late: $crate::link::Late = {
                    $(let $kept = $own;)*
                    Box::new(move || Box::pin(async move {
                        drop(inner.$late($($lent),*).await);
                    }))
                };
                self.link
                    .watched(NAME, Some(late), self.inner.$late($($arg_l),*), |_, _| {})
                    .await
            })*
            $($extra)*
        }
    };
}
pub(crate) use faulty;
