//! The OpenAPI document, and the pages that show it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::stand::{Stand, openapi};

/// Path, method and description of every operation.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = openapi()["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(|(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

#[test]
fn every_call_of_the_contract_is_there() {
    let calls: BTreeSet<_> = operations()
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    for call in [
        "post /v1/vouchers/{voucher_id}/purchases",
        "get /v1/vouchers",
        "get /v1/vouchers/{voucher_id}",
        "get /v1/orders",
        "get /v1/orders/{order_id}",
        "post /v1/orders/{order_id}/payments",
        "post /v1/orders/{order_id}/cancellation",
        "get /v1/vouchers/{voucher_id}/waitlist/me",
        "delete /v1/vouchers/{voucher_id}/waitlist/me",
        "post /v1/admin/vouchers",
        "get /v1/admin/vouchers/{voucher_id}",
        "patch /v1/admin/vouchers/{voucher_id}",
        "post /v1/admin/vouchers/{voucher_id}/publish",
        "post /v1/admin/vouchers/{voucher_id}/pause",
        "post /v1/admin/vouchers/{voucher_id}/resume",
        "post /v1/admin/vouchers/{voucher_id}/close",
        "post /v1/admin/vouchers/{voucher_id}/stock-adjustments",
        "get /v1/admin/vouchers/{voucher_id}/balance",
        "get /v1/orders/{order_id}/events",
        "post /v1/payments/notifications",
        "post /v1/admin/orders/{order_id}/refunds",
        "get /v1/admin/refunds",
        "post /v1/admin/reconciliations",
        "get /v1/admin/reconciliations",
        "get /v1/admin/parked-messages",
        "post /v1/admin/parked-messages/{message_id}/replay",
        "post /v1/admin/parked-messages/{message_id}/discard",
        "get /livez",
        "get /readyz",
        "get /metrics",
    ] {
        assert!(calls.contains(call), "{call}");
    }
}

#[test]
fn every_operation_is_described_in_full() {
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations() {
        let place = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
        assert!(ids.insert(id), "{id} is there twice");
        assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{place}");
        assert!(operation["summary"].is_string(), "{place}");
        let public = !path.starts_with("/v1/orders")
            && !path.starts_with("/v1/admin")
            && !path.ends_with("/me")
            && !path.contains("/purchases");
        assert_eq!(
            operation["security"].as_array().unwrap().is_empty(),
            public,
            "{place}"
        );
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            let place = format!("{place} {status}");
            assert!(
                !response["description"].as_str().unwrap().is_empty(),
                "{place}"
            );
            assert!(response["headers"]["X-Request-Id"].is_object(), "{place}");
            let content = response["content"].as_object();
            for media in content.into_iter().flatten().map(|(_, media)| media) {
                assert!(media["schema"].is_object(), "{place}");
            }
            if ["429", "503"].contains(&status.as_str()) {
                assert!(response["headers"]["Retry-After"].is_object(), "{place}");
            }
        }
        assert!(
            responses.keys().any(|status| status.starts_with('4')) || public,
            "{place}"
        );
        assert!(
            responses.contains_key("500") && responses.contains_key("503"),
            "{place}"
        );
    }
}

#[test]
fn the_document_says_what_it_is() {
    let document = openapi();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/");
    assert_eq!(document["info"]["license"]["name"], "MIT OR Apache-2.0");
    let bearer = &document["components"]["securitySchemes"]["bearer"];
    assert_eq!(
        (&bearer["type"], &bearer["scheme"]),
        (&Value::from("http"), &Value::from("bearer"))
    );
    let described: BTreeSet<_> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str())
        .collect();
    let used: BTreeSet<_> = operations()
        .map(|(_, _, operation)| operation["tags"][0].as_str())
        .collect();
    assert_eq!(described, used);
}

#[test]
fn no_schema_contradicts_itself_or_points_nowhere() {
    fn walk(value: &Value, seen: &mut Vec<String>) {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            seen.push(target.to_owned());
        }
        assert!(value.get("allOf").is_none(), "{value}");
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
            Value::Object(members) => members.values().for_each(|member| walk(member, seen)),
            _ => {}
        }
    }
    let mut seen = Vec::new();
    walk(openapi(), &mut seen);
    for target in seen {
        let name = target.strip_prefix("#/components/schemas/").unwrap();
        assert!(
            openapi()["components"]["schemas"][name].is_object(),
            "{target}"
        );
    }
}

