//! The format of the admission stream.
//!
//! An entry has the fields `v` (the version of the format, `1`), `e` (epoch), `s` (the number of
//! its first decision) and `d`: its decisions, one per line, words separated by spaces:
//!
//! ```text
//! granted   <voucher> <order> <buyer> <quantity> <key>
//! joined    <voucher> <order> <buyer> <quantity> <key> [<ticket>]
//! left      <voucher> <order> <buyer> <quantity> <key> <reason>
//! promoted  <voucher> <order> <buyer> <quantity> <key>
//! lost      <voucher> <order> <buyer> <quantity> <key>
//! withdrawn <voucher> <units> <adjustment>
//! ```
//!
//! `<key>` is `-` for none; a key of dashes only gets one more. Who joins without a `<ticket>` has the
//! one of this very decision ([`Ticket::drawn_at`]); who was appended again has the turn he had.
//! Numbers are canonical decimals.
//! `lua/lib/partition.lua` writes this; everything else here reads it, and takes nothing for
//! granted: whoever can reach Redis can append anything.

use std::borrow::Cow;
use std::str::FromStr;

use seckill_application::ports::{Entry, EntryId, Unreadable};
use seckill_domain::{Claim, Decision, Epoch, IdempotencyKey, LeftReason, Sequence, Ticket};

/// Most bytes of an unreadable entry that are kept.
pub const RAW_BYTES_MAX: usize = 4_096;

const VERSION: &str = "1";
const NO_KEY: &str = "-";
const CLAIM_WORDS: usize = 5;
/// A life has fewer than 2^36 decisions, and a partition fewer than 2^17 lives.
const SEQUENCE_BITS: u32 = 36;
const EPOCH_BITS: u32 = 17;

/// An entry of the life `epoch`, from its fields as Redis delivers them: names and values in turn.
/// Never panics, whatever the fields say.
pub fn decode_entry<B: AsRef<[u8]>>(epoch: Epoch, fields: &[B]) -> Result<Entry, Unreadable> {
    decode(epoch, fields).map_err(|reason| Unreadable {
        raw: shown(fields),
        reason: reason.into_owned(),
        named: named(fields),
    })
}

/// The decision of an entry that cannot be read, if it seems to have just one: what is wrong may be
/// around it, or in what a grant can do without.
fn named<B: AsRef<[u8]>>(fields: &[B]) -> Option<Decision> {
    let of_decisions = |pair: &[B]| match pair {
        [name, value] if name.as_ref() == b"d" => {
            Some(String::from_utf8_lossy(value.as_ref()).into_owned())
        }
        _ => None,
    };
    let text = fields.chunks(2).find_map(of_decisions)?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (line, None) = (lines.next()?, lines.next()) else {
        return None;
    };
    decode_line(line, None).ok().or_else(|| grant_in(line))
}

/// A grant or promotion that names its voucher, order, buyer and quantity, whatever else it says.
fn grant_in(line: &str) -> Option<Decision> {
    let mut words = line.split_whitespace();
    let (kind, voucher) = (words.next()?, words.next()?);
    let (order, buyer, quantity) = (words.next()?, words.next()?, words.next()?);
    let key = words.next().and_then(|word| decode_key(word).ok());
    let claim = Claim {
        order: id(order).ok()?,
        voucher: id(voucher).ok()?,
        buyer: id(buyer).ok()?,
        quantity: units_of(quantity).ok()?,
        key: key.flatten(),
    };
    match kind {
        "granted" => Some(Decision::Granted(claim)),
        "promoted" => Some(Decision::Promoted(claim)),
        _ => None,
    }
}

/// An entry that is not of this shape at all.
pub(crate) fn unreadable(raw: impl Into<String>, reason: &str) -> Unreadable {
    let mut raw = raw.into();
    raw.truncate(raw.floor_char_boundary(RAW_BYTES_MAX));
    Unreadable {
        raw,
        reason: reason.to_owned(),
        named: None,
    }
}

type Reason = Cow<'static, str>;

fn decode<B: AsRef<[u8]>>(epoch: Epoch, fields: &[B]) -> Result<Entry, Reason> {
    let mut found: [Option<&str>; 4] = [None; 4];
    for pair in fields.chunks(2) {
        let [name, value] = pair else {
            return Err("a field without a value".into());
        };
        let slot = match name.as_ref() {
            b"v" => 0,
            b"e" => 1,
            b"s" => 2,
            b"d" => 3,
            _ => return Err("a field that is not ours".into()),
        };
        let value = std::str::from_utf8(value.as_ref()).map_err(|_| "not UTF-8")?;
        if found[slot].replace(value).is_some() {
            return Err("a field twice".into());
        }
    }
    let [Some(version), Some(lived), Some(first), Some(decisions)] = found else {
        return Err("a field is missing".into());
    };
    if version != VERSION {
        return Err("another version of the format".into());
    }
    if number::<u64>(lived)? != epoch.get() {
        return Err("written in another epoch".into());
    }
    let first: u64 = number(first)?;
    let decisions = decode_lines(decisions, epoch, first)?;
    if first == 0 || first.checked_add(decisions.len() as u64).is_none() {
        return Err("a number out of range".into());
    }
    Ok(Entry {
        epoch,
        first: Sequence::new(first),
        decisions,
    })
}

