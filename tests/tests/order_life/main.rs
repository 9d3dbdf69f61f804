//! The life of an order after the grant, as the use cases live it: over the in-memory adapters,
//! whose clock moves only when everybody waits.

mod backlog;
mod behind;
mod cut_off;
mod drive;
mod expiry;
mod failover;
mod holders;
mod meanwhile;
mod money;
mod offer;
mod parked;
mod payments;
mod places;
mod reconcile;
mod refused;
mod remembered;
mod retire;
mod slow;
mod telling;
mod turn;
mod under_load;
mod unmended;
mod waitlist;
mod world;
mod writers;
