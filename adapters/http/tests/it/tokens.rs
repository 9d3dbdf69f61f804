//! Bearer tokens: what is taken, and every way to cheat.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use seckill_http::{BadKey, PublicKeyKind, TokenVerifier};
use serde_json::{Value, json};

use crate::stand::{Answer, SECRET, Stand, bearer, token};

const RS256: (&str, &str) = (
    include_str!("keys/rs256.private.pem"),
    include_str!("keys/rs256.public.pem"),
);
const ES256: (&str, &str) = (
    include_str!("keys/es256.private.pem"),
    include_str!("keys/es256.public.pem"),
);
const EDDSA: (&str, &str) = (
    include_str!("keys/eddsa.private.pem"),
    include_str!("keys/eddsa.public.pem"),
);

impl Stand {
    async fn orders_with(&self, authorization: &str) -> Answer {
        self.get("/v1/orders")
            .header("authorization", authorization)
            .answer()
            .await
    }

    #[track_caller]
    fn exp(&self, from_now_s: i64) -> i64 {
        self.now_ms() / 1_000 + from_now_s
    }

    async fn refuses(&self, token: &str) {
        self.orders_with(&bearer(token))
            .await
            .refused(401, "unauthenticated");
    }
}

fn signed(header: &Header, claims: &Value, secret: &[u8]) -> String {
    let key = EncodingKey::from_secret(secret).unwrap();
    jsonwebtoken::encode(header, claims, &key).unwrap()
}

/// The unpadded base64url of a text, for tokens that no library would make.
fn base64url(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let letter = bits >> (18 - 6 * place) & 63;
            encoded.push(char::from(LETTERS[letter as usize]));
        }
    }
    encoded
}

#[tokio::test]
async fn the_header_has_one_form() {
    let stand = Stand::new().await;
    let good = stand.token_of(7, "buyer");
    for header in [
        bearer(&good),
        format!("bearer {good}"),
        format!("BEARER  {good}"),
    ] {
        stand.orders_with(&header).await.is(200);
    }
    for header in [
        "",
        "Bearer",
        "Bearer ",
        &good,
        &format!("Basic {good}"),
        &format!("Bearer {good} x"),
    ] {
        stand
            .orders_with(header)
            .await
            .refused(401, "unauthenticated");
    }
    let twice = stand
        .get("/v1/orders")
        .header("authorization", &bearer(&good))
        .user(7);
    twice.answer().await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let stand = Stand::new().await;
    let claims = json!({"sub": "7", "exp": stand.exp(60)});
    let good = token(&claims);
    stand.orders_with(&bearer(&good)).await.is(200);
    stand
        .refuses(&signed(&Header::default(), &claims, &[b'x'; 40]))
        .await;
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let other = base64url(&json!({"sub": "8", "exp": stand.exp(60)}).to_string());
    stand.refuses(&format!("{head}.{other}.{signature}")).await;
    stand.refuses(&format!("{head}.{body}.")).await;
    stand.refuses(&format!("{head}.{body}")).await;
    stand.refuses(&format!("{good}.")).await;
    stand.refuses("..").await;
    for none in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None","typ":"JWT"}"#,
        r#"{"alg":""}"#,
        "{}",
    ] {
        let head = base64url(none);
        stand.refuses(&format!("{head}.{body}.")).await;
        stand.refuses(&format!("{head}.{body}.{signature}")).await;
    }
}

#[tokio::test]
async fn another_algorithm_of_the_same_family_is_refused() {
    let stand = Stand::new().await;
    let claims = json!({"sub": "7", "exp": stand.exp(60)});
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        stand
            .refuses(&signed(&Header::new(algorithm), &claims, SECRET.as_bytes()))
            .await;
    }
}

#[tokio::test]
async fn what_a_token_declares_critical_is_not_understood() {
    let stand = Stand::new().await;
    let claims = json!({"sub": "7", "exp": stand.exp(60)});
    for crit in [json!(["exp"]), json!(["b64"]), json!([])] {
        let mut header = Header {
            crit: serde_json::from_value(crit).unwrap(),
            ..Header::default()
        };
        header.extras.insert("b64", true);
        stand
            .refuses(&signed(&header, &claims, SECRET.as_bytes()))
            .await;
    }
}

#[tokio::test]
async fn claims_have_to_be_there_and_well_formed() {
    let stand = Stand::new().await;
    let exp = stand.exp(60);
    for claims in [
        json!({"exp": exp}),
        json!({"sub": "7"}),
        json!({"sub": "7", "exp": exp.to_string()}),
        json!({"sub": "7", "exp": null}),
        json!({"sub": "7", "exp": true}),
        json!({"sub": 7, "exp": exp}),
        json!({"sub": "00", "exp": exp}),
        json!({"sub": "", "exp": exp}),
        json!({"sub": "07", "exp": exp}),
        json!({"sub": "+7", "exp": exp}),
        json!({"sub": "7 ", "exp": exp}),
        json!({"sub": "alice", "exp": exp}),
        json!({"sub": "18446744073709551616", "exp": exp}),
        json!({"sub": "7", "exp": exp, "role": "root"}),
        json!({"sub": "7", "exp": exp, "role": "Admin"}),
        json!({"sub": "7", "exp": exp, "role": ["admin"]}),
        json!({"sub": "7", "exp": exp, "nbf": "now"}),
        json!(["7", exp]),
    ] {
        stand.refuses(&token(&claims)).await;
    }
    for claims in [
        json!({"sub": "18446744073709551615", "exp": exp}),
        json!({"sub": "0", "exp": exp}),
        json!({"sub": "7", "exp": f64::from(u32::MAX) + 0.5, "role": "buyer", "aud": "others", "iat": 1}),
    ] {
        stand.orders_with(&bearer(&token(&claims))).await.is(200);
    }
    let huge = json!({"sub": "7", "exp": exp, "name": "x".repeat(4_096)});
    stand.refuses(&token(&huge)).await;
}

