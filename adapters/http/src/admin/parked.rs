//! Messages that could not be applied.

use axum::Json;
use axum::extract::{RawQuery, State};
use seckill_application::ports::{ParkReason, ParkedMessage, ParkedReply, ParkedState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::Validate;

use super::stock::{REASON, in_words};
use crate::context::Ctx;
use crate::extract::{self, Admin, MessageParam, MessagePath, PageOf};
use crate::openapi;
use crate::problem::Problem;
use crate::wire::{Cursor, Id, Instant, PageQuery, UserId, text};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(list_parked))
        .routes(routes!(replay_parked))
        .routes(routes!(discard_parked));
    let limit = Problem::field("limit", "1 to 100");
    openapi::answers(&mut routes, "listParkedMessages", &[limit]);
    let settled = [Problem::ParkedNotFound, Problem::ParkedSettled];
    openapi::answers(&mut routes, "replayParkedMessage", &settled);
    let unfit = Problem::ParkedUnfit(why(ParkReason::BadValues));
    openapi::answers(&mut routes, "replayParkedMessage", &[unfit]);
    openapi::answers(&mut routes, "discardParkedMessage", &settled);
    let reason = Problem::field("reason", REASON);
    openapi::answers(&mut routes, "discardParkedMessage", &[reason]);
    routes
}

/// A message that could not be applied.
#[derive(Serialize, ToSchema)]
#[schema(as = ParkedMessage)]
struct ParkedBody {
    id: Id,
    /// The partition whose stream it came from.
    #[schema(example = 0)]
    partition: u16,
    /// The entry it came in.
    #[schema(example = "1893456000000-0")]
    entry: String,
    /// Of which voucher; null if that could not be read.
    #[schema(required = true)]
    voucher_id: Option<Id>,
    /// The order that it is about; null if it is about none, or that could not be read.
    #[schema(required = true)]
    order_id: Option<Id>,
    /// For whom; null where `order_id` is.
    #[schema(required = true)]
    user_id: Option<UserId>,
    /// Units that it holds until it is settled.
    #[schema(example = 1)]
    units: u32,
    /// Why it was parked.
    reason: ReasonWord,
    /// Details, in words.
    detail: String,
    /// What it says.
    raw: String,
    state: StateWord,
    /// With `discarded`: why it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    discard_reason: Option<String>,
    parked_at: Instant,
}

/// Why a message was parked.
#[derive(Serialize, ToSchema)]
#[schema(as = ParkReason)]
#[serde(rename_all = "snake_case")]
enum ReasonWord {
    Unreadable,
    UnknownVoucher,
    BadValues,
}

/// Where a parked message is.
#[derive(Serialize, ToSchema)]
#[schema(as = ParkedState)]
#[serde(rename_all = "snake_case")]
enum StateWord {
    Parked,
    Replayed,
    Discarded,
}

/// A message that was settled.
#[derive(Serialize, ToSchema)]
struct SettledMessage {
    id: Id,
    state: StateWord,
}

/// A part of the parked messages, newest first.
#[derive(Serialize, ToSchema)]
struct ParkedList {
    items: Vec<ParkedBody>,
    /// The `cursor` of the next part; null at the end.
    #[schema(value_type = Option<String>, example = "a000000000000002a", required = true)]
    next_cursor: Option<Cursor>,
}

impl From<ParkedMessage> for ParkedBody {
    fn from(message: ParkedMessage) -> Self {
        let (state, discard_reason) = match message.state {
            ParkedState::Parked => (StateWord::Parked, None),
            ParkedState::Replayed => (StateWord::Replayed, None),
            ParkedState::Discarded(reason) => (StateWord::Discarded, Some(reason)),
        };
        let claim = message.claim.as_ref();
        Self {
            id: Id::numbered(message.id),
            partition: message.partition.get(),
            entry: message.entry.to_string(),
            voucher_id: message.voucher.map(Id::from),
            order_id: claim.map(|claim| claim.order.into()),
            user_id: claim.map(|claim| claim.buyer.into()),
            units: message.units,
            reason: match message.reason {
                ParkReason::Unreadable => ReasonWord::Unreadable,
                ParkReason::UnknownVoucher => ReasonWord::UnknownVoucher,
                ParkReason::BadValues => ReasonWord::BadValues,
            },
            detail: message.detail,
            raw: message.raw,
            state,
            discard_reason,
            parked_at: Instant(message.parked_at),
        }
    }
}

