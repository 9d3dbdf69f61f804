//! Answers against the OpenAPI document.

use std::sync::LazyLock;

use axum::http::Method;
use serde_json::Value;

use super::Answer;

/// The document.
static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&seckill_http::openapi_json()).unwrap());

/// The document, parsed.
pub(crate) fn openapi() -> &'static Value {
    &DOCUMENT
}

/// An answer to an operation of the document must be one that it names, down to the problem's code
/// and the fields of the body.
pub(super) fn check(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    let status = answer.status.to_string();
    let response = &operation["responses"][&status];
    assert!(
        response.is_object(),
        "{method} {path}: {status} is not in the document"
    );
    let content = &response["content"];
    if answer.status >= 400 {
        let examples = &content["application/problem+json"]["examples"];
        let code = answer.code();
        assert!(
            examples[code].is_object(),
            "{method} {path}: {status} {code} is not in the document"
        );
    }
    if answer.body.is_object() {
        let kind = answer.header("content-type");
        fits(&content[kind]["schema"], &answer.body, kind);
    }
}

fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let (_, item) = paths.iter().find(|(template, _)| matches(template, path))?;
    item.get(method.as_str().to_ascii_lowercase())
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(path).all(|(part, given)| {
            if part.starts_with('{') {
                !given.is_empty()
            } else {
                *part == given
            }
        })
}

/// Whether a value has the shape of a schema; only what this API uses of JSON Schema.
#[track_caller]
fn fits(schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/components/schemas/");
        let target = &DOCUMENT["components"]["schemas"][name];
        assert!(target.is_object(), "{place}: no schema {name}");
        return fits(target, value, place);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let choice = choices
            .iter()
            .find(|choice| (choice["type"] == "null") == value.is_null());
        return fits(
            choice.unwrap_or_else(|| panic!("{place}: {value}")),
            value,
            place,
        );
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|known| known == kind),
        known => known == kind,
    };
    assert!(allowed, "{place}: {value} is not {schema}");
    if let (Some(words), Some(word)) = (schema["enum"].as_array(), value.as_str()) {
        assert!(
            words.iter().any(|known| known == word),
            "{place}: {word} is not in {schema}"
        );
    }
    for item in value.as_array().into_iter().flatten() {
        fits(&schema["items"], item, place);
    }
    if let Some(object) = value.as_object() {
        for (name, member) in object {
            let place = format!("{place}/{name}");
            assert!(
                schema["properties"][name].is_object(),
                "{place} is not in the document"
            );
            fits(&schema["properties"][name], member, &place);
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                object.contains_key(name.as_str().unwrap()),
                "{place}: no {name} in {value}"
            );
        }
    }
}