#[tokio::test]
async fn the_pages_are_served_from_the_binary() {
    let stand = Stand::new().await;
    let document = stand.get("/openapi.json").answer().await;
    assert_eq!(document.body, *openapi());
    let moved = stand.get("/swagger-ui").answer().await;
    moved.is(303);
    assert_eq!(moved.header("location"), "/swagger-ui/");
    for (path, kind) in [
        ("/swagger-ui/", "text/html"),
        ("/swagger-ui/index.html", "text/html"),
        ("/swagger-ui/swagger-ui-bundle.js", "text/javascript"),
        ("/swagger-ui/swagger-ui.css", "text/css"),
    ] {
        let page = stand.get(path).answer().await;
        page.is(200);
        let with_charset = format!("{kind}; charset=utf-8");
        assert_eq!(page.header("content-type"), with_charset, "{path}");
    }
    let start = stand
        .get("/swagger-ui/swagger-initializer.js")
        .answer()
        .await;
    assert!(start.raw.contains("\"/openapi.json\""), "{start:?}");
    assert!(
        start.raw.contains("\"persistAuthorization\": true"),
        "{start:?}"
    );
}

#[tokio::test]
async fn a_page_is_compressed_for_who_takes_that_and_kept_for_a_while() {
    let stand = Stand::new().await;
    let script = "/swagger-ui/swagger-ui-bundle.js";
    let plain = stand.get(script).answer().await;
    assert_eq!(plain.header("content-encoding"), "");
    assert!(plain.raw.contains("SwaggerUIBundle"), "it can be read");
    let packed = stand
        .get(script)
        .header("accept-encoding", "gzip, deflate, br")
        .answer()
        .await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.raw.len() < plain.raw.len());
    assert_ne!(packed.header("etag"), plain.header("etag"));
    let again = stand.get(script).answer().await;
    assert_eq!(again.raw, plain.raw);
    for answer in [&plain, &packed] {
        assert_eq!(answer.header("vary"), "Accept-Encoding");
        assert_eq!(answer.header("cache-control"), "public, max-age=300");
    }
    for (tag, status) in [(plain.header("etag"), 304), ("\"other\"", 200)] {
        let known = stand.get(script).header("if-none-match", tag);
        let known = known.answer().await;
        known.is(status);
        assert_eq!(known.raw.is_empty(), status == 304);
    }
    let head = stand.call("HEAD", script).answer().await;
    head.is(200);
    assert_eq!(head.raw, "");
}

/// Stands for: a browser reads a 64-bit id from a JSON number, and rounds it to its neighbour.
#[test]
fn every_id_is_text_in_the_document() {
    /// Text, or nothing.
    fn is_text(schema: &Value) -> bool {
        let is_kind = |kind: &&Value| **kind != "null";
        if let Some(kinds) = schema["type"].as_array() {
            return kinds.iter().filter(is_kind).eq([&Value::from("string")]);
        }
        if let Some(either) = schema["oneOf"].as_array() {
            return either
                .iter()
                .all(|one| one["type"] == "null" || is_text(one));
        }
        if let Some(target) = schema["$ref"].as_str() {
            let name = target.strip_prefix("#/components/schemas/").unwrap();
            return is_text(&openapi()["components"]["schemas"][name]);
        }
        schema["type"] == "string"
    }
    fn walk(value: &Value, seen: &mut BTreeSet<String>) {
        for (name, schema) in value["properties"].as_object().into_iter().flatten() {
            if name == "id" || name.ends_with("_id") {
                assert!(is_text(schema), "{name}: {schema}");
                seen.insert(name.clone());
            } else if name.ends_with("_ids") {
                assert!(is_text(&schema["items"]), "{name}: {schema}");
                seen.insert(name.clone());
            }
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
            Value::Object(members) => members.values().for_each(|member| walk(member, seen)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    walk(openapi(), &mut seen);
    for name in ["id", "order_id", "order_ids", "voucher_id", "user_id"] {
        assert!(seen.contains(name), "{name} of {seen:?}");
    }
}

#[tokio::test]
async fn every_problem_has_its_place_on_the_page() {
    let stand = Stand::new().await;
    let page = stand.get("/problems").answer().await.raw;
    let mut codes = BTreeSet::new();
    for (_, _, operation) in operations() {
        for response in operation["responses"].as_object().unwrap().values() {
            let examples = &response["content"]["application/problem+json"]["examples"];
            codes.extend(
                examples
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(code, _)| code),
            );
        }
    }
    assert!(codes.len() > 25, "{codes:?}");
    for code in codes {
        assert!(page.contains(&format!("id=\"{code}\"")), "{code}");
    }
}