#[tokio::test]
async fn a_token_holds_within_its_times_give_or_take_five_seconds() {
    let stand = Stand::new().await;
    for (from, to, holds) in [
        (-60, 60, true),
        (-60, -4, true),
        (-60, -6, false),
        (4, 60, true),
        (7, 60, false),
    ] {
        let claims = json!({"sub": "7", "nbf": stand.exp(from), "exp": stand.exp(to)});
        let answer = stand.orders_with(&bearer(&token(&claims))).await;
        answer.is(if holds { 200 } else { 401 });
    }
}

#[tokio::test]
async fn a_token_that_was_verified_before_expires_all_the_same() {
    let stand = Stand::new().await;
    let short = bearer(&token(&json!({"sub": "7", "exp": stand.exp(30)})));
    for _ in 0..3 {
        stand.orders_with(&short).await.is(200);
    }
    stand.clock.advance(Duration::from_secs(36));
    stand
        .orders_with(&short)
        .await
        .refused(401, "unauthenticated");
    let early = bearer(&token(
        &json!({"sub": "7", "nbf": stand.exp(30), "exp": stand.exp(90)}),
    ));
    stand
        .orders_with(&early)
        .await
        .refused(401, "unauthenticated");
    stand.clock.advance(Duration::from_secs(30));
    stand.orders_with(&early).await.is(200);
}

#[tokio::test]
async fn tokens_of_a_public_key_are_taken_and_its_text_is_no_secret() {
    type MakeKey = fn(&[u8]) -> jsonwebtoken::errors::Result<EncodingKey>;
    let kinds: [(PublicKeyKind, Algorithm, (&str, &str), MakeKey); 3] = [
        (
            PublicKeyKind::Rs256,
            Algorithm::RS256,
            RS256,
            EncodingKey::from_rsa_pem,
        ),
        (
            PublicKeyKind::Es256,
            Algorithm::ES256,
            ES256,
            EncodingKey::from_ec_pem,
        ),
        (
            PublicKeyKind::EdDsa,
            Algorithm::EdDSA,
            EDDSA,
            EncodingKey::from_ed_pem,
        ),
    ];
    for (kind, algorithm, (private, public), make_key) in kinds {
        let verifier = TokenVerifier::public_key(kind, public).unwrap();
        let stand = Stand::verifying(verifier).await;
        let claims = json!({"sub": "7", "exp": stand.exp(60)});
        let key = make_key(private.as_bytes()).unwrap();
        let good = jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap();
        stand.orders_with(&bearer(&good)).await.is(200);
        // The classic: the public key, which everybody has, as the secret of an HMAC.
        for secret in [public, public.trim_end(), SECRET] {
            stand
                .refuses(&signed(&Header::default(), &claims, secret.as_bytes()))
                .await;
        }
        let stranger = Stand::new().await;
        stranger.refuses(&good).await;
        for (_, other, (private, _), make_key) in kinds {
            if other != algorithm {
                let key = make_key(private.as_bytes()).unwrap();
                let token = jsonwebtoken::encode(&Header::new(other), &claims, &key).unwrap();
                stand.refuses(&token).await;
            }
        }
    }
}

#[tokio::test]
async fn audience_and_issuer_count_where_they_are_set() {
    let verifier = TokenVerifier::hs256(SECRET.as_bytes()).unwrap();
    let stand = Stand::verifying(verifier.for_audience("shop").from_issuer("us")).await;
    let exp = stand.exp(60);
    let fits = json!({"sub": "7", "exp": exp, "aud": "shop", "iss": "us"});
    stand.orders_with(&bearer(&token(&fits))).await.is(200);
    for claims in [
        json!({"sub": "7", "exp": exp}),
        json!({"sub": "7", "exp": exp, "aud": "shop"}),
        json!({"sub": "7", "exp": exp, "aud": "bank", "iss": "us"}),
        json!({"sub": "7", "exp": exp, "aud": "shop", "iss": "them"}),
    ] {
        stand.refuses(&token(&claims)).await;
    }
}

#[test]
fn a_key_that_cannot_verify_is_refused_at_once() {
    assert_eq!(
        TokenVerifier::hs256(&[b'x'; 31]).err(),
        Some(BadKey::ShortSecret)
    );
    assert!(TokenVerifier::hs256(&[b'x'; 32]).is_ok());
    for (kind, pem) in [
        (PublicKeyKind::Rs256, ES256.1),
        (PublicKeyKind::Es256, RS256.1),
        (PublicKeyKind::EdDsa, "not a key"),
        (PublicKeyKind::Rs256, ""),
        (PublicKeyKind::Rs256, RS256.0),
        (PublicKeyKind::Es256, ES256.0),
        (PublicKeyKind::EdDsa, EDDSA.0),
    ] {
        let refused = TokenVerifier::public_key(kind, pem).err();
        assert_eq!(refused, Some(BadKey::NotPublicKey(kind)));
    }
}
