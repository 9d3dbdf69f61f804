//! Which part of a list.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::context::Ctx;
use crate::problem::Problem;
use crate::wire::PageQuery;

/// `limit` and `cursor` of a query.
pub(crate) struct PageOf(pub(crate) PageQuery);

impl FromRequestParts<Ctx> for PageOf {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _ctx: &Ctx) -> Result<Self, Problem> {
        PageQuery::parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}
