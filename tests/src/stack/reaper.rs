//! Cleaning up after this process, however it ends.
//!
//! Servers shared by the tests of a process live in a static, and statics are
//! never dropped; a test run may also be killed. So a small shell process holds
//! the reading end of a pipe: when this process is gone the pipe ends, and the
//! shell kills the servers, removes containers and folders, and prints how many
//! tests ran on which stack. (A parent-death signal would not do: it fires when
//! the *thread* that started the server ends, and every test has its own.)

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// Reads `word<TAB>argument<TAB>argument` lines until this process has gone. A
/// server is killed only if its command line still names its folder, so that a
/// pid that has been given to another process is left alone.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
kept=$(cat)
each() { printf '%s\n' "$kept" | sed -n "s/^$1	//p"; }
each test | sort | uniq -c | while read -r count stack; do
    echo "test stack: $count test(s) of $1 on $stack" >&2
done
exec >/dev/null 2>&1
each server | while IFS='	' read -r pid folder; do
    if [ -d /proc/self ]; then line=$(tr '\0' ' ' <"/proc/$pid/cmdline")
    else line=$(ps -ww -o args= -p "$pid"); fi
    case $line in *"$folder"*) kill -9 "$pid" ;; esac
done
each container | while read -r id; do docker rm -f -v "$id"; done
each folder | while read -r folder; do
    for again in 1 2 3 4 5; do rm -rf "$folder" && break; sleep 0.2; done
done
"#;

static REAPER: LazyLock<Mutex<Child>> = LazyLock::new(|| {
    let binary = super::report::binary();
    let reaper = Command::new("sh")
        .args(["-c", SCRIPT, "reaper", &binary])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // A group of its own: an interrupt from the terminal is for the tests,
        // and the reaper has to outlive them.
        .process_group(0)
        .spawn()
        .expect("a shell to clean up after the tests");
    Mutex::new(reaper)
});

fn tell(line: &str) {
    let mut reaper = REAPER
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    // Without its reaper a test run would leave servers behind unnoticed.
    let pipe = reaper.stdin.as_mut().expect("its standard input is a pipe");
    writeln!(pipe, "{line}").expect("the clean-up process is there");
}

/// Kill this process, whose command line names `folder`, when the process ends.
pub(crate) fn kill_at_exit(pid: u32, folder: &Path) {
    tell(&format!("server\t{pid}\t{}", folder.display()));
}

/// Remove this container when the process ends.
pub(super) fn remove_container(id: &str) {
    tell(&format!("container\t{id}"));
}

/// Remove this folder when the process ends.
pub(super) fn remove_folder(folder: &Path) {
    tell(&format!("folder\t{}", folder.display()));
}

/// One more test ran on this stack.
pub(super) fn count_test(stack: &str) {
    tell(&format!("test\t{stack}"));
}
