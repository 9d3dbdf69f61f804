//! `ParkedMessages::list`: what could not be applied.

use seckill_application::ports::{ParkReason, ParkedMessage, ParkedReply, ParkedState};
use seckill_domain::{Claim, Decision};

use super::desk::{Desk, claim, joining};
use super::parking::{SETTLED, impostor, list, newest, parked, parked_unreadable, unknown};
use super::{LedgerHarness, promises};

promises! { parked_messages over dyn LedgerHarness:
    a_message_is_listed_with_all_that_is_known_of_it,
    an_unreadable_message_is_listed_as_it_came,
    a_message_of_an_unknown_voucher_names_it,
    messages_are_listed_newest_first_page_by_page,
    only_those_that_wait_are_listed_if_asked,
    what_is_not_there_is_not_settled,
}

/// So many messages, oldest first.
async fn several(desk: &Desk<'_>, count: u64) -> Vec<ParkedMessage> {
    let voucher = desk.voucher(100, 1).await;
    let mut messages = Vec::new();
    for buyer in 1..=count {
        let nothing = claim(&voucher, buyer, 0);
        messages.push(parked(desk, Decision::Granted(nothing)).await);
    }
    messages
}

async fn a_message_is_listed_with_all_that_is_known_of_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let live = desk.granted(&voucher, 1, 1).await;
    let stranger = Claim {
        key: Some("a-key".parse().expect("a key")),
        ..impostor(&live, 2)
    };
    let partition = desk.partition_of(voucher.id);
    let decisions = vec![Decision::Granted(stranger.clone())];
    let batch = desk.batch(partition, decisions).await;
    let before = desk.now().await;
    desk.commit(&batch).await;
    let after = desk.now().await;
    let message = newest(&desk).await;
    assert!((before..=after).contains(&message.parked_at));
    assert!(!message.raw.is_empty(), "says what it is");
    let expected = ParkedMessage {
        id: message.id,
        partition,
        entry: batch.up_to,
        voucher: Some(voucher.id),
        units: 2,
        claim: Some(stranger),
        raw: message.raw.clone(),
        reason: ParkReason::BadValues,
        detail: message.detail.clone(),
        state: ParkedState::Parked,
        parked_at: message.parked_at,
    };
    assert_eq!(message, expected);
}

async fn an_unreadable_message_is_listed_as_it_came(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let message = parked_unreadable(&desk).await;
    assert_eq!(message.raw, "{\"v\":9} \u{706b} 'quoted' \\");
    assert_eq!(message.detail, "version 9");
    assert_eq!(message.reason, ParkReason::Unreadable);
    assert_eq!((message.voucher, message.claim), (None, None));
    assert_eq!(message.units, 0);
}

async fn a_message_of_an_unknown_voucher_names_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = Claim {
        voucher: unknown(&voucher),
        ..claim(&voucher, 1, 1)
    };
    let message = parked(&desk, Decision::Granted(stray.clone())).await;
    assert_eq!(message.voucher, Some(stray.voucher));
    assert_eq!(message.reason, ParkReason::UnknownVoucher);
    assert_eq!((message.units, message.claim), (0, Some(stray)));
    let nothing = claim(&voucher, 2, 0);
    let message = parked(&desk, joining(&nothing, 3)).await;
    assert_eq!(message.claim, Some(nothing), "a place has an order");
    assert_eq!(message.voucher, Some(voucher.id));
}

async fn messages_are_listed_newest_first_page_by_page(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut expected = several(&desk, 7).await;
    expected.reverse();
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = desk.ports.parked.list(false, before, 3).await.unwrap();
        assert_eq!(page.next.is_some(), page.items.len() == 3);
        found.extend(page.items);
        match page.next {
            Some(next) => {
                assert_eq!(Some(next), found.last().map(|message| message.id));
                before = Some(next);
            }
            None => break,
        }
    }
    assert_eq!(found, expected);
}

async fn only_those_that_wait_are_listed_if_asked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let messages = several(&desk, 3).await;
    let reason = "Seen by 'Li', \u{706b}\u{9505} \u{1f372}";
    let parked = &desk.ports.parked;
    let discarded = parked.discard(messages[1].id, reason).await;
    assert_eq!(discarded.unwrap(), SETTLED);
    let waiting = list(&desk, true).await;
    assert_eq!(waiting, [messages[2].clone(), messages[0].clone()]);
    let all = list(&desk, false).await;
    assert_eq!(all[1].state, ParkedState::Discarded(reason.to_owned()));
    assert_eq!(all.len(), 3);
}

async fn what_is_not_there_is_not_settled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let parked = &desk.ports.parked;
    for id in [1, 4_711, u64::from(u32::MAX) + 1] {
        assert_eq!(parked.replay(id).await.unwrap(), ParkedReply::NotFound);
        let discarded = parked.discard(id, "nobody's").await;
        assert_eq!(discarded.unwrap(), ParkedReply::NotFound);
    }
}
