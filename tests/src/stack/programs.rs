//! Finding the server programs of this machine.

use std::env;
use std::path::{Path, PathBuf};

/// The programs a local stack is made of.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) redis: PathBuf,
    pub(super) mysql: PathBuf,
}

/// Where server programs are when they are not on the search path, as for users
/// other than root on Debian.
const EXTRA_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

impl Programs {
    /// The programs named by the settings, else those on the search path; the
    /// error names what to install.
    pub(super) fn find() -> Result<Self, String> {
        let redis = locate(
            "SECKILL_TEST_REDIS_BIN",
            &["redis-server", "valkey-server"],
            "redis-server",
        );
        let mysql = locate(
            "SECKILL_TEST_MYSQL_BIN",
            &["mysqld", "mariadbd"],
            "mariadb-server",
        );
        match (redis, mysql) {
            (Ok(redis), Ok(mysql)) => Ok(Self { redis, mysql }),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
            (Err(redis), Err(mysql)) => Err(format!("{redis}; {mysql}")),
        }
    }
}

fn locate(setting: &str, names: &[&str], package: &str) -> Result<PathBuf, String> {
    if let Some(program) = env::var_os(setting).filter(|program| !program.is_empty()) {
        let program = PathBuf::from(program);
        let there = program.is_file();
        return there
            .then_some(program.clone())
            .ok_or(format!("{setting}={}: no such program", program.display()));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .chain(EXTRA_FOLDERS.map(PathBuf::from))
        .collect();
    first_in(&folders, names).ok_or(format!(
        "no {} on this machine: install the package {package} (Debian: apt-get install {package}), \
         or name the program in {setting}",
        names.join(" or ")
    ))
}

/// The first name that exists, in the order of the names: a folder early on the
/// path must not turn a preferred program into a substitute.
fn first_in(folders: &[PathBuf], names: &[&str]) -> Option<PathBuf> {
    names.iter().find_map(|name| {
        folders
            .iter()
            .map(|folder: &PathBuf| Path::new(folder).join(name))
            .find(|p| p.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let error = locate("SECKILL_TEST_UNSET", &["no-such-server"], "some-package").unwrap_err();
        assert!(error.contains("apt-get install some-package"), "{error}");
        assert!(error.contains("SECKILL_TEST_UNSET"), "{error}");
    }

    #[test]
    fn names_are_tried_in_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("second"), "").unwrap();
        let folders = [folder.path().to_owned()];
        assert_eq!(first_in(&folders, &["first"]), None);
        assert_eq!(
            first_in(&folders, &["first", "second"]),
            Some(folder.path().join("second"))
        );
    }
}
