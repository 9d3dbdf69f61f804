//! The generator is held to what it is for: a stall must show, and nothing else may.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seckill_bench::load::{Crowd, Outcome, Pace, Plan, Requests, run};

const GRANTED: &str =
    "HTTP/1.1 202 Accepted\r\ncontent-length: 21\r\n\r\n{\"outcome\":\"granted\"}";
const STALL: Duration = Duration::from_millis(200);

/// A server that answers at once, but for one request, during which everybody waits.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicU64>,
}

impl Server {
    fn start(stall_at: Option<u64>, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicU64::new(0));
        let state = (seen.clone(), connections.clone());
        std::thread::spawn(move || {
            let one_at_a_time = Arc::new(Mutex::new(0));
            for stream in listener.incoming() {
                state.1.fetch_add(1, Ordering::Relaxed);
                let (seen, turn) = (state.0.clone(), one_at_a_time.clone());
                let stream = stream.expect("a connection");
                std::thread::spawn(move || serve(stream, &seen, &turn, stall_at, answer));
            }
        });
        Self {
            address,
            seen,
            connections,
        }
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    turn: &Mutex<u64>,
    stall_at: Option<u64>,
    answer: &str,
) {
    stream.set_nodelay(true).expect("a socket");
    let mut writer = stream.try_clone().expect("a socket");
    let mut head = String::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if !line.is_empty() {
            head.push_str(&line);
            head.push('\n');
            continue;
        }
        let mut number = turn.lock().expect("no panic");
        *number += 1;
        if Some(*number) == stall_at {
            std::thread::sleep(STALL);
        }
        seen.lock()
            .expect("no panic")
            .push(std::mem::take(&mut head));
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn at_500_per_s(server: &Server, lasts: Duration) -> Outcome {
    let plan = Plan::open(server.address, 16, 500.0, lasts);
    let count = plan.requests_max(0.0);
    let requests = Crowd::default().purchases("7", count).expect("tokens");
    run(&plan, &requests).expect("a run")
}

#[test]
fn a_stall_is_felt_by_everybody_who_was_due_meanwhile() {
    // 2 s at 500/s: 100 requests fall due in the 200 ms, 10 % of all. A generator that waited for
    // answers before it sent the next would see 16 slow ones, and a p99 of nothing.
    let stalled = Server::start(Some(400), GRANTED);
    let outcome = at_500_per_s(&stalled, Duration::from_secs(2));
    assert_eq!(
        (outcome.sent, outcome.granted, outcome.lost),
        (1_000, 1_000, 0)
    );
    assert!(
        outcome.latency_ms(99.0) >= 150.0,
        "p99 {}",
        outcome.latency_ms(99.0)
    );
    assert!(
        outcome.latency_ms(93.0) >= 30.0,
        "p93 {}",
        outcome.latency_ms(93.0)
    );
    assert!(
        outcome.latency_ms(50.0) < 150.0,
        "p50 {}",
        outcome.latency_ms(50.0)
    );
}

#[test]
fn the_schedule_is_kept_whatever_the_answers_do() {
    let stalled = Server::start(Some(100), GRANTED);
    let outcome = at_500_per_s(&stalled, Duration::from_secs(1));
    assert_eq!(outcome.sent, 500);
    let took = outcome.took.as_secs_f64();
    assert!((0.95..1.6).contains(&took), "{took} s");
}

#[test]
fn every_request_is_another_buyers() {
    let server = Server::start(None, GRANTED);
    at_500_per_s(&server, Duration::from_millis(200));
    let seen = server.seen.lock().expect("no panic");
    let tokens: std::collections::BTreeSet<&str> = seen
        .iter()
        .filter_map(|head| head.split_once("Bearer "))
        .map(|(_, it)| it)
        .collect();
    assert_eq!((seen.len(), tokens.len()), (100, 100));
    assert!(
        seen[0].starts_with("POST /v1/vouchers/7/purchases HTTP/1.1\n"),
        "{}",
        seen[0]
    );
}

#[test]
fn an_answer_that_never_comes_is_lost_and_counts_as_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let plan = Plan {
        patience: Duration::from_millis(300),
        ..Plan::open(
            listener.local_addr().expect("an address"),
            4,
            100.0,
            Duration::from_millis(100),
        )
    };
    let outcome = run(&plan, &Requests::get("/livez")).expect("a run");
    // Four were sent; six found no connection free.
    assert_eq!((outcome.sent, outcome.lost), (4, 10));
    assert!(
        outcome.latency_ms(50.0) >= 300.0,
        "p50 {}",
        outcome.latency_ms(50.0)
    );
}

#[test]
fn a_closed_loop_asks_again_when_it_is_answered() {
    let server = Server::start(None, GRANTED);
    let plan = Plan::closed(server.address, 4, Duration::from_millis(200));
    let outcome = run(&plan, &Requests::get("/livez")).expect("a run");
    assert!(outcome.sent > 20, "{}", outcome.sent);
    assert_eq!(outcome.of_status(202), outcome.sent);
    assert_eq!(server.connections.load(Ordering::Relaxed), 4);
    assert!(outcome.cpu > Duration::ZERO && outcome.generator_cores() <= 1.5);
}

#[test]
fn churn_takes_a_connection_per_request() {
    let server = Server::start(None, GRANTED);
    let pace = Pace::Open {
        per_s: 200.0,
        lasts: Duration::from_millis(200),
    };
    let plan = Plan {
        pace,
        ..Plan::closed(server.address, 8, Duration::ZERO)
    };
    let outcome = run(&plan.churning(), &Requests::get("/livez")).expect("a run");
    assert_eq!((outcome.sent, outcome.of_status(202)), (40, 40));
    assert_eq!(server.connections.load(Ordering::Relaxed), 40);
}
