//! What an error of the driver means for the caller: whether anything can have changed.

use redis::RedisError;
use seckill_application::Fault;

/// Replies by which Redis refuses a command before it does any of it. A script that met one of them
/// at a write met it at its first: Redis judges memory, disk and role only until a script has
/// written something.
const REFUSED: [&str; 14] = [
    "READONLY",
    "LOADING",
    "MISCONF",
    "OOM",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "NOREPLICAS",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "BUSY",
    "NOSCRIPT",
    "UNBLOCKED",
    "DENIED",
];

/// Replies that stay the same however often one asks, and by which nothing was done.
const HOPELESS: [&str; 6] = [
    "NOAUTH",
    "NOPERM",
    "WRONGPASS",
    "CROSSSLOT",
    "WRONGTYPE",
    "NOPROTO",
];

/// What Redis says of a stream that has had an entry with the largest possible id.
const EXHAUSTED: &str = "exhausted the last possible ID";

/// A command that was sent, or may have been, and failed.
pub(crate) fn of_command(port: &'static str, error: RedisError) -> Fault {
    match error.code() {
        Some(code) if REFUSED.contains(&code) => Fault::unavailable(port, error),
        Some(code) if HOPELESS.contains(&code) => Fault::broken(port, error),
        // XADD is the first write of a script; this is how it refuses. A new epoch helps.
        _ if error.to_string().contains(EXHAUSTED) => Fault::unavailable(port, error),
        // A timeout, a broken connection, or a script that Redis stopped: it may have acted.
        _ => Fault::unknown(port, error),
    }
}

/// What Redis says to a database that it does not have.
const NO_DATABASE: &str = "DB index is out of range";

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("no connection to Redis: {why}")]
struct NoConnection {
    why: &'static str,
    source: RedisError,
}

/// A connection that could not be made: nothing was sent.
pub(crate) fn of_connecting(port: &'static str, error: RedisError) -> Fault {
    let (why, hopeless) = why_no_connection(&error);
    let source = NoConnection { why, source: error };
    if hopeless {
        Fault::broken(port, source)
    } else {
        Fault::unavailable(port, source)
    }
}

/// Why a connection could not be made, and whether trying again is no use.
fn why_no_connection(error: &RedisError) -> (&'static str, bool) {
    match error.code() {
        Some("NOAUTH") => return ("it asks for a password", true),
        Some("WRONGPASS") => return ("it refuses the name or the password", true),
        Some("NOPERM") => return ("it does not permit this user what is needed", true),
        Some("NOPROTO") => return ("it is too old to speak RESP3", true),
        Some("LOADING") => return ("it is still loading its data", false),
        Some(code) if HOPELESS.contains(&code) => return ("it refuses", true),
        _ => {}
    }
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        return ("it refuses the name or the password", true);
    }
    if error.to_string().contains(NO_DATABASE) {
        return ("it has no database of this number", true);
    }
    if error.is_timeout() {
        return ("nobody answered in time", false);
    }
    if error.is_connection_refusal() {
        return ("nobody listens there", false);
    }
    if error.is_connection_dropped() || error.is_unrecoverable_error() {
        let why = "it hung up, as a server does that is stopping, has too many clients, or wants \
                   TLS, which is not built in";
        return (why, false);
    }
    ("it cannot be reached", false)
}

/// Whether the connection should not be used again after this error. After a timeout its answers
/// may be late for ever, or belong to somebody else's question; a read-only server is the wrong
/// one.
pub(crate) fn spoils_connection(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error() || error.code() == Some("READONLY")
}

/// Refuses a batch that is larger than the port allows.
pub(crate) fn at_most(port: &'static str, count: usize, max: usize) -> Result<(), Fault> {
    if count > max {
        let refusal = format!("{count} are more than the {max} of one call");
        return Err(Fault::broken(port, refusal));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::make_extension_error;
    use seckill_application::Effect;
    use std::io;

    #[test]
    fn only_a_lost_answer_leaves_the_effect_unknown() {
        let code = |code: &str| of_command("t", make_extension_error(code.to_owned(), None));
        for refused in ["OOM", "MISCONF", "READONLY", "LOADING", "CLUSTERDOWN"] {
            let fault = code(refused);
            assert_eq!((fault.effect(), fault.is_retryable()), (Effect::None, true));
        }
        assert!(!code("NOAUTH").is_retryable());
        for lost in [io::ErrorKind::TimedOut, io::ErrorKind::BrokenPipe] {
            let fault = of_command("t", io::Error::from(lost).into());
            assert_eq!(
                (fault.effect(), fault.is_retryable()),
                (Effect::Unknown, true)
            );
        }
    }

    #[test]
    fn whoever_cannot_connect_is_told_why() {
        let chain = |error: RedisError| {
            let fault = of_connecting("t", error);
            assert_eq!(fault.effect(), Effect::None);
            (fault.chain(), fault.is_retryable())
        };
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let (said, retryable) = chain(refused.into());
        assert!(said.contains("nobody listens there"), "{said}");
        assert!(retryable);
        let (said, retryable) = chain(make_extension_error("WRONGPASS".to_owned(), None));
        assert!(said.contains("the name or the password"), "{said}");
        assert!(!retryable);
        let (said, _) = chain(io::Error::from(io::ErrorKind::TimedOut).into());
        assert!(said.contains("in time"), "{said}");
    }
}
