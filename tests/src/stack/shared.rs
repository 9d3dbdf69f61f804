//! The stack that all tests of a process share, and the ways to ask for one.

use std::sync::LazyLock;

use tokio::sync::watch;

use super::containers::Containers;
use super::programs::Programs;
use super::{Plan, PrivateStack, RealStack, Source, containers, given, report};

/// Either the stack, or none because only memory was asked for, or why there is none.
type Outcome = Result<Option<&'static RealStack>, String>;

/// Servers that run as long as this is kept.
enum Running {
    Given(RealStack),
    Containers {
        stack: RealStack,
        _keep: Box<Containers>,
    },
    Local(Box<PrivateStack>),
}

impl Running {
    async fn start(source: Source) -> Result<Self, String> {
        Ok(match source {
            Source::Given => Self::Given(given::start().await?),
            Source::Containers => {
                let (stack, containers) = containers::start().await?;
                Self::Containers {
                    stack,
                    _keep: Box::new(containers),
                }
            }
            Source::Local => Self::Local(Box::new(PrivateStack::start(&Programs::find()?).await?)),
        })
    }

    fn stack(&self) -> &RealStack {
        match self {
            Self::Given(stack) | Self::Containers { stack, .. } => stack,
            Self::Local(local) => &local.stack,
        }
    }
}

/// Started by the first test that asks. A thread with a runtime of its own owns
/// the servers and their connections: the runtime of that first test ends with it.
static SHARED: LazyLock<watch::Receiver<Option<Outcome>>> = LazyLock::new(|| {
    let (sender, receiver) = watch::channel(None);
    let own = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .expect("a runtime for the test servers")
            .block_on(async move {
                let outcome = provide().await;
                if let Err(error) = &outcome {
                    report::say(error);
                }
                sender.send_replace(Some(outcome));
                std::future::pending::<()>().await;
            });
    };
    std::thread::Builder::new()
        .name("test-stack".to_owned())
        .spawn(own)
        .expect("a thread for the test servers");
    receiver
});

async fn provide() -> Outcome {
    let plan = Plan::from_environment()?;
    let running = match plan {
        Plan::MemoryOnly => return Ok(None),
        Plan::Only(source) => Running::start(source).await.map_err(|error| {
            format!("the {source} servers that the settings ask for are not to be had: {error}")
        })?,
        Plan::FirstOf(sources) => first_of(sources).await?,
    };
    // Until the process ends; then the reaper takes over.
    let stack = Box::leak(Box::new(running)).stack();
    report::say(&format!("{} ({})", stack.source(), stack.versions()));
    Ok(Some(stack))
}

async fn first_of(sources: &[Source]) -> Result<Running, String> {
    let mut passed_over = Vec::new();
    for source in sources {
        match Running::start(*source).await {
            Ok(running) => return Ok(running),
            Err(error) => {
                report::say(&format!("{source} passed over: {error}"));
                passed_over.push(format!("- {source}: {error}"));
            }
        }
    }
    Err(format!(
        "no servers to test against. On Debian: apt-get install redis-server mariadb-server \
         (scripts/test.sh does it).\n{}",
        passed_over.join("\n")
    ))
}

/// The servers shared by the tests of this process. `None` only if
/// `SECKILL_TEST_STACK=memory` forbids them; that is counted as a test not run.
/// Panics, saying what to install, if there are none.
pub async fn shared() -> Option<&'static RealStack> {
    let mut receiver = SHARED.clone();
    let outcome = receiver
        .wait_for(Option::is_some)
        .await
        .expect("the thread that starts the test servers has not panicked")
        .clone()
        .expect("waited for");
    match outcome {
        Ok(Some(stack)) => {
            report::count(&stack.source().to_string(), &stack.versions());
            Some(stack)
        }
        Ok(None) => {
            report::count("NOT RUN", "only memory was asked for");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Servers of this machine for one test alone, which may kill, restart and
/// freeze them. They do not depend on what the shared ones are, so `None` means
/// the same as in [`shared`].
pub async fn private() -> Option<PrivateStack> {
    if Plan::from_environment().unwrap_or_else(|error| panic!("{error}")) == Plan::MemoryOnly {
        report::count("NOT RUN", "only memory was asked for");
        return None;
    }
    let started = async { PrivateStack::start(&Programs::find()?).await };
    let private = started.await.unwrap_or_else(|error| panic!("{error}"));
    report::count("private", &private.stack.versions());
    Some(private)
}

/// Notes that the current test runs on the in-memory adapters.
pub fn memory() {
    report::count("memory", "in-memory adapters");
}
