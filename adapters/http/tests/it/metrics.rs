//! The page of metrics.

use seckill_http::{HttpSettings, TokenVerifier};
use serde_json::json;

use crate::stand::{SECRET, Stand};

/// The value of a line of the page.
fn value(page: &str, line: &str) -> Option<u64> {
    let found = page
        .lines()
        .find(|known| known.starts_with(&format!("{line} ")))?;
    found.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn the_page_counts_what_matters() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 2})).await;
    stand.order(&voucher, 1).await;
    stand.buy(&voucher, 1).await.is(200);
    stand.order(&voucher, 2).await;
    stand.buy(&voucher, 3).await.refused(409, "sold_out");
    let page = stand.get("/metrics").answer().await;
    assert!(
        page.header("content-type")
            .starts_with("application/openmetrics-text")
    );
    assert!(page.raw.ends_with("# EOF\n"));
    let free = format!("seckill_free_units{{voucher=\"{voucher}\"}}");
    let purchases = "route=\"/v1/vouchers/{voucher_id}/purchases\"";
    let sold_out =
        format!("seckill_http_requests_total{{{purchases},method=\"POST\",status=\"409\"}}");
    let took = format!("seckill_http_request_seconds_count{{{purchases}}}");
    for (line, count) in [
        ("seckill_attempts_total{outcome=\"granted\"}", 2),
        ("seckill_attempts_total{outcome=\"already_held\"}", 1),
        ("seckill_attempts_total{outcome=\"sold_out\"}", 1),
        ("seckill_attempts_total{outcome=\"unavailable\"}", 0),
        ("seckill_ledger_confirmed_total", 2),
        ("seckill_ledger_refusals_total", 0),
        ("seckill_ledger_retries_total", 0),
        ("seckill_parked_total", 0),
        ("seckill_stream_lag{partition=\"0\"}", 0),
        ("seckill_stream_pending{partition=\"0\"}", 0),
        ("seckill_remembered_answers", 2),
        ("seckill_neighbour_up{neighbour=\"gate\"}", 1),
        ("seckill_commands_running", 0),
        (&free, 0),
        (&sold_out, 1),
        (&took, 4),
    ] {
        assert_eq!(value(&page.raw, line), Some(count), "{line}\n{}", page.raw);
    }
}

#[tokio::test]
async fn the_page_is_there_while_the_neighbours_are_not() {
    let stand = Stand::new().await;
    stand.hot.chaos().down(true);
    stand.ledger.down(true);
    let page = stand.get("/metrics").answer().await;
    page.is(200);
    assert_eq!(
        value(&page.raw, "seckill_neighbour_up{neighbour=\"ledger\"}"),
        Some(0)
    );
    assert!(!page.raw.contains("seckill_stream_lag{"));
}

#[tokio::test]
async fn others_can_add_to_the_page_and_apps_do_not_share_one() {
    let verifier = TokenVerifier::hs256(SECRET.as_bytes()).unwrap();
    let more = Box::new(|sheet: &mut seckill_http::MetricSheet| {
        sheet.counter("seckill_extra", "More", &[("kind", "a\"b")], 3);
        sheet.latency(
            "seckill_extra_seconds",
            "More",
            &[],
            &[100, 200],
            &[1, 0, 2],
            1_000_000,
        );
    });
    let stand = Stand::build(HttpSettings::default(), verifier, vec![more]).await;
    let page = stand.get("/metrics").answer().await.raw;
    assert_eq!(
        value(&page, "seckill_extra_total{kind=\"a\\\"b\"}"),
        Some(3)
    );
    assert_eq!(
        value(&page, "seckill_extra_seconds_bucket{le=\"0.0002\"}"),
        Some(1)
    );
    assert_eq!(
        value(&page, "seckill_extra_seconds_bucket{le=\"+Inf\"}"),
        Some(3)
    );
    let other = Stand::new().await;
    assert!(
        !other
            .get("/metrics")
            .answer()
            .await
            .raw
            .contains("seckill_extra")
    );
}
