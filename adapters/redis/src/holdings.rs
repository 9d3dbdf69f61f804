//! Who holds units and who waits, as the gate knows it.

use std::num::NonZeroU32;

use redis::{Cmd, RedisWrite};
use seckill_application::Fault;
use seckill_application::ports::{Claimant, HoldersPage, WaitersPage};
use seckill_domain::{BuyerId, Claim, Held, IdempotencyKey, OrderId, Seat, VoucherId};

use crate::fault::at_most;
use crate::gate_answers::not_loaded;
use crate::reply::Reply;
use crate::scripts::{GATE_HELD, GATE_HOLDERS, GATE_WAITERS, Script};
use crate::store::{Lane, Store, words};
use crate::survivors::seat;
use crate::wire::decode_key;

const BUYERS_MAX: usize = 1_000;
/// Holders, or those who wait, of a page, about.
const PAGE: usize = 1_000;

/// What the gate has of these buyers, in the order asked. `None` if the voucher is not loaded.
pub(crate) async fn of_buyers(
    store: &Store,
    voucher: VoucherId,
    buyers: &[BuyerId],
) -> Result<Option<Vec<Claimant>>, Fault> {
    const CLAIMANTS: &str = "purchase_gate.claimants";
    at_most(CLAIMANTS, buyers.len(), BUYERS_MAX)?;
    let args = |command: &mut Cmd| {
        command.write_arg_fmt(voucher);
        for buyer in buyers {
            command.write_arg_fmt(buyer);
        }
    };
    let target = store.target(voucher);
    let reply = store
        .run(CLAIMANTS, Lane::Bulk, &GATE_HELD, target, &args)
        .await?;
    if not_loaded(&reply)?.is_some() {
        return Ok(None);
    }
    let (pairs, []) = reply.rest().as_chunks() else {
        return Err(reply.senseless());
    };
    if reply.kind() != "HELD" || pairs.len() != buyers.len() {
        return Err(reply.senseless());
    }
    let claimant = |[orders, place]: &[String; 2]| Claimant {
        held: readable(&reply, stored(orders)).map(Stored::held).collect(),
        seat: readable(&reply, places(std::slice::from_ref(place))).next(),
    };
    Ok(Some(pairs.iter().map(claimant).collect()))
}

/// Everybody who holds units, a page at a time: pages of Redis's own scan, which shows whoever is
/// there all the time. `None` if the voucher is not loaded, or what somebody holds cannot be read.
pub(crate) async fn holders(
    store: &Store,
    voucher: VoucherId,
    cursor: u64,
) -> Result<Option<HoldersPage>, Fault> {
    const HOLDERS: &str = "purchase_gate.holders";
    let Some((reply, next)) = page(store, HOLDERS, &GATE_HOLDERS, voucher, cursor).await? else {
        return Ok(None);
    };
    let (holders, []) = reply.rest().get(1..).unwrap_or_default().as_chunks() else {
        return Err(reply.senseless());
    };
    let keyless = |claim: Claim| Claim { key: None, ..claim };
    let claims = holders.iter().flat_map(|it| claims(voucher, it));
    let claims = readable(&reply, claims).map(keyless).collect();
    Ok(Some(HoldersPage { claims, next }))
}

/// Everybody who waits, by rising turn, a page at a time. `None` if the voucher is not loaded.
pub(crate) async fn waiters(
    store: &Store,
    voucher: VoucherId,
    cursor: u64,
) -> Result<Option<WaitersPage>, Fault> {
    const WAITERS: &str = "purchase_gate.waiters";
    let Some((reply, next)) = page(store, WAITERS, &GATE_WAITERS, voucher, cursor).await? else {
        return Ok(None);
    };
    let found = places(reply.rest().get(1..).unwrap_or_default());
    let seats = readable(&reply, found).collect();
    Ok(Some(WaitersPage { seats, next }))
}

