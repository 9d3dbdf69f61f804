//! One request, and how it is sent.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use seckill_domain::BuyerId;
use serde_json::Value;

use super::answer::Reply;
use super::token::{Token, token};

/// Nobody waits longer for an answer. Longer than every deadline of the service.
const PATIENCE: Duration = Duration::from_secs(15);

/// No answer came: the connection was refused or broke, or time was up. What was asked for may have
/// happened.
#[derive(Debug, Clone)]
pub struct Lost(pub String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer: {}", self.0)
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Call {
    /// Any method.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        Self {
            method: Method::from_bytes(method.as_bytes()).expect("a method"),
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// `GET`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    /// `POST`.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new("POST", path)
    }

    /// On behalf of a buyer.
    #[must_use]
    pub fn by(self, buyer: BuyerId) -> Self {
        self.bearing(&token(buyer))
    }

    /// On behalf of an administrator.
    #[must_use]
    pub fn by_admin(self) -> Self {
        self.bearing(&Token::admin().signed())
    }

    /// With this bearer token.
    #[must_use]
    pub fn bearing(self, token: &str) -> Self {
        self.header(AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
        let value = HeaderValue::from_str(value).expect("a header's value");
        self.headers.push((name, value));
        self
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// With a body that says it is JSON, whatever it is.
    #[must_use]
    pub fn text(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE.as_str(), "application/json")
    }

    fn request(self, base: &str) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("{base}{}", self.path));
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body)).expect("a request")
    }
}

/// Connections to one process, kept alive: as many as there are calls at once.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    base: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Wire {
    pub(super) fn to(base: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            base: base.to_owned(),
            http: Client::builder(TokioExecutor::new()).build(connector),
        }
    }

    /// Sends a call whose answer goes on for a while, and returns when it begins.
    pub(super) async fn open(&self, call: Call) -> Result<Response<Incoming>, Lost> {
        let begun = self.http.request(call.request(&self.base));
        match tokio::time::timeout(PATIENCE, begun).await {
            Ok(begun) => begun.map_err(|error| Lost(chain(&error))),
            Err(_) => Err(Lost(format!("none within {PATIENCE:?}"))),
        }
    }

    pub(super) async fn send(&self, call: Call) -> Result<Reply, Lost> {
        let answered = async {
            let response = self
                .http
                .request(call.request(&self.base))
                .await
                .map_err(|error| Lost(chain(&error)))?;
            let (head, body) = response.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| Lost(chain(&error)))?
                .to_bytes();
            Ok(Reply::new(&head, &body))
        };
        tokio::time::timeout(PATIENCE, answered)
            .await
            .unwrap_or_else(|_| Err(Lost(format!("none within {PATIENCE:?}"))))
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    words.join(": ")
}
