use proptest::collection::vec;
use proptest::prelude::*;
use seckill_domain::{AdjustmentId, BuyerId, OrderId, VoucherId};

use super::*;

const EPOCH: Epoch = Epoch::new(3);

#[test]
fn what_an_entry_names_is_made_out_if_it_is_one_decision() {
    let entry = |version: &str, text: &str| {
        let fields = ["v", version, "e", "3", "s", "7", "d", text];
        decode_entry(EPOCH, &fields.map(str::as_bytes)).expect_err("it cannot be read")
    };
    let claim = Claim {
        order: OrderId::new(12),
        voucher: VoucherId::new(5),
        buyer: BuyerId::new(8),
        quantity: 2,
        key: None,
    };
    let granted = Some(Decision::Granted(claim.clone()));
    assert_eq!(entry("2", "granted 5 12 8 2 -").named, granted);
    assert_eq!(entry("1", "granted 5 12 8 2 - more").named, granted);
    assert_eq!(entry("1", "granted  5 12 8 2").named, granted);
    assert_eq!(
        entry("1", "promoted 5 12 8 2 - -").named,
        Some(Decision::Promoted(claim))
    );
    for text in [
        "granted 5 12 8 x -",
        "granted 5 12 8 0 -",
        "given 5 12 8 2 -",
        "",
    ] {
        assert_eq!(entry("1", text).named, None, "{text}");
    }
    let two = "granted 5 12 8 2 - more\ngranted 5 13 9 1 -";
    assert_eq!(entry("1", two).named, None);
}

fn encode_claim(claim: &Claim) -> String {
    let Claim {
        order,
        voucher,
        buyer,
        quantity,
        key,
    } = claim;
    format!(
        "{voucher} {order} {buyer} {quantity} {}",
        key_word(key.as_ref())
    )
}

fn encode_line(decision: &Decision) -> String {
    match decision {
        Decision::Granted(claim) => format!("granted {}", encode_claim(claim)),
        Decision::Promoted(claim) => format!("promoted {}", encode_claim(claim)),
        Decision::Lost(claim) => format!("lost {}", encode_claim(claim)),
        Decision::Joined { claim, ticket } => {
            format!("joined {} {}", encode_claim(claim), ticket.get())
        }
        Decision::Left { claim, reason } => {
            let reason = match reason {
                LeftReason::Withdrawn => "withdrawn",
                LeftReason::ClosedOut => "closed_out",
                LeftReason::NotEnoughUnits => "not_enough_units",
                LeftReason::LimitReached => "limit_reached",
            };
            format!("left {} {reason}", encode_claim(claim))
        }
        Decision::Withdrawn {
            voucher,
            units,
            adjustment,
        } => format!("withdrawn {voucher} {units} {adjustment}"),
    }
}

fn claims() -> impl Strategy<Value = Claim> {
    let key = prop_oneof![
        Just(None),
        "-{1,64}".prop_map(|key| Some(key.parse().expect("a key"))),
        "[!-~]{1,64}".prop_map(|key| Some(key.parse().expect("a key"))),
    ];
    (1..u64::MAX, 1..u64::MAX, 1..u64::MAX, 1..u32::MAX, key).prop_map(
        |(order, voucher, buyer, quantity, key)| Claim {
            order: OrderId::new(order),
            voucher: VoucherId::new(voucher),
            buyer: BuyerId::new(buyer),
            quantity,
            key,
        },
    )
}

fn decisions() -> impl Strategy<Value = Decision> {
    let reason = prop_oneof![
        Just(LeftReason::Withdrawn),
        Just(LeftReason::ClosedOut),
        Just(LeftReason::NotEnoughUnits),
        Just(LeftReason::LimitReached),
    ];
    prop_oneof![
        claims().prop_map(Decision::Granted),
        claims().prop_map(Decision::Promoted),
        claims().prop_map(Decision::Lost),
        (claims(), any::<u64>()).prop_map(|(claim, ticket)| Decision::Joined {
            claim,
            ticket: Ticket::new(ticket),
        }),
        (claims(), reason).prop_map(|(claim, reason)| Decision::Left { claim, reason }),
        (1..u64::MAX, 1..u32::MAX, 1..u64::MAX).prop_map(|(voucher, units, adjustment)| {
            Decision::Withdrawn {
                voucher: VoucherId::new(voucher),
                units,
                adjustment: AdjustmentId::new(adjustment),
            }
        }),
    ]
}

fn fields(epoch: &str, first: &str, decisions: &str) -> Vec<String> {
    ["v", "1", "e", epoch, "s", first, "d", decisions]
        .map(str::to_owned)
        .to_vec()
}

fn reason(fields: &[String]) -> String {
    decode_entry(EPOCH, fields).expect_err("unreadable").reason
}

