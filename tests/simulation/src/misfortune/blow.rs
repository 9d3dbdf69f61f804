//! One stroke of misfortune.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, Claim, Decision, Held, Order, OrderId, OrderStatus, VoucherId};
use seckill_memory::{MemoryHotPath, Piece};

use super::{Kind, UNDO_DEPTH};
use crate::buyers::Buyer;
use crate::coverage::Seen;
use crate::dice::Dice;
use crate::judge::Judge;
use crate::link::Store;
use crate::loops::LEASE_TTL;
use crate::note;
use crate::site::{FORGED, Site};

/// How wrong a clock gets at most; ids may run ahead of a clock by ten seconds.
const OFF_MS_MAX: u64 = 4_000;

/// Who strikes, and who is told that he does.
pub(super) struct Blow {
    pub(super) site: Arc<Site>,
    pub(super) judge: Arc<Judge>,
}

impl Blow {
    pub(super) fn strike(&self, kind: Kind) {
        note!(self.site.nature.trace, "--- {kind:?}");
        match kind {
            Kind::Storm => self.storm(),
            Kind::Crash => self.crash(),
            Kind::Stall => self.stall(),
            Kind::Wipe => {
                self.saw(Seen::Wipe);
                self.lose(MemoryHotPath::wipe);
            }
            Kind::Failover => self.fail_over(),
            Kind::KeyLost => self.lose_key(),
            Kind::Unload => self.unload(),
            Kind::HotOutage => self.outage(Store::Hot),
            Kind::LedgerOutage => self.outage(Store::Ledger),
            Kind::Cut => self.cut(),
            Kind::Clock => self.clock(),
            Kind::Garbage => self.garbage(),
            Kind::Forgery => self.forgery(),
            Kind::Spoilt => self.spoil_message(),
            Kind::MessageGone => self.lose_message(),
            Kind::HolderGone => self.lose_holder(),
            Kind::ReleaseMissed => self.miss_release(),
            Kind::FreeOff => self.shift_free(),
            Kind::DelaysLost => {
                self.saw_if(self.site.stores.memory.lose_delays(), Seen::DelaysLost);
            }
        }
    }

    fn dice(&self) -> &Dice {
        &self.site.nature.dice
    }

    fn saw(&self, what: Seen) {
        self.site.nature.coverage.saw(what);
    }

    fn saw_if(&self, happened: bool, what: Seen) {
        if happened {
            self.saw(what);
        }
    }

    fn later(&self, pause: Duration, act: impl FnOnce(&Site) + Send + 'static) {
        let site = self.site.clone();
        self.site.nature.spawn(async move {
            site.nature.sleep(pause).await;
            act(&site);
        });
    }

    fn storm(&self) {
        let dice = self.dice();
        let weather = &self.site.nature.weather;
        weather.set(dice.count(0..=60), dice.count(0..=60), dice.count(0..=100));
        self.later(dice.millis(500..=6_000), |site| {
            site.nature.weather.set(0, 0, 0);
        });
    }

    /// A process that writes orders, more often than not: what it does must not be done twice.
    fn victim(&self) -> usize {
        let writers = self.site.writers();
        let any = self.site.any_process();
        let writer = self.dice().pick(&writers).copied();
        writer.filter(|_| self.dice().chance(700)).unwrap_or(any)
    }

    fn crash(&self) {
        let process = self.victim();
        if self.site.node(process).is_none() {
            return;
        }
        self.saw(Seen::Crash);
        if self.site.stores.is_busy() {
            self.saw(Seen::CrashInFlight);
        }
        self.site.kill(process);
        self.later(self.dice().millis(100..=6_000), move |site| {
            site.start(process);
        });
    }

    fn stall(&self) {
        let Some(node) = self.site.node(self.victim()) else {
            return;
        };
        self.saw(Seen::Stall);
        let group = node.group;
        let pause = self.dice().millis(300..=8_000);
        let nature = &self.site.nature;
        if pause > LEASE_TTL {
            // Others will have taken over what it has in hand by then.
            nature.weather.stall_with_batch(group, pause);
            return;
        }
        nature.spawner.pause(group);
        self.later(pause, move |site| {
            site.nature.spawner.resume(group);
        });
    }

