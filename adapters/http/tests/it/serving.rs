//! Real connections.

use std::io;
use std::time::Duration;

use seckill_application::ports::Clock as _;
use seckill_http::{HttpSettings, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::stand::Stand;

/// A stand behind a port of this machine.
struct Served {
    stand: Stand,
    port: u16,
    serving: JoinHandle<io::Result<()>>,
}

impl Served {
    async fn with(settings: HttpSettings) -> Self {
        let stand = Stand::with(settings).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        #[expect(
            clippy::disallowed_methods,
            reason = "the server runs beside its clients"
        )]
        let serving = tokio::spawn(serve(listener, stand.app.clone()));
        Self {
            stand,
            port,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// Sends a text and reads until the server closes.
    async fn exchange(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        read_to_end(&mut stream).await
    }

    fn cancellation(&self, order: &str, user: u64) -> String {
        let token = self.stand.token_of(user, "buyer");
        format!(
            "POST /v1/orders/{order}/cancellation HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
    }

    async fn stop(self) {
        self.stand.stopping.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    // A reset after the answer is an end as well.
    drop(
        tokio::time::timeout(Duration::from_secs(10), read)
            .await
            .expect("the server closes"),
    );
    String::from_utf8(bytes).unwrap()
}

const GET: &str = "GET /v1/vouchers HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_connection_carries_many_requests() {
    let served = Served::with(HttpSettings::default()).await;
    let last = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answers = served.exchange(&format!("{GET}{GET}{last}")).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    served.stop().await;
}

#[tokio::test]
async fn who_never_finishes_his_header_is_given_up() {
    let settings = HttpSettings {
        header_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_mins(1),
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    assert_eq!(served.exchange("").await, "");
    let late = served.exchange("GET /livez HTTP/1.1\r\nHost:").await;
    assert!(late.starts_with("HTTP/1.1 408"), "{late}");
    assert!(late.contains("\"request_timeout\""), "{late}");
    let mut second = served.connect().await;
    second.write_all(GET.as_bytes()).await.unwrap();
    served.stand.clock.sleep(Duration::from_millis(100)).await;
    second.write_all(b"GET /livez HTTP").await.unwrap();
    let answers = read_to_end(&mut second).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 408").count(), 1, "{answers}");
    // One letter now and then does not help.
    let mut slow = served.connect().await;
    let dripping = async {
        for letter in GET.as_bytes() {
            if slow.write_all(&[*letter]).await.is_err() {
                return true;
            }
            served.stand.clock.sleep(Duration::from_millis(20)).await;
        }
        false
    };
    assert!(dripping.await, "it was given up");
    served.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_idle_for_longer_than_a_header_may_take() {
    let settings = HttpSettings {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(900),
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let mut stream = served.connect().await;
    for _ in 0..2 {
        stream.write_all(GET.as_bytes()).await.unwrap();
        served.stand.clock.sleep(Duration::from_millis(300)).await;
    }
    let answers = read_to_end(&mut stream).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    served.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_before_it_is_read() {
    let served = Served::with(HttpSettings::default()).await;
    let token = served.stand.token_of(7, "buyer");
    let head = format!(
        "POST /v1/vouchers/1/purchases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"
    );
    let answer = served.exchange(&head).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("payload_too_large"), "{answer}");
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    assert!(served.exchange(&huge).await.starts_with("HTTP/1.1 431"));
    served.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_a_problem_as_well() {
    let served = Served::with(HttpSettings::default()).await;
    let long = "x".repeat(40_000);
    for (sent, status, code) in [
        (
            "HELO example.org\r\n\r\n".to_owned(),
            400,
            "malformed_request",
        ),
        (
            "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(),
            400,
            "malformed_request",
        ),
        (
            format!("GET /{long} HTTP/1.1\r\n\r\n"),
            431,
            "head_too_large",
        ),
        (
            "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            400,
            "malformed_request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n".to_owned(),
            400,
            "malformed_request",
        ),
        (
            format!("{GET}GET / HTTP/1.1\r\nX: {long}\r\n\r\n"),
            431,
            "head_too_large",
        ),
    ] {
        let answers = served.exchange(&sent).await;
        let last = answers.rfind("HTTP/1.1 ").unwrap();
        let (head, body) = answers[last..].split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{answers}");
        assert!(
            head.contains("content-type: application/problem+json"),
            "{head}"
        );
        assert!(head.contains("connection: close"), "{head}");
        assert!(head.contains("\r\ndate: "), "{head}");
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&body["code"], &body["status"]),
            (&json!(code), &json!(status))
        );
        let id = body["request_id"].as_str().unwrap();
        assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
    }
    served.stop().await;
}

#[tokio::test]
async fn nothing_is_read_after_a_body_whose_length_is_given_twice() {
    let served = Served::with(HttpSettings::default()).await;
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        // By one length the second request is part of the body, by the other it is not.
        let answers = served
            .exchange(&format!(
                "GET /livez HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\n0\r\n\r\n{GET}"
            ))
            .await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    }
    served.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let settings = HttpSettings {
        connections_max: 2,
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let (one, two) = (served.connect().await, served.connect().await);
    let mut third = served.connect().await;
    third.write_all(GET.as_bytes()).await.unwrap();
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
    assert!(early.is_err(), "the third has no place");
    drop(one);
    assert_eq!(third.read(&mut byte).await.unwrap(), 1);
    drop((two, third));
    served.stop().await;
}

#[tokio::test]
async fn connections_are_not_kept_while_places_are_scarce() {
    let settings = HttpSettings {
        connections_max: 4,
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let mut first = served.connect().await;
    first.write_all(GET.as_bytes()).await.unwrap();
    served.stand.clock.sleep(Duration::from_millis(100)).await;
    let others = (served.connect().await, served.connect().await);
    served.stand.clock.sleep(Duration::from_millis(100)).await;
    first.write_all(GET.as_bytes()).await.unwrap();
    let answers = read_to_end(&mut first).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert_eq!(answers.matches("connection: close").count(), 1, "{answers}");
    drop(others);
    served.stop().await;
}

#[tokio::test]
async fn a_client_who_leaves_does_not_undo_what_he_began() {
    let served = Served::with(HttpSettings::default()).await;
    let stand = &served.stand;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let mut stream = served.connect().await;
    stream
        .write_all(served.cancellation(&order, 7).as_bytes())
        .await
        .unwrap();
    stand.clock.sleep(Duration::from_millis(200)).await;
    drop(stream);
    stand.clock.sleep(Duration::from_millis(100)).await;
    stand.resume_writer();
    stand
        .wait_until(async || stand.settled(&order, 7).await.body["status"] == "cancelled")
        .await;
    served.stop().await;
}

#[tokio::test]
async fn a_stop_answers_what_was_asked_and_then_ends() {
    let served = Served::with(HttpSettings::default()).await;
    let stand = &served.stand;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let mut idle = served.connect().await;
    let mut busy = served.connect().await;
    busy.write_all(served.cancellation(&order, 7).as_bytes())
        .await
        .unwrap();
    stand.clock.sleep(Duration::from_millis(200)).await;
    stand.stopping.cancel();
    // The door is still open for a moment, and says that it is about to close.
    let late = served.exchange(GET).await;
    assert!(late.starts_with("HTTP/1.1 200 OK"), "{late}");
    assert!(late.contains("connection: close"), "{late}");
    stand.resume_writer();
    let answer = read_to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"cancelled\""), "{answer}");
    assert_eq!(read_to_end(&mut idle).await, "");
    let port = served.port;
    served.serving.await.unwrap().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_who_has_not_asked() {
    let served = Served::with(HttpSettings::default()).await;
    let mut silent = served.connect().await;
    let mut half = served.connect().await;
    half.write_all(b"GET /livez HTTP/1.1\r\nHost:")
        .await
        .unwrap();
    let mut kept = served.connect().await;
    kept.write_all(GET.as_bytes()).await.unwrap();
    let mut half_again = served.connect().await;
    half_again.write_all(GET.as_bytes()).await.unwrap();
    served.stand.clock.sleep(Duration::from_millis(100)).await;
    half_again.write_all(b"GET /li").await.unwrap();
    served.stand.clock.sleep(Duration::from_millis(100)).await;
    let begun = served.stand.clock.monotonic();
    let clock = served.stand.clock.clone();
    served.stop().await;
    let took = clock.monotonic().saturating_sub(begun);
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(read_to_end(&mut half).await, "");
    for mut answered in [kept, half_again] {
        let answers = read_to_end(&mut answered).await;
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1, "{answers}");
    }
}

#[tokio::test]
async fn a_stream_of_events_outlasts_every_timeout_and_ends_in_order_at_a_stop() {
    let settings = HttpSettings {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(200),
        request_deadline: Duration::from_millis(300),
        stream_heartbeat: Duration::from_millis(250),
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let stand = &served.stand;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut stream = served.connect().await;
    let token = stand.token_of(7, "buyer");
    let follow = format!(
        "GET /v1/orders/{order}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(follow.as_bytes()).await.unwrap();
    stand.clock.sleep(Duration::from_millis(800)).await;
    stand.pay(&order, 7, "p").await.is(200);
    stand.clock.sleep(Duration::from_millis(100)).await;
    let (begun, clock) = (stand.clock.monotonic(), stand.clock.clone());
    let (all, ()) = tokio::join!(read_to_end(&mut stream), served.stop());
    let took = clock.monotonic().saturating_sub(begun);
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert!(all.starts_with("HTTP/1.1 200 OK"), "{all}");
    assert!(all.contains("transfer-encoding: chunked"), "{all}");
    assert!(all.matches(": still here").count() >= 2, "{all}");
    assert_eq!(all.matches("event: status").count(), 1, "{all}");
    assert!(all.ends_with("0\r\n\r\n"), "{all}");
}

#[tokio::test]
async fn a_stop_ends_although_somebody_hangs_on() {
    let settings = HttpSettings {
        stop_patience: Duration::from_millis(300),
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let stand = &served.stand;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let mut slow = served.connect().await;
    slow.write_all(served.cancellation(&order, 7).as_bytes())
        .await
        .unwrap();
    stand.clock.sleep(Duration::from_millis(100)).await;
    tokio::time::timeout(Duration::from_secs(3), served.stop())
        .await
        .expect("it ends");
}

#[tokio::test]
async fn who_stands_at_the_door_when_it_closes_is_let_in() {
    let settings = HttpSettings {
        stop_notice: Duration::ZERO,
        ..HttpSettings::default()
    };
    let served = Served::with(settings).await;
    let mut guests = Vec::new();
    for _ in 0..20 {
        let mut guest = served.connect().await;
        guest.write_all(GET.as_bytes()).await.unwrap();
        guests.push(guest);
    }
    served.stand.stopping.cancel();
    for guest in &mut guests {
        let answer = read_to_end(guest).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    served.serving.await.unwrap().unwrap();
}
