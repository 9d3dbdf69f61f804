//! Swagger UI's files, as the client can read them.
//!
//! The binary has them compressed. Who does not take gzip gets them plain; each is decompressed
//! once.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use utoipa_swagger_ui::Config;

/// How long a client may keep a file without asking: not long, because another version of the
/// service has other files under the same names.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// Most bytes of a file that is decompressed, so that a broken one cannot fill the memory.
const PLAIN_BYTES_MAX: u64 = 32 * 1_024 * 1_024;

/// The files that were asked for.
pub(super) struct Assets {
    config: Arc<Config<'static>>,
    known: Mutex<HashMap<String, Arc<Asset>>>,
}

/// One file.
pub(super) struct Asset {
    kind: HeaderValue,
    stored: Bytes,
    is_gzip: bool,
    plain: OnceLock<Bytes>,
    /// What tells this content from another.
    tag: String,
}

impl Assets {
    pub(super) fn new(config: Config<'static>) -> Self {
        Self {
            config: Arc::new(config),
            known: Mutex::default(),
        }
    }

    /// `None` if there is no such file.
    pub(super) fn get(&self, path: &str) -> Option<Arc<Asset>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asset) = known.get(path) {
            return Some(asset.clone());
        }
        let file = utoipa_swagger_ui::serve(path, self.config.clone()).ok()??;
        let stored = Bytes::from(file.bytes.into_owned());
        let digest = Sha256::digest(&stored);
        let asset = Arc::new(Asset {
            kind: kind(&file.content_type)?,
            is_gzip: file.gzpipped,
            plain: OnceLock::new(),
            tag: tag(&digest),
            stored,
        });
        known.insert(path.to_owned(), asset.clone());
        Some(asset)
    }
}

/// The first 64 bits are enough to tell one version of a file from another.
fn tag(digest: &[u8]) -> String {
    let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 8], digest));
    format!("{:016x}", u64::from_be_bytes(*first))
}

/// All of them are UTF-8, which only pictures do not have to say.
fn kind(named: &str) -> Option<HeaderValue> {
    let is_text = named.starts_with("text/") || named.ends_with("/json");
    let kind = if is_text && !named.contains("charset") {
        HeaderValue::try_from(format!("{named}; charset=utf-8"))
    } else {
        HeaderValue::try_from(named)
    };
    kind.ok()
}

impl Asset {
    /// The file as this client can read it, or that he has it already.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let as_gzip = self.is_gzip && takes_gzip(headers);
        let tag = if as_gzip {
            format!("\"{}-gzip\"", self.tag)
        } else {
            format!("\"{}\"", self.tag)
        };
        let has_it = is_known(headers, &tag);
        let body = match (has_it, as_gzip) {
            (true, _) => Bytes::new(),
            (false, true) => self.stored.clone(),
            (false, false) => self.plain(),
        };
        let mut response = Response::new(Body::from(body));
        if has_it {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let answer = response.headers_mut();
        answer.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        answer.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if let Ok(tag) = HeaderValue::try_from(tag) {
            answer.insert(header::ETAG, tag);
        }
        if !has_it {
            answer.insert(header::CONTENT_TYPE, self.kind.clone());
            if as_gzip {
                answer.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        response
    }

    fn plain(&self) -> Bytes {
        if !self.is_gzip {
            return self.stored.clone();
        }
        let decompress = || {
            let mut plain = Vec::new();
            let stored = GzDecoder::new(&self.stored[..]);
            if let Err(broken) = stored.take(PLAIN_BYTES_MAX).read_to_end(&mut plain) {
                tracing::error!(%broken, "a file of Swagger UI cannot be decompressed");
            }
            Bytes::from(plain)
        };
        self.plain.get_or_init(decompress).clone()
    }
}

/// Whether `Accept-Encoding` allows gzip. Without one, only what is plain is sure to be read.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(header::ACCEPT_ENCODING).iter();
    let codings = said.filter_map(|value| value.to_str().ok());
    let mut any = false;
    for coding in codings.flat_map(|value| value.split(',')) {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").unwrap_or("1");
        let wanted = quality.trim().parse::<f32>().is_ok_and(|q| q > 0.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                return wanted;
            }
            "*" => any = wanted,
            _ => {}
        }
    }
    any
}

/// Whether `If-None-Match` names the tag.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let said = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = said
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(said: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_str(said).unwrap(),
        );
        takes_gzip(&headers)
    }

    #[test]
    fn gzip_is_for_who_says_that_he_takes_it() {
        for said in [
            "gzip",
            "br, GZIP;q=0.5",
            "*",
            "deflate, *;q=0.1",
            "gzip ; q=1",
            "x-gzip",
        ] {
            assert!(takes(said), "{said}");
        }
        for said in [
            "",
            "br",
            "identity",
            "gzip;q=0",
            "gzip; q=0.0, *",
            "*;q=0",
            "gzip;q=x",
        ] {
            assert!(!takes(said), "{said}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
