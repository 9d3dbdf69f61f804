//! The experiments. Each makes one pair of runs, and notes what came of it for the goals it serves;
//! a run that was not conserved, or broke, is an error and leaves no number.

mod admission;
mod drain;
mod latency;
mod life;
mod memory;
mod recovery;
mod references;
mod rejection;

use crate::book::Book;
use crate::lab::Lab;

/// One kind of experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    /// 64 connections, and the raw reference.
    Admission,
    /// 256 connections, and the raw reference.
    AdmissionWide,
    /// Two levels of durability.
    Durability,
    /// The script with many attempts a call and with one.
    Batching,
    /// A backlog, and a one-by-one consumer.
    Drain,
    /// Admission and drain at the same time, and a backlog of 100,000.
    Together,
    /// Latency at half of capacity.
    HalfLoad,
    /// Twice as much as can be served.
    Overload,
    /// After the last unit.
    SoldOut,
    /// Bytes per order, waiting buyer and request.
    Memory,
    /// From the gate to the ledger.
    Confirmation,
    /// 100,000 orders that expire together; promotions.
    Expiry,
    /// A killed worker, and a restarted Redis.
    Recovery,
    /// What verification and logging cost.
    Overhead,
    /// The published design.
    Published,
    /// 2,000 requests a second.
    Steady,
}

impl Experiment {
    /// All, in the order of the goals.
    pub const ALL: [Self; 16] = [
        Self::Admission,
        Self::AdmissionWide,
        Self::Durability,
        Self::Batching,
        Self::Drain,
        Self::Together,
        Self::HalfLoad,
        Self::Overload,
        Self::SoldOut,
        Self::Memory,
        Self::Confirmation,
        Self::Expiry,
        Self::Recovery,
        Self::Overhead,
        Self::Published,
        Self::Steady,
    ];

    /// The goals that it serves.
    pub fn goals(self) -> &'static [&'static str] {
        match self {
            Self::Admission => &["G1", "G3", "G4"],
            Self::AdmissionWide => &["G2"],
            Self::Durability => &["G5"],
            Self::Batching => &["G6"],
            Self::Drain => &["G7"],
            Self::Together => &["G8"],
            Self::HalfLoad => &["G9"],
            Self::Overload => &["G10"],
            Self::SoldOut => &["G11"],
            Self::Memory => &["G12"],
            Self::Confirmation => &["G14"],
            Self::Expiry => &["G15"],
            Self::Recovery => &["G16"],
            Self::Overhead => &["G17"],
            Self::Published => &["G18"],
            Self::Steady => &["G19"],
        }
    }

    /// Makes one pair of runs.
    pub async fn pair(self, lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
        match self {
            Self::Admission => admission::narrow(lab, book).await,
            Self::AdmissionWide => admission::wide(lab, book).await,
            Self::Durability => admission::durability(lab, book).await,
            Self::Batching => references::batching(lab, book).await,
            Self::Drain => drain::backlog(lab, book).await,
            Self::Together => drain::together(lab, book).await,
            Self::HalfLoad => latency::half_load(lab, book).await,
            Self::Overload => latency::overload(lab, book).await,
            Self::SoldOut => rejection::sold_out(lab, book).await,
            Self::Memory => memory::per_order(lab, book).await,
            Self::Confirmation => latency::confirmation(lab, book).await,
            Self::Expiry => life::expiry(lab, book).await,
            Self::Recovery => recovery::restarts(lab, book).await,
            Self::Overhead => admission::overhead(lab, book).await,
            Self::Published => references::whole(lab, book).await,
            Self::Steady => latency::steady(lab, book).await,
        }
    }
}
