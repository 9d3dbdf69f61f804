//! The service as its clients see it: real processes, over HTTP.
//!
//! A test asks for a [`Site`]: the stores that a deployment of the service runs on, in memory or
//! real ones from [`stack`](crate::stack). A site starts [`Process`]es, which a test may kill, and a
//! [`Shop`] is a client of one of them. What buyers asked and were told goes into a [`History`], and
//! [`audit`] judges it, with what the service and its stores say afterwards, by the invariants'
//! names.

mod answer;
mod buyers;
mod call;
mod checker;
mod errand;
mod exercised;
mod facts;
mod follower;
mod gate;
mod harm;
mod history;
mod ledger;
mod load;
mod offer;
mod pace;
mod process;
mod provider;
mod proxy;
mod records;
mod shop;
mod site;
mod stamp;
mod token;
mod wait;

pub use answer::{Balance, Purchase, Reply};
pub use buyers::{buyer, buyers, crowd};
pub use call::{Call, Lost};
pub use checker::{Rule, Verdict, Violation, audit, judge, settle};
pub use errand::Demand;
pub use exercised::Exercised;
pub use facts::{Facts, HeldFacts, OrderFacts, Untold, VoucherFacts};
pub use follower::{Follower, News};
pub use gate::{Gate, Group};
pub use history::{Asked, Event, History, Told};
pub use ledger::{HeldVoucher, HeldWriters, Ledger};
pub use load::Load;
pub use offer::{Offer, in_ms};
pub use pace::Pace;
pub use process::{Process, Ran};
pub use provider::{Notice, PAYMENTS_SECRET};
pub use proxy::{Fate, Proxy, Trap, Weather};
pub use records::{GateFacts, MoneyFacts, RowFacts};
pub use shop::{Shop, payment_id};
pub use site::Site;
pub use token::{Token, token};
pub use wait::{eventually, sleep_until};