    /// Loses hot data: what the hot store has decided and the ledger does not have may be in it.
    fn lose<T>(&self, lose: impl FnOnce(&MemoryHotPath) -> T) -> T {
        self.judge.damaged();
        let site = &self.site;
        let before = site.watch.on_their_way();
        let answer = lose(&site.stores.memory);
        site.watch.has_lost(before);
        site.excuse_the_dead();
        answer
    }

    fn fail_over(&self) {
        let recent = self.site.recent_writes();
        if recent == 0 {
            return;
        }
        let writes = self.dice().below(recent.min(UNDO_DEPTH)) + 1;
        if self.lose(|memory| memory.lose_last(writes)) > 0 {
            self.saw(Seen::Failover);
            for order in self.waiting() {
                if !self.site.stores.keeps(order.id) {
                    self.site.watch.forgot_place(&order);
                }
            }
            self.stir_the_waiting();
        }
    }

    /// Who waits in the ledger.
    fn waiting(&self) -> impl Iterator<Item = Order> {
        let orders = self.judge.orders().into_iter();
        orders.filter(|order| order.status() == OrderStatus::Waiting)
    }

    /// Some of those who wait ask again, before anybody can have noticed that places are gone.
    fn stir_the_waiting(&self) {
        for order in self.waiting().filter(|_| self.dice().chance(500)) {
            let site = self.site.clone();
            self.site
                .nature
                .spawn(async move { Buyer::asks_again(site, &order).await });
        }
    }

    fn lose_key(&self) {
        let site = &self.site;
        let Some(voucher) = self.dice().pick(&site.on_sale()).copied() else {
            return;
        };
        let partition = site.stores.partitions.of(voucher);
        let pieces = [
            Piece::Sale(voucher),
            Piece::Holders(voucher),
            Piece::Waiters(voucher),
            Piece::Keys(voucher),
            Piece::Meta(partition),
            Piece::Stream(partition),
            Piece::Group(partition),
            Piece::Decided(partition),
        ];
        let Some(piece) = self.dice().pick(&pieces).copied() else {
            return;
        };
        note!(site.nature.trace, "{piece:?} is lost");
        if self.lose(|memory| memory.delete(piece)) {
            self.saw(Seen::KeyLost);
        }
        if let Piece::Keys(voucher) = piece {
            site.watch.lost_keys(voucher);
        }
    }

    fn unload(&self) {
        if let Some(voucher) = self.any_voucher() {
            self.saw(Seen::Eviction);
            self.site.stores.memory.delete(Piece::Sale(voucher));
        }
    }

    fn outage(&self, store: Store) {
        self.saw(Seen::Outage);
        self.site.nature.weather.down(store, true);
        self.later(self.dice().millis(100..=5_000), move |site| {
            site.nature.weather.down(store, false);
        });
    }

    fn cut(&self) {
        let Some(node) = self.site.node(self.victim()) else {
            return;
        };
        self.saw(Seen::Cut);
        let store = if self.dice().chance(500) {
            Store::Hot
        } else {
            Store::Ledger
        };
        let group = node.group;
        self.site.nature.weather.cut(group, store, true);
        self.later(self.dice().millis(100..=6_000), move |site| {
            site.nature.weather.cut(group, store, false);
        });
    }

    fn clock(&self) {
        let off = i64::try_from(self.dice().within(0..=2 * OFF_MS_MAX)).expect("small");
        let off = off - i64::try_from(OFF_MS_MAX).expect("small");
        self.saw(Seen::ClockStep);
        let node = self.site.node(self.site.any_process());
        match node.filter(|_| self.dice().chance(500)) {
            Some(node) => node.local_clock.set_off(off),
            None => self.site.stores.hot_clock.set_off(off),
        }
    }

    fn any_voucher(&self) -> Option<VoucherId> {
        self.dice().pick(&self.site.on_sale()).copied()
    }

    fn any_order(&self, is: impl Fn(&Order) -> bool) -> Option<Order> {
        let orders: Vec<Order> = self.judge.orders().into_iter().filter(is).collect();
        self.dice().pick(&orders).cloned()
    }

