//! The machine: what it is, how busy it is, and how much of it a process took.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// CPU time of this thread.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos)
}

/// CPU time of a process and its threads, in user and kernel mode, those that have ended included;
/// exact to a tick of the kernel's clock (10 ms). Zero for one that is gone.
pub fn process_cpu(pid: u32) -> Duration {
    cpu_fields(&format!("/proc/{pid}/stat"), 11)
}

/// CPU time of the children of this process that have ended.
pub fn children_cpu() -> Duration {
    cpu_fields("/proc/self/stat", 13)
}

/// Two neighbouring fields of ticks, added up; counted from the one behind the name.
fn cpu_fields(path: &str, first: usize) -> Duration {
    let stat = fs::read_to_string(path).unwrap_or_default();
    // The name in parentheses may contain anything.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let ticks = ticks(first).unwrap_or_default() + ticks(first + 1).unwrap_or_default();
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// Bytes of memory of a process that are in use now.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// Every CPU's time so far: all of it, and what was not idle.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    all: u64,
    busy: u64,
}

impl Busy {
    /// Now.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        let ticks = line.split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = ticks
            .take(8)
            .map(|it| it.parse().unwrap_or_default())
            .collect();
        let all: u64 = ticks.iter().sum();
        // Idle, and waiting for a disk.
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Self {
            all,
            busy: all - idle,
        }
    }

    /// The share of all CPUs that was busy since then.
    pub fn since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / all as f64
    }
}

/// What the machine is.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Cores that may be used.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// The kernel.
    pub kernel: String,
    /// Runnable processes on average, over the last minute, when the benchmark began.
    pub load_before: String,
    /// The share of all CPUs that others took before anything was started.
    pub busy_before: f64,
}

impl Machine {
    /// Looks at the machine for half a second.
    pub fn look() -> Self {
        let from = Busy::now();
        std::thread::sleep(Duration::from_millis(500));
        let busy_before = Busy::now().since(from);
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map(|(_, value)| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib = memory
            .split(' ')
            .next()
            .and_then(|kib| kib.parse::<f64>().ok());
        Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            memory_gib: kib.unwrap_or_default() / 1_048_576.0,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").trim().to_owned(),
            busy_before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_of_the_cpu() {
        let (process, thread) = (process_cpu(std::process::id()), thread_cpu());
        let mut sum = 0_u64;
        while thread_cpu() < thread + Duration::from_millis(60) {
            sum = std::hint::black_box(sum + 1);
        }
        let took = process_cpu(std::process::id()).saturating_sub(process);
        assert!(took >= Duration::from_millis(40), "{took:?}");
        assert!(resident_bytes(std::process::id()) > 100_000);
    }
}
