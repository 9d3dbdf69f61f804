//! Reports of reconciliation, as an administrator reads them.

use std::time::Duration;

use seckill_domain::invariants::{self, Tally};
use seckill_domain::{OrderId, VoucherId};
use seckill_tests::harness::{Call, Shop, eventually};
use serde_json::{Value, json};

const PATH: &str = "/v1/admin/reconciliations";

/// A difference about one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) order: OrderId,
    pub(crate) kind: String,
    pub(crate) repaired: bool,
}

/// What was found about one voucher.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) voucher: VoucherId,
    pub(crate) tally: Tally,
    pub(crate) holds: bool,
    pub(crate) free_drift: i64,
    pub(crate) stock_drift: i64,
    pub(crate) terms_differ: bool,
    pub(crate) at_gate: bool,
    pub(crate) reloads: u64,
    pub(crate) differences: Vec<Difference>,
}

/// A reconciliation that ran.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) id: u64,
    pub(crate) dry_run: bool,
    pub(crate) difference_count: u64,
    pub(crate) repair_count: u64,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    fn read(body: &Value) -> Self {
        let findings = body["vouchers"].as_array().expect("vouchers").iter();
        Self {
            id: parsed(body, "id"),
            dry_run: body["dry_run"].as_bool().expect("a boolean"),
            difference_count: body["difference_count"].as_u64().expect("a count"),
            repair_count: body["repair_count"].as_u64().expect("a count"),
            findings: findings.map(Finding::read).collect(),
        }
    }

    pub(crate) fn of(&self, voucher: VoucherId) -> &Finding {
        let found = self.findings.iter().find(|it| it.voucher == voucher);
        found.unwrap_or_else(|| panic!("nothing about {voucher} in {self:?}"))
    }

    pub(crate) fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.findings.iter().flat_map(|found| &found.differences)
    }
}

impl Finding {
    fn read(body: &Value) -> Self {
        let units = |field: &str| body[field].as_i64().expect("units");
        let differences = body["differences"].as_array().expect("differences");
        Self {
            voucher: parsed(body, "voucher_id"),
            tally: Tally {
                total: units("total"),
                free: units("free"),
                in_flight: units("in_flight"),
                parked: units("parked"),
                awaiting_payment: units("awaiting_payment"),
                paid: units("paid"),
            },
            holds: body["holds"].as_bool().expect("a boolean"),
            free_drift: units("free_drift"),
            stock_drift: units("stock_drift"),
            terms_differ: body["terms_differ"].as_bool().expect("a boolean"),
            at_gate: body["at_gate"].as_bool().expect("a boolean"),
            reloads: body["reloads"].as_u64().expect("a count"),
            differences: differences.iter().map(Difference::read).collect(),
        }
    }

    /// Nothing is wrong.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.differences, []);
        assert!(self.free_drift == 0 && self.holds, "{self:?}");
        assert!(self.stock_drift == 0 && !self.terms_differ, "{self:?}");
        assert!(invariants::conserved(&self.tally), "{self:?}");
    }
}

impl Difference {
    fn read(body: &Value) -> Self {
        Self {
            order: parsed(body, "order_id"),
            kind: body["kind"].as_str().expect("a word").to_owned(),
            repaired: body["repaired"].as_bool().expect("a boolean"),
        }
    }
}

/// A field of a reply.
pub(crate) fn parsed<T: std::str::FromStr>(body: &Value, field: &str) -> T {
    let word = body[field].as_str().and_then(|word| word.parse().ok());
    word.unwrap_or_else(|| panic!("no {field} in {body}"))
}

/// The report of a round that takes no longer than a request may.
pub(crate) async fn round(shop: &Shop, dry_run: bool) -> Report {
    let call = Call::post(PATH).by_admin();
    let reply = shop.ask(call.json(&json!({"dry_run": dry_run}))).await;
    reply.assert_status(201);
    let report = Report::read(&reply.body);
    assert_eq!(report.dry_run, dry_run);
    report
}

/// The report of a round that finds the voucher at the gate, which a repair may have loaded again.
pub(crate) async fn round_about(shop: &Shop, voucher: VoucherId) -> Report {
    shop.balanced(voucher).await;
    let limit = Duration::from_secs(30);
    eventually("the gate has it", limit, async || {
        let report = round(shop, false).await;
        let mut about = report.findings.iter().filter(|it| it.voucher == voucher);
        let is_about = about.any(|it| it.at_gate);
        is_about
            .then_some(report.clone())
            .ok_or(format!("{report:?}"))
    })
    .await
}

/// Asks for a round, however long it takes; its report will be listed. `false` while another is
/// under way.
pub(crate) async fn begin(shop: &Shop) -> bool {
    let call = Call::post(PATH).by_admin();
    let reply = shop.ask(call.json(&json!({"full": true}))).await;
    match reply.status {
        201 | 202 => true,
        _ => {
            reply.assert_problem(409, "reconciliation_running");
            false
        }
    }
}

/// All reports, oldest first.
pub(crate) async fn listed(shop: &Shop) -> Vec<Report> {
    let mut reports = Vec::new();
    let mut cursor = String::new();
    loop {
        let call = Call::get(format!("{PATH}?limit=100{cursor}")).by_admin();
        let reply = shop.ask(call).await;
        reply.assert_status(200);
        let items = reply.body["items"].as_array().expect("a list");
        reports.extend(items.iter().map(Report::read));
        let Some(next) = reply.body["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    reports.reverse();
    assert!(reports.is_sorted_by(|one, next| one.id < next.id));
    reports
}

/// Waits for the round that begins with the process.
pub(crate) async fn first_round(shop: &Shop) {
    eventually("a first round", Duration::from_secs(20), async || {
        let count = listed(shop).await.len();
        (count > 0).then_some(()).ok_or(count.to_string())
    })
    .await;
}