/// A page, and where the next one starts. `None` if the voucher is not loaded.
async fn page(
    store: &Store,
    port: &'static str,
    script: &Script,
    voucher: VoucherId,
    cursor: u64,
) -> Result<Option<(Reply, Option<u64>)>, Fault> {
    let args = |command: &mut Cmd| words(command, &[&voucher, &cursor, &PAGE]);
    let target = store.target(voucher);
    let reply = store.run(port, Lane::Bulk, script, target, &args).await?;
    if not_loaded(&reply)?.is_some() {
        return Ok(None);
    }
    let next: u64 = reply.parsed(1)?;
    Ok(Some((reply, (next != 0).then_some(next))))
}

/// Places as `lua/lib/waitlist.lua` tells them, without those that are none.
fn places(words: &[String]) -> impl Iterator<Item = Option<Seat>> {
    let some = words.iter().filter(|place| !place.is_empty());
    some.map(|place| {
        let words: Vec<String> = place.split(' ').map(str::to_owned).collect();
        seat(words.as_array()?)
    })
}

/// An order as `lua/lib/holders.lua` writes it.
struct Stored {
    order: OrderId,
    quantity: u32,
    promoted: bool,
    key: Option<IdempotencyKey>,
}

impl Stored {
    fn held(self) -> Held {
        Held {
            order: self.order,
            quantity: self.quantity,
            promoted: self.promoted,
        }
    }
}

/// A buyer's orders, the first one first; `None` for one that cannot be read.
fn stored(orders: &str) -> impl Iterator<Item = Option<Stored>> {
    orders.split_ascii_whitespace().map(|token| {
        let mut parts = token.splitn(4, ':');
        let order = parts.next()?.parse().ok()?;
        let quantity = match parts.next() {
            None | Some("") => 1,
            Some(quantity) => quantity.parse::<NonZeroU32>().ok()?.get(),
        };
        let promoted = match parts.next() {
            None | Some("") => false,
            Some("p") => true,
            Some(_) => return None,
        };
        Some(Stored {
            order,
            quantity,
            promoted,
            key: parts.next().map_or(Ok(None), decode_key).ok()?,
        })
    })
}

/// A buyer's orders, with all that is known of them.
pub(crate) fn claims(
    voucher: VoucherId,
    [buyer, orders]: &[String; 2],
) -> impl Iterator<Item = Option<Claim>> {
    let buyer: Option<BuyerId> = buyer.parse().ok();
    stored(orders).map(move |stored| {
        let stored = stored?;
        Some(Claim {
            order: stored.order,
            voucher,
            buyer: buyer?,
            quantity: stored.quantity,
            key: stored.key,
        })
    })
}

/// What can be read. What cannot was not written by us, and nobody was told of it.
pub(crate) fn readable<T>(
    reply: &Reply,
    found: impl Iterator<Item = Option<T>>,
) -> impl Iterator<Item = T> {
    found.filter_map(|it| {
        if it.is_none() {
            tracing::warn!(
                answer = reply.kind(),
                "a holder or seat that cannot be read"
            );
        }
        it
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_holder_is_read() {
        let voucher = VoucherId::new(1);
        let text = [
            "7".to_owned(),
            "11 12:2 13:1:p 14:3::a:b 15:1:p:--".to_owned(),
        ];
        let read: Vec<_> = claims(voucher, &text).flatten().collect();
        let expected = [
            (11, 1, None),
            (12, 2, None),
            (13, 1, None),
            (14, 3, Some("a:b")),
            (15, 1, Some("-")),
        ]
        .map(|(order, quantity, key)| Claim {
            order: OrderId::new(order),
            voucher,
            buyer: BuyerId::new(7),
            quantity,
            key: key.map(|key: &str| key.parse().unwrap()),
        });
        assert_eq!(read, expected);
        let promoted: Vec<_> = stored(&text[1])
            .flatten()
            .map(|it| it.held().promoted)
            .collect();
        assert_eq!(promoted, [false, false, true, false, true]);
    }

    #[test]
    fn what_nobody_wrote_is_not_read() {
        let of = |buyer: &str, orders: &str| {
            let text = [buyer.to_owned(), orders.to_owned()];
            claims(VoucherId::new(1), &text).flatten().count()
        };
        assert_eq!(of("7", ""), 0);
        assert_eq!(of("7", "x 11:-1 11:0 0:1 11:1:x 12:1:p: 13"), 1);
        assert_eq!(of("somebody", "11"), 0);
    }
}
