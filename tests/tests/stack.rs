//! The provider of test servers, tested. Some tests run this binary again with
//! other settings, since the shared servers belong to a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use seckill_tests::stack;
use sqlx::{Connection as _, MySqlConnection, Row as _};

async fn redis_at(url: &str) -> redis::RedisResult<redis::aio::MultiplexedConnection> {
    redis::Client::open(url)?
        .get_multiplexed_async_connection()
        .await
}

#[tokio::test]
async fn shared_servers_answer_and_keep_tests_apart() {
    let Some(shared) = stack::shared().await else {
        return;
    };
    let (one, other) = (shared.fresh_database().await, shared.fresh_database().await);
    assert_ne!(one.url(), other.url());
    assert_ne!(shared.fresh_namespace(), shared.fresh_namespace());

    let mut connection = MySqlConnection::connect(one.url()).await.unwrap();
    sqlx::query("CREATE TABLE t (id INT PRIMARY KEY)")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut connection = MySqlConnection::connect(other.url()).await.unwrap();
    let tables = sqlx::query("SHOW TABLES")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert!(tables.is_empty());

    let mut connection = redis_at(shared.redis_url()).await.unwrap();
    let key = format!("{}:key", shared.fresh_namespace());
    redis::cmd("SET")
        .arg(&key)
        .arg("1")
        .query_async::<()>(&mut connection)
        .await
        .unwrap();
    assert!(
        shared.redis_version().contains('.'),
        "{}",
        shared.redis_version()
    );
    assert!(
        shared.mysql_version().contains('.'),
        "{}",
        shared.mysql_version()
    );
}

#[tokio::test]
async fn every_test_of_a_process_gets_the_same_servers() {
    let Some(one) = stack::shared().await else {
        return;
    };
    // From a thread and a runtime of its own, as another test would ask.
    let other = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime
            .block_on(stack::shared())
            .map(|stack| stack.redis_url().to_owned())
    });
    assert_eq!(other.join().unwrap().as_deref(), Some(one.redis_url()));
}

#[tokio::test]
async fn a_killed_redis_keeps_what_it_acknowledged() {
    let Some(private) = stack::private().await else {
        return;
    };
    let url = private.stack.redis_url();
    let mut connection = redis_at(url).await.unwrap();
    for number in 0..100 {
        redis::cmd("RPUSH")
            .arg("log")
            .arg(number)
            .query_async::<()>(&mut connection)
            .await
            .unwrap();
    }
    private.redis.kill().await;
    assert!(!private.redis.is_running());
    assert!(redis_at(url).await.is_err());
    private.redis.start().await;
    let mut connection = redis_at(url).await.unwrap();
    let length: u32 = redis::cmd("LLEN")
        .arg("log")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(length, 100);
}

#[tokio::test]
async fn a_killed_mysql_keeps_what_it_committed() {
    let Some(private) = stack::private().await else {
        return;
    };
    let database = private.stack.fresh_database().await;
    let mut connection = MySqlConnection::connect(database.url()).await.unwrap();
    sqlx::query("CREATE TABLE t (id INT PRIMARY KEY)")
        .execute(&mut connection)
        .await
        .unwrap();
    for id in 0..20 {
        sqlx::query("INSERT INTO t VALUES (?)")
            .bind(id)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    private.mysql.restart().await;
    assert!(
        sqlx::query("SELECT 1")
            .execute(&mut connection)
            .await
            .is_err(),
        "an old connection"
    );
    let mut connection = MySqlConnection::connect(database.url()).await.unwrap();
    let row = sqlx::query("SELECT COUNT(*) FROM t")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(row.get::<i64, _>(0), 20);
    private.mysql.stop().await;
    assert!(!private.mysql.is_running());
}

#[tokio::test]
async fn a_frozen_server_goes_on_where_it_was() {
    let Some(private) = stack::private().await else {
        return;
    };
    let mut connection = redis_at(private.stack.redis_url()).await.unwrap();
    private.redis.freeze();
    let mut ping = redis::cmd("PING");
    let ping = ping.set_no_response(false);
    let frozen = tokio::time::timeout(
        Duration::from_millis(200),
        ping.query_async::<String>(&mut connection),
    );
    assert!(frozen.await.is_err(), "a frozen server has answered");
    private.redis.thaw();
    let mut connection = redis_at(private.stack.redis_url()).await.unwrap();
    assert_eq!(
        ping.query_async::<String>(&mut connection).await.unwrap(),
        "PONG"
    );
}

/// This binary with nothing but these settings of ours, running one test of it.
fn again(test: &str, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .stdin(Stdio::null());
    let ours = std::env::vars()
        .map(|(name, _)| name)
        .filter(|n| n.starts_with("SECKILL_TEST_"));
    for name in ours.filter(|name| !name.ends_with("_BIN") && !name.ends_with("_IMAGE")) {
        command.env_remove(name);
    }
    command.envs(settings.iter().copied());
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Whether the run said at its end that its one test ran on this stack.
fn counted(said: &str, stack: &str) -> bool {
    let mut lines = said
        .lines()
        .filter_map(|line| line.strip_prefix("test stack: 1 test(s) of "));
    lines.any(|line| line.contains(&format!(" on {stack}")))
}

const USES_SHARED: &str = "shared_servers_answer_and_keep_tests_apart";
const NO_DAEMON: (&str, &str) = ("DOCKER_HOST", "unix:///nonexistent/docker.sock");

#[test]
fn a_forced_source_says_what_it_gave_and_how_many_tests_used_it() {
    let output = again(USES_SHARED, &[(stack::STACK, "local")])
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("test stack: local ("), "{said}");
    assert!(counted(&said, "local ("), "{said}");
}

#[test]
fn a_missing_daemon_is_reported_and_passed_over() {
    let output = again(USES_SHARED, &[NO_DAEMON]).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("containers passed over: no Docker daemon"),
        "{said}"
    );
    assert!(counted(&said, "local ("), "{said}");
}