fn decode_lines(text: &str, epoch: Epoch, first: u64) -> Result<Vec<Decision>, Reason> {
    let decode = |(at, line)| {
        let wrong = |reason: Reason| Reason::from(format!("decision {}: {reason}", at + 1));
        let turn = first
            .checked_add(at as u64)
            .and_then(|number| turn(epoch, number));
        decode_line(line, turn).map_err(wrong)
    };
    text.split('\n').enumerate().map(decode).collect()
}

/// The turn that a decision draws, if there can be such a decision.
fn turn(epoch: Epoch, number: u64) -> Option<Ticket> {
    let exists = number >> SEQUENCE_BITS == 0 && epoch.get() >> EPOCH_BITS == 0;
    exists.then(|| Ticket::drawn_at(epoch, Sequence::new(number)))
}

/// One decision, as a line of an entry. `turn` is what a buyer draws who joins by it.
pub(crate) fn decode_line(line: &str, turn: Option<Ticket>) -> Result<Decision, Reason> {
    let words: Vec<&str> = line.split(' ').collect();
    let decision = match words.as_slice() {
        ["granted", claim @ ..] => Decision::Granted(decode_claim(claim)?),
        ["promoted", claim @ ..] => Decision::Promoted(decode_claim(claim)?),
        ["lost", claim @ ..] => Decision::Lost(decode_claim(claim)?),
        ["joined", claim @ ..] if claim.len() == CLAIM_WORDS => Decision::Joined {
            claim: decode_claim(claim)?,
            ticket: turn.ok_or("a number out of range")?,
        },
        ["joined", claim @ .., ticket] => Decision::Joined {
            claim: decode_claim(claim)?,
            ticket: Ticket::new(number(ticket)?),
        },
        ["left", claim @ .., reason] => Decision::Left {
            claim: decode_claim(claim)?,
            reason: decode_reason(reason)?,
        },
        ["withdrawn", voucher, units, adjustment] => Decision::Withdrawn {
            voucher: id(voucher)?,
            units: units_of(units)?,
            adjustment: id(adjustment)?,
        },
        _ => return Err("not a decision".into()),
    };
    Ok(decision)
}

fn decode_claim(words: &[&str]) -> Result<Claim, Reason> {
    let [voucher, order, buyer, quantity, key] = words else {
        return Err("the wrong number of words".into());
    };
    Ok(Claim {
        order: id(order)?,
        voucher: id(voucher)?,
        buyer: id(buyer)?,
        quantity: units_of(quantity)?,
        key: decode_key(key)?,
    })
}

fn decode_reason(word: &str) -> Result<LeftReason, Reason> {
    Ok(match word {
        "withdrawn" => LeftReason::Withdrawn,
        "closed_out" => LeftReason::ClosedOut,
        "not_enough_units" => LeftReason::NotEnoughUnits,
        "limit_reached" => LeftReason::LimitReached,
        _ => return Err("not a reason to leave".into()),
    })
}

/// A key as a word.
pub(crate) fn key_word(key: Option<&IdempotencyKey>) -> Cow<'_, str> {
    match key.map(IdempotencyKey::as_str) {
        None => NO_KEY.into(),
        Some(key) if only_dashes(key) => format!("{key}-").into(),
        Some(key) => key.into(),
    }
}

/// A word as a key.
pub(crate) fn decode_key(word: &str) -> Result<Option<IdempotencyKey>, Reason> {
    let key = match word {
        NO_KEY => return Ok(None),
        dashes if only_dashes(dashes) => &dashes[1..],
        key => key,
    };
    let key = key.parse().map_err(|_| "not a key")?;
    Ok(Some(key))
}

fn only_dashes(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b == b'-')
}

fn id<T: FromStr>(word: &str) -> Result<T, Reason> {
    word.parse().map_err(|_| "not an id".into())
}

fn units_of(word: &str) -> Result<u32, Reason> {
    match number(word)? {
        0 => Err("no units".into()),
        units => Ok(units),
    }
}

/// A canonical decimal: digits only, no leading zero.
fn number<T: FromStr>(word: &str) -> Result<T, Reason> {
    let canonical =
        word.bytes().all(|b| b.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    let number = canonical.then(|| word.parse().ok()).flatten();
    number.ok_or_else(|| "not a number".into())
}

/// The place of an entry, as Redis writes it.
pub(crate) fn decode_entry_id(text: &str) -> Option<EntryId> {
    let (millis, counter) = text.split_once('-')?;
    Some(EntryId {
        millis: number(millis).ok()?,
        counter: number(counter).ok()?,
    })
}

/// Fields for a reader, shortened.
fn shown<B: AsRef<[u8]>>(fields: &[B]) -> String {
    let mut raw = String::new();
    for (at, field) in fields.iter().enumerate() {
        raw.push_str(match at {
            0 => "",
            at if at % 2 == 1 => "=",
            _ => " ",
        });
        let field = field.as_ref();
        let some = &field[..field.len().min(RAW_BYTES_MAX)];
        raw.push_str(&String::from_utf8_lossy(some));
        if raw.len() > RAW_BYTES_MAX {
            raw.truncate(raw.floor_char_boundary(RAW_BYTES_MAX));
            break;
        }
    }
    raw
}

#[cfg(test)]
mod tests;
