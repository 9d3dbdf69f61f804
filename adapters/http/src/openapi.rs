//! The description of the API: OpenAPI 3.1, from the same routes and types that serve it.
//!
//! Problems are described from the values themselves: each operation names the problems it answers
//! with, and status, code and example are taken from them.

use std::collections::BTreeMap;

use seckill_application::Effect;
use seckill_domain::{OrderId, SaleStatus, Timestamp};
use serde_json::json;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContactBuilder, ContentBuilder, Info, License, ObjectBuilder, OpenApi, OpenApiBuilder, Ref,
    RefOr, Required, Response, ResponseBuilder, Server, Type,
};
use utoipa::{PartialSchema as _, ToSchema as _, openapi};
use utoipa_axum::router::OpenApiRouter;

use crate::context::Ctx;
use crate::health::Readiness;
use crate::problem::{FieldError, PROBLEM_JSON, Problem, ProblemBody};
use crate::settings::Surface;

/// The document as JSON.
pub fn openapi_json() -> String {
    let (_, document) = crate::router::routes(Surface::Everything);
    document.to_pretty_json().unwrap_or_default()
}

const DESCRIPTION: &str = "Sells vouchers to a crowd without overselling. Ids are decimal strings; \
times are RFC 3339 (any offset is read, UTC with milliseconds is written); money is integer minor \
units with an ISO 4217 currency. Errors are `application/problem+json` (RFC 9457): go by `code`; \
`retryable` says whether the same request may succeed later, and `effect: unknown` that its \
outcome was lost and repeating it is the way to find out. All problems are listed at `/problems`.";

const TAGS: [(&str, &str); 6] = [
    ("vouchers", "What is on sale, and buying it."),
    (
        "orders",
        "A buyer's own orders, from the grant to payment or the end.",
    ),
    ("waitlist", "A buyer's place while a voucher is sold out."),
    (
        "admin",
        "Running sales. Needs a token with the role `admin`.",
    ),
    ("payments", "Notifications of the payment provider."),
    ("operations", "Health and metrics."),
];

/// What stands before the paths.
pub(crate) fn preamble() -> OpenApi {
    let mut info = Info::new("seckill", env!("CARGO_PKG_VERSION"));
    info.description = Some(DESCRIPTION.to_owned());
    let mut license = License::new("MIT OR Apache-2.0");
    license.identifier = Some("MIT OR Apache-2.0".to_owned());
    info.license = Some(license);
    info.contact = Some(
        ContactBuilder::new()
            .name(Some("the operators of this service"))
            .build(),
    );
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([Server::new("/")]))
        .build()
}

/// Says which problems an operation answers with, beside those that every operation may.
pub(crate) fn answers(routes: &mut OpenApiRouter<Ctx>, id: &str, problems: &[Problem]) {
    let document = routes.get_openapi_mut();
    for operation in operations(document) {
        if operation.operation_id.as_deref() == Some(id) {
            describe(operation, problems);
        }
    }
}

/// Says that an operation's body may be left out.
pub(crate) fn without_body(routes: &mut OpenApiRouter<Ctx>, id: &str) {
    for operation in operations(routes.get_openapi_mut()) {
        if operation.operation_id.as_deref() == Some(id)
            && let Some(RefOr::T(body)) = &mut operation.request_body
        {
            body.required = Some(Required::False);
        }
    }
}

/// Adds what holds for every operation, and sorts out what the macros leave open.
pub(crate) fn complete(document: &mut OpenApi) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    let mut nested = Vec::new();
    ProblemBody::schemas(&mut nested);
    schemas.extend(nested);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some(
            "A signed token: `sub` is the user's id in decimal digits, `exp` is required, `role` is \
             `buyer` (the default) or `admin`. `seckill token --user 42` makes one.",
        ))
        .build();
    if let Some(components) = &mut document.components {
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
    let used = tags_in_use(document);
    document.tags = Some(
        TAGS.iter()
            .filter(|(name, _)| used.iter().any(|tag| tag == name))
            .map(|(name, text)| {
                openapi::tag::TagBuilder::new()
                    .name(*name)
                    .description(Some(*text))
                    .build()
            })
            .collect(),
    );
    for operation in operations(document) {
        let common = common_problems(operation);
        describe(operation, &common);
        operation.security.get_or_insert_default();
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response {
                name_the_request(response);
            }
        }
    }
}