proptest! {
    #[test]
    fn what_is_written_is_read(decided in vec(decisions(), 1..64), first in 1..u64::MAX / 2) {
        let lines: Vec<String> = decided.iter().map(encode_line).collect();
        let entry = decode_entry(EPOCH, &fields("3", &first.to_string(), &lines.join("\n")));
        let expected = Entry { epoch: EPOCH, first: Sequence::new(first), decisions: decided };
        prop_assert_eq!(entry, Ok(expected));
    }

    #[test]
    fn anything_can_be_read(fields in vec(vec(any::<u8>(), 0..6_000), 0..10)) {
        if let Err(unreadable) = decode_entry(EPOCH, &fields) {
            prop_assert!(unreadable.raw.len() <= RAW_BYTES_MAX);
            prop_assert!(!unreadable.reason.is_empty());
        }
    }

    #[test]
    fn a_line_with_one_changed_character_is_read_or_refused(
        decision in decisions(), at in any::<prop::sample::Index>(), byte in any::<char>(),
    ) {
        let line = encode_line(&decision);
        let at = at.index(line.len());
        let changed = format!("{}{byte}{}", &line[..at], &line[at + 1..]);
        if let Ok(read) = decode_line(&changed, Some(Ticket::new(1))) {
            // A place may be written without its turn, which its number then says.
            let written = encode_line(&read);
            let with_turn = format!("{changed} 1");
            prop_assert!(written == changed || written == with_turn, "{} of {}", written, changed);
        }
    }
}

#[test]
fn a_key_of_dashes_is_not_taken_for_none() {
    assert_eq!(key_word(None), "-");
    for key in ["-", "--", "a-", "-a"] {
        let key: IdempotencyKey = key.parse().unwrap();
        let word = key_word(Some(&key)).into_owned();
        assert_ne!(word, "-");
        assert_eq!(decode_key(&word), Ok(Some(key)));
    }
}

#[test]
fn what_is_not_ours_is_unreadable_and_says_why() {
    let good = "granted 1 2 3 1 -";
    assert!(decode_entry(EPOCH, &fields("3", "7", good)).is_ok());
    assert_eq!(reason(&[]), "a field is missing");
    assert_eq!(reason(&["v".to_owned()]), "a field without a value");
    assert_eq!(
        reason(&["a".to_owned(), "1".to_owned()]),
        "a field that is not ours"
    );
    assert_eq!(reason(&fields("4", "7", good)), "written in another epoch");
    assert_eq!(reason(&fields("03", "7", good)), "not a number");
    assert_eq!(reason(&fields("3", "0", good)), "a number out of range");
    assert_eq!(
        reason(&fields("3", &u64::MAX.to_string(), good)),
        "a number out of range"
    );
    assert_eq!(reason(&fields("3", "7", "")), "decision 1: not a decision");
    let mut twice = fields("3", "7", good);
    twice.extend(["v".to_owned(), "1".to_owned()]);
    assert_eq!(reason(&twice), "a field twice");
    let mut version = fields("3", "7", good);
    version[1] = "2".to_owned();
    assert_eq!(reason(&version), "another version of the format");
    for (line, why) in [
        ("granted 1 2 3 1", "the wrong number of words"),
        ("granted 1 2 3 0 -", "no units"),
        ("granted 1 2 3 4294967296 -", "not a number"),
        ("granted 0 2 3 1 -", "not an id"),
        ("granted 1 2 3 1 ", "not a key"),
        ("granted  1 2 3 1 -", "the wrong number of words"),
        ("joined 1 2 3 1 - x", "not a number"),
        ("left 1 2 3 1 - bored", "not a reason to leave"),
        ("withdrawn 1 0 5", "no units"),
        ("paid 1 2 3 1 -", "not a decision"),
    ] {
        let text = format!("{good}\n{line}");
        assert_eq!(
            reason(&fields("3", "7", &text)),
            format!("decision 2: {why}"),
            "{line}"
        );
    }
}

#[test]
fn what_is_kept_of_an_unreadable_entry_is_short() {
    let long = vec!["é".repeat(5_000), "x".to_owned()];
    let raw = decode_entry(EPOCH, &long).expect_err("unreadable").raw;
    assert_eq!(raw.len(), RAW_BYTES_MAX);
    let shown = decode_entry(EPOCH, &["a", "1", "b", "2"])
        .expect_err("unreadable")
        .raw;
    assert_eq!(shown, "a=1 b=2");
}

#[test]
fn places_are_read_as_redis_writes_them() {
    let id = EntryId {
        millis: 1_764_000_000_000,
        counter: 12,
    };
    assert_eq!(decode_entry_id(&id.to_string()), Some(id));
    for bad in ["", "1", "1-", "-1", "1-2-3", "a-1"] {
        assert_eq!(decode_entry_id(bad), None, "{bad}");
    }
}
