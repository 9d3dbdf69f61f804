//! The in-memory profile starts with something to try.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use seckill_application::ports::NewVoucher;
use seckill_application::{SteerCommand, SteerReply};
use seckill_domain::{Currency, Money, SaleWindow, VoucherId, VoucherTerms};

use crate::cli::token::{TokenRole, issue};
use crate::config::Auth;
use crate::wiring::System;

const UNITS: u32 = 100;
const WAITLIST: u32 = 1_000;
const BUYER: u64 = 42;
const ADMIN: u64 = 1;
const DAY: Duration = Duration::from_hours(24);

/// A voucher that is on sale, and tokens to buy it with.
#[derive(Debug)]
pub(crate) struct Demonstration {
    voucher: VoucherId,
    /// A buyer's and an administrator's, where this side can issue tokens.
    tokens: Option<(String, String)>,
    built_in_secret: bool,
}

/// Puts the demonstration voucher on sale.
pub(crate) async fn put_on_sale(system: &System, auth: &Auth) -> anyhow::Result<Demonstration> {
    let now = system.clock.now();
    let currency: Currency = "CNY".parse().context("the currency")?;
    let money = |minor| Money { minor, currency };
    let new = NewVoucher {
        terms: VoucherTerms {
            title: "100 CNY off, for 80".to_owned(),
            description: Some("The demonstration voucher of the in-memory profile.".to_owned()),
            face_value: money(10_000),
            price: money(8_000),
            per_buyer_limit: 1,
            window: SaleWindow {
                opens_at: now,
                closes_at: now.plus(7 * DAY),
            },
            payment_window: Duration::from_mins(15),
            waitlist_capacity: WAITLIST,
        },
        total_units: UNITS,
    };
    let drafted = system.draft.run(&new).await;
    let voucher = drafted.map_err(|fault| anyhow::anyhow!(fault.chain()))??;
    let published = system.steer.run(voucher.id, SteerCommand::Publish).await;
    match published.map_err(|fault| anyhow::anyhow!(fault.chain()))? {
        SteerReply::Done(_) => {}
        other => bail!("the demonstration voucher was not published: {other:?}"),
    }
    let tokens = auth.secret().map(|secret| {
        Ok::<_, anyhow::Error>((
            issue(secret, BUYER, TokenRole::Buyer, now, DAY)?,
            issue(secret, ADMIN, TokenRole::Admin, now, DAY)?,
        ))
    });
    Ok(Demonstration {
        voucher: voucher.id,
        tokens: tokens.transpose()?,
        built_in_secret: auth.is_demonstration(),
    })
}

impl Demonstration {
    /// What to try, for people.
    pub(crate) fn invitation(&self, address: SocketAddr) -> String {
        let voucher = self.voucher;
        let mut text = format!(
            "\nEverything is in memory and gone when this ends. On sale: voucher {voucher}, \
             {UNITS} units.\n\n  Swagger UI   http://{address}/swagger-ui\n"
        );
        if let Some((buyer, admin)) = &self.tokens {
            let _ = write!(
                text,
                "  buyer {BUYER}     {buyer}\n  admin        {admin}\n\n  \
                 curl -s -X POST http://{address}/v1/vouchers/{voucher}/purchases \\\n    \
                 -H 'Authorization: Bearer {buyer}'\n"
            );
        }
        if self.built_in_secret {
            text.push_str(
                "\nThe secret of these tokens is built in and known to everybody; \
                 SECKILL_AUTH_SECRET sets another.\n",
            );
        }
        text
    }
}
