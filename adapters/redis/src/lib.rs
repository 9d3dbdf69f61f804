//! The hot path in Redis: admission control, its loading, the admission streams, leases, order ids,
//! the delay queue and notices, over the scripts in `lua/`.
//!
//! Architecture invariant: every change of the hot data is one script, which decides first and
//! writes afterwards, and whose first write, the only one that can fail, is the stream entry. There
//! is no MULTI, no check in one call and set in the next, and no key that is built in a script.
//!
//! Architecture invariant: nothing here spawns a loop. What has to be kept alive is kept by the
//! caller ([`RedisHotPath::keep`]).

mod admission_stream;
mod config;
mod connection;
mod delay_queue;
mod fault;
mod followers;
#[doc(hidden)]
pub mod fuzzing;
mod gate_answers;
mod gate_loader;
mod gate_name;
mod holdings;
mod hot_path;
mod keys;
mod leases;
mod notices;
mod order_ids;
mod purchase_gate;
mod reply;
mod script_edits;
mod scripts;
mod server;
mod store;
mod subscription;
mod survivors;
pub mod wire;

pub use config::{OrderIdScheme, RedisConfig};
pub use hot_path::RedisHotPath;
pub use script_edits::ScriptEdit;
pub use server::{AppendFsync, Server};
