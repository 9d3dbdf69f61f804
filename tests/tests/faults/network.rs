//! The proxy itself: what it is told to do to a connection is done to it, and nothing else.

use std::io::ErrorKind;
use std::time::Duration;

use seckill_tests::harness::{Fate, Proxy, Weather, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Long enough for whatever is going to arrive at once.
const SOON: Duration = Duration::from_secs(5);
/// Within this what is held back does not arrive.
const NOT_YET: Duration = Duration::from_millis(100);

/// A server that answers every request of four bytes with the same bytes, twice.
async fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4];
                while client.read_exact(&mut request).await.is_ok() {
                    client.write_all(&request).await.unwrap();
                    client.write_all(&request).await.unwrap();
                }
            });
        }
    });
    port
}

async fn client(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap()
}

async fn say(client: &mut TcpStream, request: &str) {
    client.write_all(request.as_bytes()).await.unwrap();
}

/// As many bytes as were said, once more; `None` if the connection has ended.
async fn hear(client: &mut TcpStream, bytes: usize) -> Option<String> {
    let mut reply = vec![0; bytes];
    let heard = timeout(SOON, client.read_exact(&mut reply)).await;
    match heard.expect("an answer in time") {
        Ok(_) => Some(String::from_utf8(reply).unwrap()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        Err(error) => panic!("{error}"),
    }
}

async fn assert_silent(client: &mut TcpStream) {
    let heard = timeout(NOT_YET, client.read_u8()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test]
async fn in_fair_weather_it_is_not_there() {
    let proxy = Proxy::to_port(echo().await).await;
    let mut one = client(&proxy).await;
    say(&mut one, "ping").await;
    assert_eq!(hear(&mut one, 8).await.unwrap(), "pingping");
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
    drop(one);
    let gone = async || (proxy.open() == 0).then_some(()).ok_or(String::new());
    eventually("the connection is gone", SOON, gone).await;
}

#[tokio::test]
async fn far_servers_answer_later_and_lost_packets_later_still() {
    let proxy = Proxy::to_port(echo().await).await;
    let mut one = client(&proxy).await;
    let delay = Duration::from_millis(60);
    proxy.weather(Weather::far(delay).unsteady(delay / 10));
    let begun = Instant::now();
    say(&mut one, "ping").await;
    say(&mut one, "pong").await;
    assert_eq!(hear(&mut one, 16).await.unwrap(), "pingpingpongpong");
    assert!(begun.elapsed() >= 2 * delay, "{:?}", begun.elapsed());

    proxy.weather(Weather::default().lossy(1.0, delay));
    let begun = Instant::now();
    say(&mut one, "ping").await;
    assert_eq!(hear(&mut one, 8).await.unwrap(), "pingping");
    assert!(begun.elapsed() >= 2 * delay, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_held_arrives_late_and_nothing_breaks() {
    let proxy = Proxy::to_port(echo().await).await;
    let mut one = client(&proxy).await;
    proxy.hold();
    say(&mut one, "ping").await;
    assert_silent(&mut one).await;
    let mut other = client(&proxy).await;
    say(&mut other, "pong").await;
    assert_silent(&mut other).await;
    proxy.release();
    assert_eq!(hear(&mut one, 8).await.unwrap(), "pingping");
    assert_eq!(hear(&mut other, 8).await.unwrap(), "pongpong");
}

#[tokio::test]
async fn a_cut_breaks_every_connection_and_new_ones_are_taken() {
    let proxy = Proxy::to_port(echo().await).await;
    let (mut one, mut other) = (client(&proxy).await, client(&proxy).await);
    for client in [&mut one, &mut other] {
        say(client, "ping").await;
        assert!(hear(client, 8).await.is_some());
    }
    assert_eq!(proxy.cut(), 2);
    assert_eq!(hear(&mut one, 1).await, None);
    assert_eq!(hear(&mut other, 1).await, None);
    let mut next = client(&proxy).await;
    say(&mut next, "ping").await;
    assert_eq!(hear(&mut next, 8).await.unwrap(), "pingping");
}

#[tokio::test]
async fn half_closed_the_server_is_heard_no_more_and_hears() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let proxy = Proxy::to(listener.local_addr().unwrap()).await;
    let mut one = client(&proxy).await;
    say(&mut one, "ping").await;
    let (mut server, _) = listener.accept().await.unwrap();
    assert_eq!(hear(&mut server, 4).await.unwrap(), "ping");
    proxy.half_close();
    assert_eq!(hear(&mut one, 1).await, None);
    say(&mut server, "late").await;
    say(&mut one, "pong").await;
    assert_eq!(hear(&mut server, 4).await.unwrap(), "pong");
}

#[tokio::test]
async fn new_connections_go_where_it_is_aimed() {
    let proxy = Proxy::to_port(1).await;
    let mut nowhere = client(&proxy).await;
    assert_eq!(hear(&mut nowhere, 1).await, None);
    assert_eq!((proxy.accepted(), proxy.reached()), (1, 0));
    proxy.aim_at(echo().await);
    let mut one = client(&proxy).await;
    say(&mut one, "ping").await;
    assert!(hear(&mut one, 8).await.is_some());
}

#[tokio::test]
async fn a_reply_is_swallowed_with_all_that_follows() {
    let proxy = Proxy::to_port(echo().await).await;
    let trap = proxy.trap(&["user", "done"], Fate::Unanswered);
    let (mut one, mut other) = (client(&proxy).await, client(&proxy).await);
    for request in ["done", "user"] {
        say(&mut one, request).await;
        assert!(hear(&mut one, 8).await.is_some());
    }
    // Not on a connection that has not said the first of them.
    say(&mut other, "done").await;
    assert!(hear(&mut other, 8).await.is_some());
    assert!(!trap.is_sprung());
    say(&mut one, "done").await;
    trap.sprung().await;
    say(&mut one, "more").await;
    assert_silent(&mut one).await;
    say(&mut other, "more").await;
    assert!(hear(&mut other, 8).await.is_some());
}

#[tokio::test]
async fn the_third_request_is_held_until_it_is_let_go() {
    let proxy = Proxy::to_port(echo().await).await;
    let trap = proxy.trap_nth(&["ping"], 3, Fate::Held);
    let mut one = client(&proxy).await;
    for _ in 0..2 {
        say(&mut one, "ping").await;
        assert!(hear(&mut one, 8).await.is_some());
    }
    say(&mut one, "ping").await;
    trap.sprung().await;
    assert_silent(&mut one).await;
    trap.release();
    assert_eq!(hear(&mut one, 8).await.unwrap(), "pingping");
    // A trap that is dropped lets go, too.
    let trap = proxy.trap(&["ping"], Fate::Held);
    say(&mut one, "ping").await;
    trap.sprung().await;
    drop(trap);
    assert!(hear(&mut one, 8).await.is_some());
}

#[tokio::test]
async fn a_reply_breaks_off_in_the_middle() {
    let proxy = Proxy::to_port(echo().await).await;
    let trap = proxy.trap(&["ping"], Fate::Broken { after: 3 });
    let mut one = client(&proxy).await;
    say(&mut one, "ping").await;
    trap.sprung().await;
    assert_eq!(hear(&mut one, 3).await.unwrap(), "pin");
    assert_eq!(hear(&mut one, 1).await, None);
}
