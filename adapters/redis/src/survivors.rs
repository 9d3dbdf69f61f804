//! What is left of a voucher, a page at a time.

use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{LOAD_CHUNK_MAX, Survivors};
use seckill_domain::{Claim, Epoch, Seat, Ticket, VoucherId};

use crate::keys::Address;
use crate::reply::Reply;
use crate::scripts::LOADER_SURVIVORS;
use crate::store::{Lane, Store, words};
use crate::wire::decode_key;

const SURVIVORS: &str = "gate_loader.survivors";
/// The highest bit of the port's cursor says which half it is in. Redis's own cursors count the
/// slots of a table and never reach it.
const IN_SEATS: u64 = 1 << 63;

/// One page: first the holders, then the seats.
pub(crate) async fn page(
    store: &Store,
    voucher: VoucherId,
    cursor: u64,
) -> Result<Survivors, Fault> {
    let in_seats = cursor & IN_SEATS != 0;
    let phase = if in_seats { "seats" } else { "holders" };
    let args =
        |command: &mut Cmd| words(command, &[&phase, &(cursor & !IN_SEATS), &LOAD_CHUNK_MAX]);
    let address = Address {
        voucher,
        ..store.address(store.partitions.of(voucher), Epoch::new(0))
    };
    let reply = store
        .run_at(SURVIVORS, Lane::Bulk, &LOADER_SURVIVORS, address, &args)
        .await?;
    let next: u64 = reply.parsed(1)?;
    let found = reply.rest().get(1..).unwrap_or_default();
    let mut page = Survivors {
        holders: Vec::new(),
        seats: Vec::new(),
        next: match (in_seats, next) {
            (true, 0) => None,
            (true, next) => Some(next | IN_SEATS),
            (false, 0) => Some(IN_SEATS),
            (false, next) => Some(next),
        },
    };
    if in_seats {
        let (seats, []) = found.as_chunks() else {
            return Err(reply.senseless());
        };
        page.seats = readable(&reply, seats.iter().map(seat));
    } else {
        let (holders, []) = found.as_chunks() else {
            return Err(reply.senseless());
        };
        let claims = holders.iter().flat_map(|holder| claims(voucher, holder));
        page.holders = readable(&reply, claims);
    }
    Ok(page)
}

/// What can be read. What cannot was not written by us, and nobody was told of it.
fn readable<T>(reply: &Reply, found: impl Iterator<Item = Option<T>>) -> Vec<T> {
    let mut unreadable = 0;
    let survivors = found
        .inspect(|it| unreadable += usize::from(it.is_none()))
        .flatten()
        .collect();
    if unreadable > 0 {
        tracing::warn!(
            unreadable,
            page = reply.kind(),
            "survivors that cannot be read"
        );
    }
    survivors
}

/// A buyer's orders, as `lua/lib/holders.lua` writes them.
fn claims(voucher: VoucherId, [buyer, orders]: &[String; 2]) -> Vec<Option<Claim>> {
    orders
        .split(' ')
        .map(|token| {
            let mut parts = token.splitn(4, ':');
            let order = parts.next()?.parse().ok()?;
            let quantity = parts.next().map_or(Some(1), |it| it.parse().ok())?;
            let _promoted = parts.next();
            let key = parts.next().map_or(Ok(None), decode_key).ok()?;
            Some(Claim {
                order,
                voucher,
                buyer: buyer.parse().ok()?,
                quantity,
                key,
            })
        })
        .collect()
}

fn seat([ticket, order, buyer, quantity, key]: &[String; 5]) -> Option<Seat> {
    Some(Seat {
        ticket: Ticket::new(ticket.parse().ok()?),
        order: order.parse().ok()?,
        buyer: buyer.parse().ok()?,
        quantity: quantity.parse().ok()?,
        key: decode_key(key).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seckill_domain::{BuyerId, OrderId};

    #[test]
    fn every_form_of_a_holder_is_read() {
        let voucher = VoucherId::new(1);
        let stored = [
            "7".to_owned(),
            "11 12:2 13:1:p 14:3::a:b 15:1:p:--".to_owned(),
        ];
        let read: Vec<_> = claims(voucher, &stored).into_iter().flatten().collect();
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
    }
}