fn tags_in_use(document: &mut OpenApi) -> Vec<String> {
    operations(document)
        .flat_map(|operation| operation.tags.clone().unwrap_or_default())
        .collect()
}

fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        let PathItem {
            get,
            post,
            patch,
            delete,
            ..
        } = item;
        [get, post, patch, delete].into_iter().flatten()
    })
}

fn common_problems(operation: &Operation) -> Vec<Problem> {
    let mut problems = vec![
        Problem::Internal {
            effect: Effect::None,
        },
        Problem::Unavailable {
            effect: Effect::None,
            retryable: true,
            cause: None,
        },
        Problem::Overloaded,
        Problem::MalformedRequest,
    ];
    if operation
        .security
        .as_ref()
        .is_some_and(|needed| !needed.is_empty())
    {
        problems.push(Problem::Unauthenticated("the token has expired"));
    }
    let tags = operation.tags.as_deref().unwrap_or_default();
    if tags.iter().any(|tag| tag == "admin") {
        problems.push(Problem::Forbidden);
    }
    if tags.iter().all(|tag| tag != "operations") {
        problems.push(Problem::RateLimited { retry_after_s: 1 });
    }
    if operation.request_body.is_some() {
        let is_long = ["createVoucher", "amendVoucher"]
            .iter()
            .any(|id| operation.operation_id.as_deref() == Some(id));
        let bytes_max = if is_long { 32_768 } else { 4_096 };
        problems.extend([
            Problem::RequestTimeout,
            Problem::PayloadTooLarge { bytes_max },
            Problem::UnsupportedMediaType,
        ]);
    }
    problems
}

/// Adds problems to an operation's responses: one response per status, one example per code.
fn describe(operation: &mut Operation, problems: &[Problem]) {
    for problem in problems {
        let status = problem.status().as_u16().to_string();
        let response = operation
            .responses
            .responses
            .entry(status)
            .or_insert_with(|| RefOr::T(problem_response()));
        if let RefOr::T(response) = response {
            add_problem(response, problem);
        }
    }
}

fn problem_response() -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name(ProblemBody::name()));
    ResponseBuilder::new()
        .content(
            PROBLEM_JSON,
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}

fn add_problem(response: &mut Response, problem: &Problem) {
    if !response.description.is_empty() {
        response.description.push('\n');
    }
    let line = format!("- `{}`: {}.", problem.code(), problem.title());
    response.description.push_str(&line);
    if problem.retry_after_s().is_some() {
        let header = whole_number_header("After how many seconds to try again.");
        response
            .headers
            .insert("Retry-After".to_owned(), RefOr::T(header));
    }
    if matches!(problem, Problem::Unauthenticated(_)) {
        let header = text_header("How to authenticate.", "Bearer");
        response
            .headers
            .insert("WWW-Authenticate".to_owned(), RefOr::T(header));
    }
    if let Some(RefOr::T(content)) = response.content.get_mut(PROBLEM_JSON) {
        let body = problem.body("/v1/example", "5d1c09f2-1b");
        let example = ExampleBuilder::new()
            .summary(problem.title())
            .value(serde_json::to_value(&body).ok())
            .build();
        content
            .examples
            .insert(problem.code().to_owned(), RefOr::T(example));
    }
}

fn name_the_request(response: &mut Response) {
    let header = text_header("The request's id, for the logs.", "5d1c09f2-1b");
    response
        .headers
        .insert("X-Request-Id".to_owned(), RefOr::T(header));
}

