//! A client for the few calls that are not measured.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(20);

/// Sends one request on a connection of its own; returns status and body.
pub async fn ask(
    server: SocketAddr,
    request: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> anyhow::Result<(u16, Value)> {
    let asked = async {
        let mut stream = TcpStream::connect(server).await?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let authorization = token
            .map(|it| format!("authorization: Bearer {it}\r\n"))
            .unwrap_or_default();
        let head = format!(
            "{request} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n{authorization}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        read(&String::from_utf8_lossy(&answer))
    };
    let answered = tokio::time::timeout(PATIENCE, asked).await;
    answered.with_context(|| format!("no answer to {request}"))?
}

/// The body of an answer that must be a success.
pub async fn must(
    server: SocketAddr,
    request: &str,
    token: &str,
    body: Option<&Value>,
) -> anyhow::Result<Value> {
    let (status, body) = ask(server, request, Some(token), body).await?;
    ensure!(
        (200..300).contains(&status),
        "{request} was answered {status} {body}"
    );
    Ok(body)
}

fn read(answer: &str) -> anyhow::Result<(u16, Value)> {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("not an answer: {answer:?}");
    };
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    Ok((status.context("no status")?, body))
}
