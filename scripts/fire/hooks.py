"""What a document cannot say: how the payment provider signs its notifications, and what may be
wrong with a request that fits."""

import hashlib
import hmac
import os
import time

import requests
import schemathesis

SECRET = os.environ["SECKILL_PAYMENTS_SECRET"].encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    # What leaves a header out, or has one that does not fit, is to be refused.
    if case.path != "/v1/payments/notifications" or "Payment-Signature" not in headers:
        return
    if not headers.get("Payment-Timestamp", "").isdigit():
        return
    sent = case.as_transport_kwargs(base_url="http://localhost")
    body = requests.Request(**sent).prepare().body or b""
    body = body.encode() if isinstance(body, str) else body
    now = str(int(time.time()))
    signed = hmac.new(SECRET, now.encode() + b"." + body, hashlib.sha256)
    case.headers["Payment-Timestamp"] = now
    case.headers["Payment-Signature"] = signed.hexdigest()


# Of a request that fits the document: the fields, or else the code, that it may be refused for
# with 422.
MAY_NOT_FIT = {
    # A key stands for one quantity.
    "POST /v1/vouchers/{voucher_id}/purchases": {"idempotency_key_reused"},
    # Fields fit or do not fit together: a sale ends after it opens, and not in the past.
    "POST /v1/admin/vouchers": {"opens_at", "closes_at"},
    "PATCH /v1/admin/vouchers/{voucher_id}": {"opens_at", "closes_at"},
    # A draft may have been written for a time that is over by now.
    "POST /v1/admin/vouchers/{voucher_id}/publish": {"closes_at"},
    # A range with a hole, since 0 is no change: generators of clients cannot say "not". And a key
    # stands for one change.
    "POST /v1/admin/vouchers/{voucher_id}/stock-adjustments": {"delta", "idempotency_key_reused"},
    # Twenty digits may say more than 64 bits do.
    "POST /v1/payments/notifications": {"order_id"},
}


@schemathesis.check
def refused_for_what_a_document_cannot_say(context, response, case):
    if response.status_code != 422 or case.meta is None:
        return
    if not case.meta.generation.mode.is_positive:
        return
    problem = response.json()
    reasons = {it["field"] for it in problem.get("errors", [])} or {problem["code"]}
    surprising = reasons - MAY_NOT_FIT.get(case.operation.label, set())
    assert not surprising, f"it fits, and is refused for {sorted(surprising)}: {problem}"