fn text_header(description: &str, example: &str) -> openapi::Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(description))
        .example(Some(json!(example)))
        .build()
}

fn whole_number_header(description: &str) -> openapi::Header {
    HeaderBuilder::new()
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(1)),
        ))
        .description(Some(description))
        .example(Some(json!(1)))
        .build()
}

/// One of each kind, for the page and the tests.
pub(crate) fn every_problem() -> Vec<Problem> {
    vec![
        Problem::Unauthenticated("the token has expired"),
        Problem::Forbidden,
        Problem::RouteNotFound,
        Problem::MethodNotAllowed,
        Problem::RequestTimeout,
        Problem::PayloadTooLarge { bytes_max: 4_096 },
        Problem::UnsupportedMediaType,
        Problem::MalformedRequest,
        Problem::UriTooLong,
        Problem::HeadTooLarge,
        Problem::ValidationFailed(vec![FieldError::invalid("quantity", "1 to 1000000")]),
        Problem::RateLimited { retry_after_s: 1 },
        Problem::Overloaded,
        Problem::Unavailable {
            effect: Effect::Unknown,
            retryable: true,
            cause: None,
        },
        Problem::Internal {
            effect: Effect::None,
        },
        Problem::NotReady(Box::new(Readiness::example())),
        Problem::VoucherNotFound,
        Problem::SoldOut,
        not_open(),
        Problem::Paused,
        Problem::Closed,
        Problem::LimitExceeded { remaining: 1 },
        Problem::IdempotencyKeyReused,
        Problem::OrderNotFound,
        Problem::OrderQueued,
        Problem::OrderWaiting,
        Problem::OrderExpired,
        Problem::OrderCancelled,
        Problem::OrderPaid,
        Problem::OrderNotPaid,
        Problem::OrderRejected,
        Problem::OrderRefunded,
        Problem::NotWaiting,
        already_promoted(),
        Problem::WrongStatus(SaleStatus::Closed),
        Problem::FrozenAfterPublish(vec!["price_minor"]),
        Problem::NotEnoughFree,
        payment_declined(),
        Problem::PaymentUsed,
        bad_signature(),
        Problem::ReconciliationRunning,
        Problem::ParkedNotFound,
        Problem::ParkedSettled,
        Problem::ParkedUnfit("its values do not make sense"),
    ]
}

/// Example values, where a problem carries some.
pub(crate) fn not_open() -> Problem {
    Problem::NotOpen {
        opens_at: Timestamp::from_millis(1_893_456_000_000),
        retry_after_s: 30,
    }
}

pub(crate) fn bad_signature() -> Problem {
    Problem::BadSignature("the signature does not fit the timestamp and the body")
}

pub(crate) fn payment_declined() -> Problem {
    Problem::PaymentDeclined("no payment of this id is known".to_owned())
}

pub(crate) fn already_promoted() -> Problem {
    Problem::AlreadyPromoted {
        order: OrderId::new(609_848_294_759_202_817),
    }
}

/// The page that the `type` of every problem points to.
pub(crate) fn problem_page() -> String {
    let mut rows = BTreeMap::new();
    for problem in every_problem() {
        let row = format!(
            "<tr id=\"{code}\"><td><code>{code}</code><td>{status}<td>{title}<td>{retryable}",
            code = problem.code(),
            status = problem.status().as_u16(),
            title = problem.title(),
            retryable = if problem.retryable() { "yes" } else { "no" },
        );
        rows.insert((problem.status().as_u16(), problem.code()), row);
    }
    let rows: Vec<String> = rows.into_values().collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Problems</title>\
         <style>body{{font-family:sans-serif;margin:2rem}}td,th{{padding:.3rem 1rem .3rem 0;\
         text-align:left}}:target{{background:#ffd}}</style><h1>Problems</h1><table>\
         <tr><th>code<th>status<th>meaning<th>retryable{}</table></html>",
        rows.join("")
    )
}