    fn garbage(&self) {
        let Some(voucher) = self.any_voucher() else {
            return;
        };
        let partition = self.site.stores.partitions.of(voucher);
        let memory = &self.site.stores.memory;
        let planted = memory.plant_entry(partition, "{\"hello\": 1}");
        self.saw_if(planted.is_some(), Seen::Garbage);
    }

    /// A decision with the next number that no sale took part in.
    fn forgery(&self) {
        let Some(voucher) = self.any_voucher() else {
            return;
        };
        let partition = self.site.stores.partitions.of(voucher);
        let order = OrderId::new(self.dice().within(1..=1_000));
        let unknown = VoucherId::new(voucher.get() + 1_000);
        let voucher = if self.dice().chance(500) {
            voucher
        } else {
            unknown
        };
        self.judge.damaged();
        let claim = Claim {
            order,
            voucher,
            buyer: BuyerId::new(FORGED),
            quantity: self.dice().count(0..=2),
            key: None,
        };
        note!(self.site.nature.trace, "forged: {claim:?}");
        let memory = &self.site.stores.memory;
        let planted = memory.plant_decisions(partition, vec![Decision::Granted(claim)]);
        self.saw_if(planted, Seen::Forgery);
    }

    /// The ledger has to put it aside, with its units.
    fn spoil_message(&self) {
        let stores = &self.site.stores;
        let alone = stores.partitions.all().flat_map(|it| stores.alone(it));
        let granted = |it: &Decision| matches!(it, Decision::Granted(_));
        let claims = alone.filter(granted);
        let claims: Vec<Claim> = claims.filter_map(|it| it.claim().cloned()).collect();
        if let Some(claim) = self.dice().pick(&claims) {
            note!(self.site.nature.trace, "the message of {claim:?} is spoilt");
            self.site.watch.spoils(claim);
            let memory = &stores.memory;
            let spoilt = memory.spoil_message(claim.voucher, claim.order, true);
            self.saw_if(spoilt, Seen::Spoilt);
        }
    }

    fn lose_message(&self) {
        let stores = &self.site.stores;
        let decisions = stores.partitions.all().flat_map(|it| stores.unapplied(it));
        // One that a buyer left by is not missed by anybody: reconciliation compares holders.
        let granted = decisions.filter(|it| it.units_taken() > 0);
        let claims = granted.filter_map(|it| it.claim().cloned());
        let claims: Vec<Claim> = claims
            .filter(|it| it.buyer != BuyerId::new(FORGED))
            .collect();
        if let Some(claim) = self.dice().pick(&claims) {
            note!(self.site.nature.trace, "the message of {claim:?} is lost");
            let removed = self.lose(|memory| memory.remove_message(claim.voucher, claim.order));
            self.saw_if(removed, Seen::MessageGone);
        }
    }

    fn lose_holder(&self) {
        if let Some(order) = self.any_order(|order| order.status().is_live()) {
            self.judge.damaged();
            note!(self.site.nature.trace, "the holder of {} is lost", order.id);
            let memory = &self.site.stores.memory;
            let dropped = memory.drop_holder(order.voucher, order.id);
            self.saw_if(dropped, Seen::HolderGone);
        }
    }

    fn miss_release(&self) {
        use OrderStatus::{Cancelled, Expired, Refunded};
        let ended = |order: &Order| matches!(order.status(), Cancelled | Expired | Refunded);
        let Some(order) = self.any_order(ended) else {
            return;
        };
        let memory = &self.site.stores.memory;
        let units = i32::try_from(order.quantity).expect("few");
        self.judge.damaged();
        if memory.shift_free(order.voucher, -units) {
            note!(
                self.site.nature.trace,
                "the release of {} is lost",
                order.id
            );
            let held = Held {
                order: order.id,
                quantity: order.quantity,
                promoted: false,
            };
            memory.plant_holder(order.voucher, order.buyer, held);
            self.saw(Seen::ReleaseMissed);
        }
    }

    fn shift_free(&self) {
        let Some(voucher) = self.any_voucher() else {
            return;
        };
        let by = if self.dice().chance(500) { 1 } else { -1 };
        self.judge.damaged();
        note!(self.site.nature.trace, "{by:+} unit of {voucher}");
        let shifted = self.site.stores.memory.shift_free(voucher, by);
        self.saw_if(shifted, Seen::FreeOff);
    }
}
