//! A stack of containers, through the Docker daemon.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use testcontainers::core::IntoContainerPort as _;
use testcontainers::core::client::docker_client_instance;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt as _};

use super::probe::{self, Identity, Protocol};
use super::{RealStack, Source, reaper};

/// The daemon is on this machine or next to it.
const PING_WITHIN: Duration = Duration::from_secs(5);
/// Downloading two images takes minutes on a slow line.
const STARTED_WITHIN: Duration = Duration::from_mins(5);
/// The official image of MySQL starts its server twice.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// Whose container it is, as `host/pid/start time of that process`.
const OWNER: &str = "seckill-test.owner";
const PASSWORD: &str = "seckill";

/// Two containers; they are removed when this is dropped, or when the process
/// ends, or else by the next process that starts some.
#[derive(Debug)]
pub(super) struct Containers {
    _redis: ContainerAsync<GenericImage>,
    _mysql: ContainerAsync<GenericImage>,
}

/// Starts both servers. Fails if there is no daemon, or if it has no image and
/// cannot pull one.
pub(super) async fn start() -> Result<(RealStack, Containers), String> {
    let docker = daemon().await?;
    remove_stale(&docker).await;
    let started = async { tokio::try_join!(run(redis_request()), run(mysql_request())) };
    let (redis, mysql) = tokio::time::timeout(STARTED_WITHIN, started)
        .await
        .map_err(|_| format!("the containers have not started within {STARTED_WITHIN:?}"))??;
    let redis_url = format!("redis://{}", address(&redis, 6379).await?);
    let mysql_url = format!("mysql://root:{PASSWORD}@{}/", address(&mysql, 3306).await?);
    let (redis_is, mysql_is) = tokio::try_join!(
        answer(Protocol::Redis, &redis_url, &redis),
        answer(Protocol::MySql, &mysql_url, &mysql),
    )?;
    let stack = RealStack::new(
        Source::Containers,
        redis_url,
        mysql_url,
        redis_is.version,
        mysql_is.version,
    );
    Ok((
        stack,
        Containers {
            _redis: redis,
            _mysql: mysql,
        },
    ))
}

async fn daemon() -> Result<Docker, String> {
    let docker = docker_client_instance()
        .await
        .map_err(|error| format!("no Docker daemon (Debian: docker.io): {error}"))?;
    match tokio::time::timeout(PING_WITHIN, docker.ping()).await {
        Ok(Ok(_)) => Ok(docker),
        Ok(Err(error)) => Err(format!("no Docker daemon answers: {error}")),
        Err(_) => Err(format!(
            "the Docker daemon does not answer within {PING_WITHIN:?}"
        )),
    }
}

fn image(setting: &str, default: &str) -> GenericImage {
    let name = std::env::var(setting).ok().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| default.to_owned());
    match name.rsplit_once(':') {
        // A colon before a slash belongs to the port of a registry.
        Some((name, tag)) if !tag.contains('/') => GenericImage::new(name, tag),
        _ => GenericImage::new(name.as_str(), "latest"),
    }
}

fn redis_request() -> ContainerRequest<GenericImage> {
    image("SECKILL_TEST_REDIS_IMAGE", "redis:8")
        .with_exposed_port(6379.tcp())
        .with_cmd([
            "redis-server",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
            "--maxmemory-policy",
            "noeviction",
        ])
}

fn mysql_request() -> ContainerRequest<GenericImage> {
    image("SECKILL_TEST_MYSQL_IMAGE", "mysql:9")
        .with_exposed_port(3306.tcp())
        .with_env_var("MYSQL_ROOT_PASSWORD", PASSWORD)
        .with_cmd([
            "--max-connections=300",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=64M",
            "--skip-log-bin",
            "--performance-schema=OFF",
        ])
}

async fn run(
    request: ContainerRequest<GenericImage>,
) -> Result<ContainerAsync<GenericImage>, String> {
    let container = request
        .with_label(OWNER, owner(std::process::id()).unwrap_or_default())
        .start()
        .await
        .map_err(|error| error.to_string())?;
    reaper::remove_container(container.id());
    Ok(container)
}

async fn address(container: &ContainerAsync<GenericImage>, port: u16) -> Result<String, String> {
    let host = container
        .get_host()
        .await
        .map_err(|error| error.to_string())?;
    // By number: `localhost` may also mean IPv6, where the port need not be published.
    let host = if host.to_string() == "localhost" {
        "127.0.0.1".to_owned()
    } else {
        host.to_string()
    };
    let port = container
        .get_host_port_ipv4(port)
        .await
        .map_err(|error| error.to_string())?;
    Ok(format!("{host}:{port}"))
}

/// Waits until the server answers, or its container has ended.
async fn answer(
    protocol: Protocol,
    url: &str,
    container: &ContainerAsync<GenericImage>,
) -> Result<Identity, String> {
    let begun = Instant::now();
    loop {
        let late = begun.elapsed() >= READY_WITHIN;
        match probe::ask(protocol, url).await {
            Ok(identity) => return Ok(identity),
            Err(error) if late || !container.is_running().await.unwrap_or(false) => {
                let log = container.stderr_to_vec().await.unwrap_or_default();
                let log = String::from_utf8_lossy(&log);
                return Err(format!(
                    "{protocol:?} in its container does not answer: {error}\n{log}"
                ));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Who a process is, beyond its pid, which another one may get after it.
fn owner(pid: u32) -> Option<String> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the program's name, which may contain anything.
    let start_time = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .to_owned();
    Some(format!("{}/{pid}/{start_time}", host.trim()))
}

/// Whether a container of this owner is left over from a process of this
/// machine that has ended.
fn is_stale(label: &str) -> bool {
    let mut parts = label.split('/');
    let (Some(host), Some(pid)) = (parts.next(), parts.next()) else {
        return false;
    };
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let Ok(pid) = pid.parse::<u32>() else {
        return false;
    };
    host == here.trim() && owner(pid).as_deref() != Some(label)
}

/// Removes what killed test runs have left behind. A failure is no reason not to test.
async fn remove_stale(docker: &Docker) {
    let filters = HashMap::from([("label", vec![OWNER])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    for container in docker
        .list_containers(Some(options))
        .await
        .unwrap_or_default()
    {
        let stale = container
            .labels
            .as_ref()
            .and_then(|l| l.get(OWNER))
            .is_some_and(|l| is_stale(l));
        if let (true, Some(id)) = (stale, container.id) {
            let options = RemoveContainerOptionsBuilder::new()
                .force(true)
                .v(true)
                .build();
            let _ = docker.remove_container(&id, Some(options)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_of_ended_processes_of_this_machine_are_stale() {
        let Some(own) = owner(std::process::id()) else {
            return;
        };
        assert!(!is_stale(&own));
        assert!(is_stale(&own.replace(|c: char| c.is_ascii_digit(), "9")));
        assert!(!is_stale(&format!("elsewhere-{own}")));
        assert!(!is_stale(""));
    }
}
