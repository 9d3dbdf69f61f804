//! What Redis gives back, read: entry points for fuzzing. Each takes any bytes, and panics if
//! something does not hold of what was read. Not part of the adapter's interface.

use redis::Value;
use seckill_application::ports::Admitted;
use seckill_domain::{Admission, Attempt, BuyerId, Decision, Epoch, OrderId, VoucherId};

use crate::admission_stream::deliveries;
use crate::reply::Reply;
use crate::wire::{RAW_BYTES_MAX, decode_entry, decode_key, key_word};
use crate::{gate_answers, holdings, survivors};

const PORT: &str = "fuzzing";
const EPOCH: Epoch = Epoch::new(1);

/// An entry of the stream: names and values in turn, between zero bytes. The same bytes are also
/// what a read of the stream came to.
///
/// # Panics
/// If an entry is read that nobody can have written, or what cannot be read is kept in full.
pub fn entry(bytes: &[u8]) {
    let fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    match decode_entry(EPOCH, &fields) {
        Ok(entry) => {
            assert_eq!(entry.epoch, EPOCH);
            assert!(entry.first.get() > 0 && !entry.decisions.is_empty());
            let last = entry.first.get().checked_add(entry.decisions.len() as u64);
            assert!(last.is_some(), "numbers of decisions do not overflow");
            entry.decisions.iter().for_each(sound);
        }
        Err(unreadable) => assert!(unreadable.raw.len() <= RAW_BYTES_MAX),
    }
    let text = |field: &[u8]| Value::BulkString(field.to_vec());
    let (id, rest) = fields
        .split_first()
        .map_or((&[][..], &[][..]), |it| (*it.0, it.1));
    let delivered = Value::Array(vec![
        text(id),
        Value::Array(rest.iter().copied().map(text).collect()),
    ]);
    if let Ok(read) = deliveries(PORT, EPOCH, Value::Array(vec![delivered])) {
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].id.to_string().as_bytes(), id);
    }
}

fn sound(decision: &Decision) {
    let claim = match decision {
        Decision::Granted(claim)
        | Decision::Promoted(claim)
        | Decision::Lost(claim)
        | Decision::Joined { claim, .. }
        | Decision::Left { claim, .. } => claim,
        Decision::Withdrawn { units, .. } => return assert!(*units > 0),
    };
    assert!(claim.quantity > 0);
    let word = key_word(claim.key.as_ref());
    assert_eq!(decode_key(&word).ok(), Some(claim.key.clone()), "{word}");
}

/// What a script answered: its words, between zero bytes. A word that begins with a byte of 1 is no
/// text.
///
/// # Panics
/// If an answer is taken for that to another attempt, or to fewer or more than were made.
pub fn reply(bytes: &[u8]) {
    let word = |word: &[u8]| match word {
        [1] => Value::Nil,
        [1, b'o'] => Value::Okay,
        [1, number, ..] => Value::Int(i64::from(*number) - 64),
        text => Value::BulkString(text.to_vec()),
    };
    let words = bytes.split(|byte| *byte == 0).map(word).collect();
    let Ok(reply) = Reply::read(PORT, Value::Array(words)) else {
        return;
    };
    let answers = reply.rest().len().saturating_sub(4);
    let attempts: Vec<Attempt> = (1..=answers as u64).map(attempt).collect();
    if let Ok(Admitted::Decided { admissions, .. }) = gate_answers::admitted(&reply, &attempts) {
        assert_eq!(admissions.len(), attempts.len());
        for (admission, attempt) in admissions.iter().zip(&attempts) {
            if let Admission::Granted { order } | Admission::Waitlisted { order, .. } = admission {
                assert_eq!(*order, attempt.order);
            }
        }
    }
    if let Ok(Some(facts)) = gate_answers::facts(&reply) {
        let open = facts.pulse.waiting < facts.terms.waitlist_capacity;
        assert_eq!(facts.pulse.waitlist_open, open);
    }
    let voucher = VoucherId::new(1);
    for holder in reply.rest().as_chunks().0 {
        let claims = holdings::claims(voucher, holder).flatten();
        claims.for_each(|claim| assert_eq!(claim.voucher, voucher));
    }
    for seat in reply.rest().as_chunks().0 {
        survivors::seat(seat);
    }
}

fn attempt(number: u64) -> Attempt {
    Attempt {
        order: OrderId::new(number),
        buyer: BuyerId::new(number),
        quantity: 1,
        key: None,
    }
}
