"""Buys, reads and pays with the client that was generated from the document.

    buyer.py BASE ADMIN_TOKEN BUYER_TOKEN
"""

import importlib
import pkgutil
import sys
import time
from datetime import datetime, timezone

import client as generated
from client import AuthenticatedClient
from client.api.admin import (
    close_voucher,
    create_voucher,
    get_balance,
    pause_voucher,
    publish_voucher,
    resume_voucher,
)
from client.api.orders import cancel_order, get_order, list_orders, pay_order
from client.api.vouchers import get_voucher, purchase_voucher
from client.api.waitlist import get_waitlist_place, leave_waitlist
from client.models import (
    NewVoucher,
    OrderStatus,
    Outcome,
    Payment,
    Problem,
    Purchase,
    VoucherStatus,
)


def main(base: str, admin_token: str, buyer_token: str) -> None:
    for module in pkgutil.walk_packages(generated.__path__, "client."):
        importlib.import_module(module.name)
    admin = AuthenticatedClient(base, admin_token, raise_on_unexpected_status=True)
    buyer = AuthenticatedClient(base, buyer_token, raise_on_unexpected_status=True)

    voucher = on_sale(admin, units=2)
    assert get_voucher.sync(voucher, client=buyer).available_units == 2

    buy = lambda key, voucher=voucher: purchase_voucher.sync(
        voucher, client=buyer, body=Purchase(quantity=1), idempotency_key=key
    )
    granted = buy("first")
    assert granted.outcome == Outcome.GRANTED, granted
    assert buy("first").order_id == granted.order_id
    order = settled(buyer, granted.order_id)
    assert (order.amount_minor, order.voucher_id) == (8_000, voucher), order
    pay = lambda payment: pay_order.sync(
        order.id, client=buyer, body=Payment(payment_id=payment)
    )
    assert pay(f"pay-{order.id}").status == OrderStatus.PAID
    again = pay(f"again-{order.id}")
    assert isinstance(again, Problem) and again.code == "order_paid", again

    second = settled(buyer, buy("second").order_id)
    assert cancel_order.sync(second.id, client=buyer).status == OrderStatus.CANCELLED
    mine = {item.id: item.status for item in list_orders.sync(client=buyer).items}
    assert mine[order.id] == OrderStatus.PAID, mine
    balance = get_balance.sync(voucher, client=admin)
    assert (balance.free, balance.paid, balance.holds) == (1, 1, True), balance

    scarce = on_sale(admin, units=1)
    assert buy("only", scarce).outcome == Outcome.GRANTED
    waits = buy("next", scarce)
    assert (waits.outcome, waits.position) == (Outcome.WAITLISTED, 1), waits
    assert get_waitlist_place.sync(scarce, client=buyer).position == 1
    assert leave_waitlist.sync_detailed(scarce, client=buyer).status_code == 204
    again = get_waitlist_place.sync(scarce, client=buyer)
    assert isinstance(again, Problem) and again.code == "not_waiting", again

    # By chance alone a sale is not paused in every run.
    assert pause_voucher.sync(scarce, client=admin).status == VoucherStatus.PAUSED
    assert resume_voucher.sync(scarce, client=admin).status == VoucherStatus.PUBLISHED
    assert close_voucher.sync(scarce, client=admin).status == VoucherStatus.CLOSED


def on_sale(admin, units):
    """A voucher of so many units and a short waitlist, of which a buyer may have two."""
    draft = create_voucher.sync(
        client=admin,
        body=NewVoucher(
            title="Under fire",
            face_value_minor=10_000,
            price_minor=8_000,
            currency="CNY",
            total_units=units,
            per_buyer_limit=2,
            waitlist_capacity=3,
            opens_at=datetime(2020, 1, 1, tzinfo=timezone.utc),
            closes_at=datetime(2100, 1, 1, tzinfo=timezone.utc),
        ),
    )
    published = publish_voucher.sync(draft.id, client=admin)
    assert published.status == VoucherStatus.PUBLISHED, published
    return draft.id


def settled(buyer, order_id):
    """The order, once it can be paid."""
    for _ in range(100):
        order = get_order.sync(order_id, client=buyer)
        if order.status == OrderStatus.PENDING_PAYMENT:
            return order
        time.sleep(0.05)
    raise AssertionError(f"it stays {order.status}")


main(*sys.argv[1:])
