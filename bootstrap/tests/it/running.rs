//! The whole system in this process, over HTTP, in memory.

use std::collections::HashSet;
use std::thread;

use jsonwebtoken::{EncodingKey, Header, encode};
use seckill::{Config, Role, Service, Stop};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::client::Client;

const SECRET: &str = "a-secret-of-this-test-a-secret-of-this-test";
const DEMONSTRATION: u64 = 1;

struct Running {
    runtime: Runtime,
    address: std::net::SocketAddr,
    stop: Stop,
    ended: JoinHandle<Result<(), seckill::Failure>>,
}

impl Running {
    fn start(more: &[&str]) -> Self {
        Self::start_as(Role::All, more)
    }

    /// In memory a process is everything; what one with another role answers can be seen all the
    /// same.
    fn start_as(role: Role, more: &[&str]) -> Self {
        let usual = ["--listen", "127.0.0.1:0", "--auth-secret", SECRET];
        let mut config = Config::from_args(usual.into_iter().chain(more.iter().copied())).unwrap();
        config.engine.role = role;
        let runtime = Runtime::new().unwrap();
        let stop = Stop::default();
        let service = runtime
            .block_on(Service::start(&config, stop.clone()))
            .unwrap();
        let address = service.address();
        let ended = runtime.handle().spawn(service.run());
        Self {
            runtime,
            address,
            stop,
            ended,
        }
    }

    fn client(&self, user: u64, role: &str) -> Client {
        let claims = json!({"sub": user.to_string(), "role": role, "exp": 4_000_000_000_u64});
        let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
        Client {
            address: self.address,
            token: encode(&Header::default(), &claims, &key).unwrap(),
        }
    }

    fn buyer(&self, user: u64) -> Client {
        self.client(user, "buyer")
    }

    fn stop(self) {
        self.stop.softly();
        self.runtime.block_on(self.ended).unwrap().unwrap();
    }
}

fn word<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer[field].as_str().unwrap_or_default()
}

#[test]
fn a_voucher_is_bought_and_reaches_the_ledger() {
    let running = Running::start(&[]);
    let buyer = running.buyer(42);
    let (status, granted) = buyer.buy(DEMONSTRATION);
    assert_eq!(
        (status, word(&granted, "outcome")),
        (202, "granted"),
        "{granted}"
    );
    let path = format!("/v1/orders/{}", word(&granted, "order_id"));
    assert_eq!(buyer.get(&path).0, 200, "readable at once");
    let order = buyer.wait(&path, |_, order| word(order, "status") == "pending_payment");
    assert_eq!(order["id"], granted["order_id"]);
    let path = format!("/v1/admin/vouchers/{DEMONSTRATION}/balance");
    let balance = running.client(1, "admin").get(&path).1;
    assert_eq!(
        (balance["free"].as_u64(), balance["holds"].as_bool()),
        (Some(99), Some(true)),
        "{balance}"
    );
    running.stop();
}

#[test]
fn a_buyer_who_clicks_twenty_times_at_once_has_one_order() {
    let running = Running::start(&[]);
    let clicks: Vec<_> = (0..20)
        .map(|_| {
            let buyer = running.buyer(7);
            thread::spawn(move || buyer.buy(DEMONSTRATION))
        })
        .collect();
    let answers: Vec<_> = clicks
        .into_iter()
        .map(|click| click.join().unwrap())
        .collect();
    let ids: HashSet<&str> = answers
        .iter()
        .map(|(_, answer)| word(answer, "order_id"))
        .collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    let granted = answers.iter().filter(|(status, _)| *status == 202).count();
    assert_eq!(granted, 1, "{answers:?}");
    running.stop();
}

#[test]
fn when_nothing_is_left_it_says_so() {
    let running = Running::start(&[]);
    let admin = running.client(1, "admin");
    let new = json!({
        "title": "Two", "face_value_minor": 100, "price_minor": 80, "currency": "CNY",
        "total_units": 2, "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
    });
    let (status, voucher) = admin.post("/v1/admin/vouchers", &new.to_string());
    assert_eq!(status, 201, "{voucher}");
    let id: u64 = word(&voucher, "id").parse().unwrap();
    let (status, _) = admin.post(&format!("/v1/admin/vouchers/{id}/publish"), "");
    assert_eq!(status, 200);
    let statuses: Vec<u16> = (1..=5).map(|user| running.buyer(user).buy(id).0).collect();
    assert_eq!(statuses, [202, 202, 409, 409, 409]);
    assert_eq!(word(&running.buyer(9).buy(id).1, "code"), "sold_out");
    running.stop();
}

#[test]
fn a_worker_answers_nothing_but_health() {
    let running = Running::start_as(Role::Worker, &[]);
    let buyer = running.buyer(42);
    assert_eq!(buyer.get("/livez").0, 200);
    assert_eq!(buyer.get("/readyz").0, 200);
    assert_eq!(buyer.get("/metrics").0, 200);
    let (status, refused) = buyer.buy(DEMONSTRATION);
    assert_eq!((status, word(&refused, "code")), (404, "not_found"));
    assert_eq!(buyer.get("/v1/vouchers").0, 404);
    assert_eq!(buyer.get("/openapi.json").0, 404);
    running.stop();
}

#[test]
fn readiness_names_the_persistence_of_the_gate() {
    let running = Running::start(&["--no-demo"]);
    let (status, ready) = running.buyer(1).get("/readyz");
    assert_eq!(status, 200);
    assert!(word(&ready, "persistence").contains("memory"), "{ready}");
    running.stop();
}
