//! The name of a gate, by which it is told apart from others: from another server, and from another
//! database of the same one. It goes where the data goes (a replica has it, a backup too) and is
//! gone when the data is.

use redis::{Cmd, FromRedisValue as _};
use seckill_application::Fault;

use crate::hot_path::RedisHotPath;
use crate::keys::KeyName;
use crate::store::Lane;

const NAME: &str = "redis.gate_name";

impl RedisHotPath {
    /// The name that this gate was given, if it has one.
    pub async fn name(&self) -> Result<Option<String>, Fault> {
        let get = self.on_name("GET");
        let value = self.store.ask(NAME, Lane::Bulk, &get).await?;
        Option::from_redis_value(value).map_err(|error| Fault::broken(NAME, error))
    }

    /// Names this gate if it has no name. Returns the one it has then, whoever gave it.
    pub async fn name_it(&self, name: &str) -> Result<Option<String>, Fault> {
        let mut set = self.on_name("SET");
        set.arg(name).arg("NX");
        self.store.ask(NAME, Lane::Bulk, &set).await?;
        self.name().await
    }

    /// Names this gate, whatever name it has.
    pub async fn rename(&self, name: &str) -> Result<(), Fault> {
        let mut set = self.on_name("SET");
        set.arg(name);
        self.store.ask(NAME, Lane::Bulk, &set).await.map(|_| ())
    }

    fn on_name(&self, verb: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(self.store.plain_address().key(KeyName::Name).to_string());
        command
    }
}
