//! Where a test stack may come from, decided from the settings alone.

use std::fmt;

/// Address of a Redis server to test against.
pub const REDIS_URL: &str = "SECKILL_TEST_REDIS_URL";
/// Address of a MySQL server to test against; its user must be able to create databases.
pub const MYSQL_URL: &str = "SECKILL_TEST_MYSQL_URL";
/// Forces one source: `containers`, `local` or `memory`.
pub const STACK: &str = "SECKILL_TEST_STACK";

/// A way to get a Redis and a MySQL server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Servers that run already, at the addresses in the settings.
    Given,
    /// Containers, through the Docker daemon.
    Containers,
    /// The server programs installed on this machine.
    Local,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "given",
            Self::Containers => "containers",
            Self::Local => "local",
        })
    }
}

/// What the settings ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Only this source; if it is not to be had, the tests fail.
    Only(Source),
    /// The first of these that is to be had.
    FirstOf(&'static [Source]),
    /// No real servers: the tests that need them say so and do nothing.
    MemoryOnly,
}

impl Plan {
    /// The plan that the settings describe. `setting` looks a name up, usually
    /// in the environment; an empty value counts as not set.
    pub fn from_settings(setting: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name: &str| setting(name).filter(|value| !value.is_empty());
        let given = match (set(REDIS_URL), set(MYSQL_URL)) {
            (Some(_), Some(_)) => true,
            (None, None) => false,
            (Some(_), None) => return Err(format!("{REDIS_URL} is set but {MYSQL_URL} is not")),
            (None, Some(_)) => return Err(format!("{MYSQL_URL} is set but {REDIS_URL} is not")),
        };
        match set(STACK).as_deref() {
            Some("memory") => Ok(Self::MemoryOnly),
            Some(forced @ ("containers" | "local")) if given => Err(format!(
                "{STACK}={forced} contradicts {REDIS_URL} and {MYSQL_URL}: set one or the other"
            )),
            Some("containers") => Ok(Self::Only(Source::Containers)),
            Some("local") => Ok(Self::Only(Source::Local)),
            Some(other) => Err(format!(
                "{STACK}={other} is not one of `containers`, `local`, `memory`"
            )),
            None if given => Ok(Self::Only(Source::Given)),
            None => Ok(Self::FirstOf(&[Source::Containers, Source::Local])),
        }
    }

    /// The plan of this process's environment.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_settings(|name| std::env::var(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: &[(&str, &str)]) -> Result<Plan, String> {
        Plan::from_settings(|name| {
            settings
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_tries_containers_then_the_machine() {
        let expected = Plan::FirstOf(&[Source::Containers, Source::Local]);
        assert_eq!(plan(&[]), Ok(expected.clone()));
        assert_eq!(plan(&[(STACK, ""), (REDIS_URL, "")]), Ok(expected));
    }

    #[test]
    fn addresses_come_first() {
        let both = [(REDIS_URL, "redis://r"), (MYSQL_URL, "mysql://m")];
        assert_eq!(plan(&both), Ok(Plan::Only(Source::Given)));
    }

    #[test]
    fn one_address_without_the_other_is_refused() {
        assert!(
            plan(&[(REDIS_URL, "redis://r")])
                .unwrap_err()
                .contains(MYSQL_URL)
        );
        assert!(
            plan(&[(MYSQL_URL, "mysql://m")])
                .unwrap_err()
                .contains(REDIS_URL)
        );
    }

    #[test]
    fn a_source_can_be_forced() {
        assert_eq!(
            plan(&[(STACK, "containers")]),
            Ok(Plan::Only(Source::Containers))
        );
        assert_eq!(plan(&[(STACK, "local")]), Ok(Plan::Only(Source::Local)));
        assert_eq!(plan(&[(STACK, "memory")]), Ok(Plan::MemoryOnly));
    }

    #[test]
    fn a_bad_or_contradictory_choice_is_refused() {
        assert!(
            plan(&[(STACK, "docker")])
                .unwrap_err()
                .contains("`containers`")
        );
        let clash = [
            (STACK, "local"),
            (REDIS_URL, "redis://r"),
            (MYSQL_URL, "mysql://m"),
        ];
        assert!(plan(&clash).unwrap_err().contains("contradicts"));
    }
}
