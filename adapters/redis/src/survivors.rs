//! What is left of a voucher, a page at a time.

use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{LOAD_CHUNK_MAX, Survivors};
use seckill_domain::{Epoch, Seat, Ticket, VoucherId};

use crate::holdings::{claims, readable};
use crate::keys::Address;
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
        page.seats = readable(&reply, seats.iter().map(seat)).collect();
    } else {
        let (holders, []) = found.as_chunks() else {
            return Err(reply.senseless());
        };
        let claims = holders.iter().flat_map(|holder| claims(voucher, holder));
        page.holders = readable(&reply, claims).collect();
    }
    Ok(page)
}

pub(crate) fn seat([ticket, order, buyer, quantity, key]: &[String; 5]) -> Option<Seat> {
    Some(Seat {
        ticket: Ticket::new(ticket.parse().ok()?),
        order: order.parse().ok()?,
        buyer: buyer.parse().ok()?,
        quantity: quantity.parse().ok()?,
        key: decode_key(key).ok()?,
    })
}