#[test]
fn an_image_that_cannot_be_had_is_reported_and_passed_over() {
    let missing = (
        "SECKILL_TEST_REDIS_IMAGE",
        "seckill.invalid/no-such-image:0",
    );
    let output = again(USES_SHARED, &[missing]).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("containers passed over: "), "{said}");
    assert!(counted(&said, "local ("), "{said}");
}

#[test]
fn a_forced_source_that_is_not_to_be_had_fails() {
    let forced = (stack::STACK, "containers");
    let output = again(USES_SHARED, &[forced, NO_DAEMON]).output().unwrap();
    assert!(!output.status.success());
    assert!(
        said(&output).contains("no Docker daemon"),
        "{}",
        said(&output)
    );
}

#[test]
fn no_server_program_fails_and_names_the_package() {
    let nowhere = [NO_DAEMON, ("PATH", ""), ("SECKILL_TEST_REDIS_BIN", "")];
    let output = again(USES_SHARED, &nowhere).output().unwrap();
    assert!(!output.status.success());
    assert!(
        said(&output).contains("apt-get install redis-server"),
        "{}",
        said(&output)
    );
}

#[test]
fn memory_alone_is_said_and_counted_as_not_run() {
    let output = again(USES_SHARED, &[(stack::STACK, "memory")])
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(counted(&said, "NOT RUN"), "{said}");
}

#[test]
fn given_addresses_are_used_and_left_clean() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let Some(private) = stack::private().await else {
            return;
        };
        let (redis, mysql) = (private.stack.redis_url(), private.stack.mysql_url());
        let mut connection = MySqlConnection::connect(mysql).await.unwrap();
        sqlx::raw_sql("CREATE DATABASE seckill_test_1_1_1")
            .execute(&mut connection)
            .await
            .unwrap();
        let settings = [(stack::REDIS_URL, redis), (stack::MYSQL_URL, mysql)];
        let output = again(USES_SHARED, &settings).output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(counted(&said, "given ("), "{said}");
        let stale = sqlx::query("SHOW DATABASES LIKE 'seckill\\_test\\_1\\_%'");
        assert!(stale.fetch_all(&mut connection).await.unwrap().is_empty());
    });
}

const HOLD: &str = "SECKILL_STACK_TEST_HOLD";

/// The other half of the next test: holds the shared servers until it is killed.
#[tokio::test]
async fn held_servers() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let shared = stack::shared().await.unwrap();
    writeln!(std::io::stdout().lock(), "held {}", shared.redis_url()).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn servers_die_with_a_killed_process() {
    let mut holder = again("held_servers", &[(HOLD, "1"), (stack::STACK, "local")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("held ").map(|(_, url)| url.to_owned()))
        .expect("the child names its server");
    redis_at(&url).await.expect("the child's server answers");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let gone = async || redis_at(&url).await.is_err();
    stack::until(
        "the server of a killed process has gone",
        Duration::from_secs(20),
        gone,
    )
    .await;
}

#[test]
fn containers_serve_and_go_with_their_process() {
    let docker = |args: &[&str]| Command::new("docker").args(args).output();
    let redis = std::env::var("SECKILL_TEST_REDIS_IMAGE").unwrap_or("redis:8".to_owned());
    let mysql = std::env::var("SECKILL_TEST_MYSQL_IMAGE").unwrap_or("mysql:9".to_owned());
    let images = docker(&["image", "inspect", &redis, &mysql]);
    if !images.is_ok_and(|output| output.status.success()) {
        let mut stderr = std::io::stderr().lock();
        writeln!(
            stderr,
            "test stack: NOT TESTED here: containers (no daemon or images)"
        )
        .unwrap();
        return;
    }
    let child = again(USES_SHARED, &[(stack::STACK, "containers")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let owner = format!("/{}/", child.id());
    let output = child.wait_with_output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(counted(&said, "containers ("), "{said}");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(stack::until(
        "its containers are gone",
        Duration::from_secs(30),
        async || {
            let format = "{{.Label \"seckill-test.owner\"}}";
            let list = docker(&["ps", "--all", "--format", format]).unwrap();
            !String::from_utf8_lossy(&list.stdout).contains(&owner)
        },
    ));
}
