//! The program, as a process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;

fn seckill(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seckill"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL_")) {
        command.env_remove(variable);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// A server in a process of its own, killed when the test is over.
struct Server {
    process: Child,
    buyer: Client,
}

impl Server {
    /// Starts one, and reads what it invites people to try.
    fn start() -> Self {
        let mut process = seckill(&["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut next = |sign: &str| -> String {
            lines
                .find_map(|line| {
                    let line = line.unwrap();
                    line.contains(sign).then_some(line)
                })
                .unwrap()
        };
        let url = next("Swagger UI");
        let address: SocketAddr = url
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(address, _)| address.parse().unwrap())
            .unwrap();
        let token = next("buyer 42");
        let token = token.split_whitespace().last().unwrap().to_owned();
        Self {
            process,
            buyer: Client { address, token },
        }
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// What it wrote to its log.
    fn log(&mut self) -> String {
        let mut said = String::new();
        let mut stderr = self.process.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test of a process waits on the machine's clock"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn it_invites_to_a_purchase_and_ends_in_order_on_sigterm() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start();
        let (status, granted) = server.buyer.buy(1);
        assert_eq!(status, 202, "{granted}");
        let begun = now();
        server.signal(signal);
        let status = server.process.wait().unwrap();
        let log = server.log();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{log}");
        assert!(log.contains("stopped"), "{log}");
        assert!(!log.contains("ERROR"), "{log}");
    }
}

#[test]
fn the_built_in_secret_is_said_to_be_no_secret() {
    let mut server = Server::start();
    server.signal("TERM");
    server.process.wait().unwrap();
    let log = server.log();
    assert!(log.contains("built-in secret"), "{log}");
}

#[test]
fn a_token_of_the_command_line_opens_the_door() {
    let server = Server::start();
    let issued = seckill(&["token", "--user", "1", "--role", "admin"]).output();
    let token = String::from_utf8(issued.unwrap().stdout).unwrap();
    let admin = Client {
        token: token.trim().to_owned(),
        ..server.buyer.clone()
    };
    assert_eq!(admin.get("/v1/admin/vouchers/1/balance").0, 200);
    assert_eq!(server.buyer.get("/v1/admin/vouchers/1/balance").0, 403);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = seckill(&["--listen", &address]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("SECKILL_LISTEN"), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[test]
fn the_openapi_document_is_printed() {
    let output = seckill(&["openapi"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["openapi"].as_str(), Some("3.1.0"));
}

#[test]
fn a_simulated_crowd_gets_a_verdict() {
    let small = ["--buyers", "200", "--units", "20", "--waitlist", "5"];
    let quick = ["--payment-window", "1", "--writer-block-ms", "50"];
    let args: Vec<&str> = std::iter::once("simulate")
        .chain(small)
        .chain(quick)
        .collect();
    let output = seckill(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for promise in ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"] {
        let line = said
            .lines()
            .find(|line| line.trim_start().starts_with(promise));
        assert!(
            line.is_some_and(|line| line.contains("holds")),
            "{promise}: {said}"
        );
    }
}

#[test]
fn a_crowd_can_be_sent_to_a_server() {
    let server = Server::start();
    let url = format!("http://{}", server.buyer.address);
    let small = ["--buyers", "200", "--units", "20", "--waitlist", "5"];
    let args: Vec<&str> = ["simulate", "--url", &url, "--payment-window", "1"]
        .into_iter()
        .chain(small)
        .collect();
    let output = seckill(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}{failed}");
    assert!(!said.contains("BROKEN"), "{said}");
}