fn why(reason: ParkReason) -> &'static str {
    match reason {
        ParkReason::Unreadable => "it cannot be read",
        ParkReason::UnknownVoucher => "its voucher is not in the ledger, or a draft",
        ParkReason::BadValues => "stock, limit or the order as it is by now refuse it",
    }
}

/// Which messages.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes what wants_all reads")]
struct StateQuery {
    /// `parked` (the default): those that wait. `all`: those that were settled, too.
    #[param(required = false, nullable = false, pattern = "^(parked|all)$")]
    state: Option<String>,
}

fn wants_all(query: Option<&str>) -> Result<bool, Problem> {
    let pairs = query.unwrap_or_default().split('&');
    let mut said = pairs.filter_map(|pair| pair.strip_prefix("state="));
    match said.next() {
        None | Some("parked") => Ok(false),
        Some("all") => Ok(true),
        Some(_) => Err(Problem::field("state", "parked or all")),
    }
}

/// List messages that could not be applied.
///
/// Newest first. Each holds its units until it is settled.
#[utoipa::path(get, path = "/v1/admin/parked-messages", operation_id = "listParkedMessages",
    tag = "admin", params(StateQuery, PageQuery),
    responses((status = 200, description = "A part of the messages.", body = ParkedList)),
    security(("bearer" = [])))]
async fn list_parked(
    State(ctx): State<Ctx>,
    _: Admin,
    RawQuery(query): RawQuery,
    PageOf(page): PageOf,
) -> Result<Json<ParkedList>, Problem> {
    let waiting = !wants_all(query.as_deref())?;
    let before = page.cursor.map(|cursor| cursor.0);
    let found = ctx.api.parked.list(waiting, before, page.limit).await?;
    Ok(Json(ParkedList {
        items: found.items.into_iter().map(ParkedBody::from).collect(),
        next_cursor: found.next.map(Cursor),
    }))
}

/// Apply a message after all.
///
/// With the units that it holds; its order's payment window begins now. Repeatable.
#[utoipa::path(post, path = "/v1/admin/parked-messages/{message_id}/replay",
    operation_id = "replayParkedMessage", tag = "admin", params(MessageParam),
    responses((status = 200, description = "It is applied.", body = SettledMessage)),
    security(("bearer" = [])))]
async fn replay_parked(
    State(ctx): State<Ctx>,
    _: Admin,
    MessagePath(id): MessagePath,
) -> Result<Json<SettledMessage>, Problem> {
    let replaying = ctx.clone();
    let reply = ctx
        .finish(async move { replaying.api.parked.replay(id).await })
        .await?;
    settled(id, reply, StateWord::Replayed)
}

/// Why a message is given up.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = Discard)]
#[serde(deny_unknown_fields)]
struct DiscardBody {
    // The message keeps it.
    #[validate(custom(function = "in_words"))]
    #[schema(schema_with = text::reason)]
    reason: String,
}

/// Give a message up.
///
/// Its units return to the sale, and its order is rejected (`discarded`). Repeatable.
#[utoipa::path(post, path = "/v1/admin/parked-messages/{message_id}/discard",
    operation_id = "discardParkedMessage", tag = "admin", params(MessageParam),
    request_body = DiscardBody,
    responses((status = 200, description = "It is given up.", body = SettledMessage)),
    security(("bearer" = [])))]
async fn discard_parked(
    State(ctx): State<Ctx>,
    _: Admin,
    MessagePath(id): MessagePath,
    extract::Json(body): extract::Json<DiscardBody>,
) -> Result<Json<SettledMessage>, Problem> {
    let discarding = ctx.clone();
    let reply = ctx
        .finish(async move { discarding.api.parked.discard(id, &body.reason).await })
        .await?;
    settled(id, reply, StateWord::Discarded)
}

fn settled(id: u64, reply: ParkedReply, state: StateWord) -> Result<Json<SettledMessage>, Problem> {
    match reply {
        ParkedReply::Settled => Ok(Json(SettledMessage {
            id: Id::numbered(id),
            state,
        })),
        ParkedReply::NotFound => Err(Problem::ParkedNotFound),
        ParkedReply::Conflict => Err(Problem::ParkedSettled),
        ParkedReply::StillUnfit(reason) => Err(Problem::ParkedUnfit(why(reason))),
    }
}
