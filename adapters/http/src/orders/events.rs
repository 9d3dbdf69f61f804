//! Following an order.

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response, Sse};
use seckill_domain::EventId;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::story::Story;
use crate::context::Ctx;
use crate::extract::{Buyer, OrderParam, OrderPath};
use crate::openapi;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(follow_order));
    let problems = [
        Problem::OrderNotFound,
        Problem::field("Last-Event-ID", EVENT_ID),
    ];
    openapi::answers(&mut routes, "followOrder", &problems);
    routes
}

/// The last event that a client has seen, if it says so.
struct LastSeen(Option<EventId>);

/// How the header is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes LastSeen, which is read without it")]
struct LastSeenHeader {
    /// The `id` of the last event that you have seen: what happened since then comes first. `0` for
    /// everything that is still known.
    #[param(
        rename = "Last-Event-ID",
        example = "17",
        pattern = "^(0|[1-9][0-9]{0,19})?$",
        required = false,
        nullable = false
    )]
    last_event_id: Option<String>,
}

const EVENT_ID: &str = "the id of an event of this order, or 0";

impl FromRequestParts<Ctx> for LastSeen {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _ctx: &Ctx) -> Result<Self, Problem> {
        read(&parts.headers)
            .map(Self)
            .map_err(|Misfit| Problem::field("Last-Event-ID", EVENT_ID))
    }
}

/// A header that does not fit.
#[derive(Debug, PartialEq, Eq)]
struct Misfit;

/// An empty one is none: browsers that have seen nothing may send it.
fn read(headers: &HeaderMap) -> Result<Option<EventId>, Misfit> {
    let mut values = headers.get_all("last-event-id").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Misfit);
    }
    let text = value.to_str().map_err(|_| Misfit)?;
    if text.is_empty() {
        return Ok(None);
    }
    let canonical = text.len() <= DIGITS_MAX
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    if !canonical {
        return Err(Misfit);
    }
    // As many digits say more than 64 bits do; no event is so late.
    Ok(Some(EventId::new(text.parse().unwrap_or(u64::MAX))))
}

/// As the header's pattern has it.
const DIGITS_MAX: usize = 20;

/// Follow an order of yours.
///
/// A stream of server-sent events. It begins with `snapshot`, the order as it is; with a
/// `Last-Event-ID` it begins with what happened since then instead. Then come, as they happen,
/// `status` (a new status), `promoted` (the waitlist gave you units: `pending_payment`) and
/// `refund_recorded` (money for the order goes back). Each `id` is the event's number; browsers send
/// the last one when they reconnect, so that what happened meanwhile arrives once. What the
/// snapshot shows already is not told again. A number beyond the order's newest event was seen by
/// nobody, and is answered with a `snapshot`. A comment every few seconds says that the stream is
/// still there. It ends after some minutes, and when the service stops: come again.
#[utoipa::path(get, path = "/v1/orders/{order_id}/events", operation_id = "followOrder", tag = "orders",
    params(OrderParam, LastSeenHeader),
    responses((status = 200, description = "Events, for as long as both sides stay.", body = String,
        content_type = "text/event-stream",
        example = "id: 17\nevent: status\ndata: {\"event_id\":\"17\",\"order_id\":\"609848294759202817\",\"voucher_id\":\"1\",\"status\":\"paid\",\"at\":\"2030-01-01T00:00:00.000Z\"}\n\n")),
    security(("bearer" = [])))]
async fn follow_order(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    OrderPath(order): OrderPath,
    LastSeen(seen): LastSeen,
) -> Result<Response, Problem> {
    let place = ctx.streams.open(caller.id)?;
    let begun = Story::begin(ctx, place, order, caller.id, seen).await?;
    let story = begun.ok_or(Problem::OrderNotFound)?;
    let mut response = Sse::new(story.events()).into_response();
    // Proxies that gather answers would keep the events.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    response
        .headers_mut()
        .insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_a_number_in_its_canonical_form() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_str(text).unwrap());
            read(&headers)
        };
        assert_eq!(read(&HeaderMap::new()), Ok(None));
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("0"), Ok(Some(EventId::new(0))));
        assert_eq!(of("17"), Ok(Some(EventId::new(17))));
        let late = Ok(Some(EventId::new(u64::MAX)));
        assert_eq!(of("18446744073709551616"), late);
        assert_eq!(of("99999999999999999999"), late);
        for bad in ["017", "+1", "-1", "x", "1 ", "100000000000000000000"] {
            assert_eq!(of(bad), Err(Misfit), "{bad}");
        }
    }
}
