//! What breaks in the life of an order, and who mends it.
//!
//! `crash` stops a process between any two of its steps, over the ports, in memory and on servers.
//! The others start whole services on real servers and do harm to the stores from outside.

mod crash;
