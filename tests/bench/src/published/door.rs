//! The design's HTTP edge.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use redis::aio::MultiplexedConnection;
use serde::Deserialize;
use tokio::net::TcpListener;

use super::{BUYERS, SCRIPT, STOCK, STREAM, VOUCHER, connect};
use crate::load::SECRET;

struct Shop {
    redis: MultiplexedConnection,
    hash: String,
    key: DecodingKey,
    rules: Validation,
    next_order: AtomicU64,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

/// Answers requests until it is killed.
pub async fn serve(listen: SocketAddr, redis: &str) -> anyhow::Result<()> {
    let mut redis = connect(redis, Some(std::time::Duration::from_secs(2))).await?;
    let load = redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).to_owned();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let shop = Arc::new(Shop {
        hash: load.query_async(&mut redis).await?,
        redis,
        key: DecodingKey::from_secret(SECRET.as_bytes())?,
        rules: Validation::new(Algorithm::HS256),
        // Seconds and a counter, as published, with the counter in the process: a call of Redis per
        // id would be a second one per request.
        next_order: AtomicU64::new(since_epoch << 32),
    });
    let listener = TcpListener::bind(listen).await?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let shop = Arc::clone(&shop);
        let service = service_fn(move |request| {
            let shop = Arc::clone(&shop);
            async move { Ok::<_, Infallible>(shop.answer(&request).await) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

impl Shop {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == "/livez" {
            return reply(StatusCode::OK, r#"{"status":"alive"}"#.to_owned());
        }
        let Some(user) = self.user(request) else {
            return reply(
                StatusCode::UNAUTHORIZED,
                r#"{"code":"unauthenticated"}"#.to_owned(),
            );
        };
        let order = self.next_order.fetch_add(1, Ordering::Relaxed);
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash)
            .arg(3)
            .arg(STOCK)
            .arg(BUYERS)
            .arg(STREAM);
        call.arg(VOUCHER).arg(&user).arg(order);
        match call.query_async::<i64>(&mut self.redis.clone()).await {
            Ok(0) => reply(
                StatusCode::ACCEPTED,
                format!(r#"{{"outcome":"granted","order_id":"{order}"}}"#),
            ),
            Ok(1) => reply(StatusCode::CONFLICT, r#"{"code":"sold_out"}"#.to_owned()),
            Ok(_) => reply(StatusCode::CONFLICT, r#"{"code":"repeated"}"#.to_owned()),
            Err(_) => reply(
                StatusCode::SERVICE_UNAVAILABLE,
                r#"{"code":"unavailable"}"#.to_owned(),
            ),
        }
    }

    fn user(&self, request: &Request<Incoming>) -> Option<String> {
        let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
        let token = header.strip_prefix("Bearer ")?;
        let token = jsonwebtoken::decode::<Claims>(token, &self.key, &self.rules).ok()?;
        Some(token.claims.sub)
    }
}

fn reply(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
