//! Decorators that stop at a checkpoint, lose an answer, or do without a guard.

mod admissions;
mod gate;
mod ledger;
mod loader;
mod stream;
mod unit_of_work;
mod updates;

pub use admissions::TamperedAdmissions;
pub use gate::TamperedGate;
pub use ledger::TamperedLedger;
pub use loader::TamperedLoader;
pub use stream::{AckOrder, BrokerStream};
pub use updates::KeptUpdates;
