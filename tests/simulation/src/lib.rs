//! The whole service on one thread, several processes and their misfortunes included: chance and
//! time come from a seed, so that whatever is found can be found again.

pub mod batch;
pub mod bug;
pub mod buyers;
pub mod coverage;
pub mod dice;
pub mod executor;
mod faulty;
pub mod judge;
pub mod link;
mod loops;
pub mod losses;
pub mod misfortune;
pub mod node;
pub mod promises;
pub mod sales;
pub mod sim;
pub mod site;
pub mod stores;
pub mod trace;
pub mod watch;
