//! Just enough HTTP: one request, one connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Client {
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.call("POST", path, body)
    }

    pub(crate) fn buy(&self, voucher: u64) -> (u16, Value) {
        self.post(&format!("/v1/vouchers/{voucher}/purchases"), "{}")
    }

    fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let (host, token, length) = (self.address, &self.token, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Asks until the answer is what is waited for, for 10 s at most.
    pub(crate) fn wait(&self, path: &str, there: impl Fn(u16, &Value) -> bool) -> Value {
        for _ in 0..500 {
            let (status, body) = self.get(path);
            if there(status, &body) {
                return body;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!(
            "{path} did not come to what was waited for: {:?}",
            self.get(path)
        );
    }
}
