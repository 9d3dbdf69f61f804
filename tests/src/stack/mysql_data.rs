//! Data folders for the MySQL server of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::local::{base_folder, user_id};

/// Both servers refuse to run as root unless told so.
pub(super) fn as_root() -> Option<OsString> {
    (user_id() == 0).then(|| OsString::from("--user=root"))
}

fn version_of(program: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn is_mariadb(program: &Path) -> Result<bool, String> {
    Ok(version_of(program)?.contains("MariaDB"))
}

/// Makes `data` an initialised data folder for this server program.
pub(super) fn prepare(program: &Path, data: &Path) -> Result<(), String> {
    let template = template(program)?;
    run(Command::new("cp").arg("-a").arg(&template).arg(data))
}

/// An initialised data folder of this server version, made once and copied for
/// every stack: initialising takes seconds, copying a fraction of one.
fn template(program: &Path) -> Result<PathBuf, String> {
    let version: String = version_of(program)?
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    let base = base_folder()?;
    let template = base.join(format!("template{version}"));
    if template.exists() {
        return Ok(template);
    }
    let fresh = tempfile::Builder::new()
        .prefix("template-")
        .tempdir_in(&base)
        .map_err(|error| error.to_string())?;
    let data = fresh.path().join("data");
    initialise(program, &data)?;
    // Of several processes that make one at the same time, the first wins.
    match std::fs::rename(&data, &template) {
        Ok(()) => Ok(template),
        Err(_) if template.exists() => Ok(template),
        Err(error) => Err(format!("{}: {error}", template.display())),
    }
}

/// Each with a folder of its own for temporary files: a server that starts deletes those of all others
/// that it finds there.
fn initialise(program: &Path, data: &Path) -> Result<(), String> {
    let beside = data.parent().ok_or("no folder for temporary files")?;
    let data_option = format!("--datadir={}", data.display());
    if !is_mariadb(program)? {
        return run(Command::new(program)
            .env("TMPDIR", beside)
            .arg("--no-defaults")
            .args(as_root())
            .args([
                "--initialize-insecure",
                "--secure-file-priv=NULL",
                &data_option,
            ]));
    }
    let installer = program
        .parent()
        .map(|folder| folder.join("../bin/mariadb-install-db"))
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("mariadb-install-db"));
    run(Command::new(installer)
        .env("TMPDIR", beside)
        .arg("--no-defaults")
        .args(as_root())
        .args([
            &data_option,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{} failed: {said}",
        command.get_program().display()
    ))
}
