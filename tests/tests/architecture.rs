//! The shape of the workspace: who may depend on whom, and where things are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// The adapters. They never see each other; the decorators count as one.
const ADAPTERS: [&str; 5] = [
    "seckill-decorators",
    "seckill-http",
    "seckill-memory",
    "seckill-mysql",
    "seckill-redis",
];
/// Each technology, and the one crate that may use it. The tests look behind the adapters.
const OWNERS: [(&str, &str); 3] = [
    ("axum", "seckill-http"),
    ("redis", "seckill-redis"),
    ("sqlx", "seckill-mysql"),
];
const TESTS: &str = "seckill-tests";
/// The benchmark stands where the tests stand.
const BENCH: &str = "seckill-bench";
/// And so do the simulation,
const SIMULATION: &str = "seckill-simulation";
/// and the fuzz targets.
const FUZZ: &str = "seckill-fuzz";
const BINARY: &str = "seckill";

const SOURCE_LINES_MAX: usize = 450;
const SCRIPT_LINES_MAX: usize = 150;
const FORBIDDEN_ROOMS: [&str; 8] = [
    "common", "helper", "helpers", "manager", "misc", "service", "util", "utils",
];

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        // What is needed was downloaded to build this test.
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo describes the workspace")
}

/// What each crate of the workspace names in its manifest, by kind.
fn direct_dependencies(
    metadata: &Metadata,
    kind: DependencyKind,
) -> Vec<(String, BTreeSet<String>)> {
    let packages = metadata.workspace_packages();
    let dependencies = packages.iter().map(|package| {
        let of_kind = package.dependencies.iter().filter(|it| it.kind == kind);
        let names = of_kind.map(|dependency| dependency.name.clone());
        (package.name.to_string(), names.collect())
    });
    dependencies.collect()
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

fn dependencies_of(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let all = direct_dependencies(metadata, DependencyKind::Normal);
    let found = all.into_iter().find(|(package, _)| package == name);
    found
        .unwrap_or_else(|| panic!("{name} is in the workspace"))
        .1
}

#[test]
fn the_domain_depends_on_nothing_but_its_errors() {
    let metadata = metadata();
    assert_eq!(
        dependencies_of(&metadata, "seckill-domain"),
        names(&["thiserror"])
    );
}

#[test]
fn the_application_depends_on_the_domain_and_no_runtime() {
    let metadata = metadata();
    let allowed = names(&["seckill-domain", "async-trait", "thiserror", "tracing"]);
    let found = dependencies_of(&metadata, "seckill-application");
    assert!(
        found.is_subset(&allowed),
        "{:?}",
        found.difference(&allowed)
    );
}

/// Everything that a crate is built from, at any depth.
fn closure(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let nodes: BTreeMap<&PackageId, _> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let package = |id: &PackageId| metadata[id].name.to_string();
    let start = metadata
        .workspace_members
        .iter()
        .find(|id| package(id) == name);
    let mut ahead = vec![start.expect("a crate of the workspace")];
    let mut seen = BTreeSet::new();
    while let Some(id) = ahead.pop() {
        for dependency in &nodes[id].deps {
            let kinds = &dependency.dep_kinds;
            let is_built_in = kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if is_built_in && seen.insert(&dependency.pkg) {
                ahead.push(&dependency.pkg);
            }
        }
    }
    seen.into_iter().map(package).collect()
}

#[test]
fn the_core_is_built_without_a_runtime_or_a_driver() {
    let metadata = metadata();
    for core in ["seckill-domain", "seckill-application"] {
        let built_from = closure(&metadata, core);
        for foreign in [
            "tokio", "redis", "sqlx", "axum", "hyper", "serde", "rand", "chrono", "time",
        ] {
            assert!(
                !built_from.contains(foreign),
                "{core} is built from {foreign}"
            );
        }
    }
}

#[test]
fn adapters_never_see_each_other() {
    let metadata = metadata();
    let adapters = names(&ADAPTERS);
    for kind in [DependencyKind::Normal, DependencyKind::Build] {
        for (package, dependencies) in direct_dependencies(&metadata, kind) {
            if adapters.contains(&package) {
                let seen: Vec<_> = dependencies.intersection(&adapters).collect();
                assert!(seen.is_empty(), "{package} sees {seen:?}");
            }
        }
    }
    // The tests of an adapter may stand on the one in memory.
    for (package, dependencies) in direct_dependencies(&metadata, DependencyKind::Development) {
        if adapters.contains(&package) {
            let seen = dependencies.intersection(&adapters);
            let others: Vec<_> = seen.filter(|name| *name != "seckill-memory").collect();
            assert!(others.is_empty(), "the tests of {package} see {others:?}");
        }
    }
}

#[test]
fn every_adapter_is_listed_here() {
    let metadata = metadata();
    let folder = root().join("adapters");
    let packages = metadata.workspace_packages();
    let found = packages
        .iter()
        .filter(|it| it.manifest_path.starts_with(&folder));
    let found: BTreeSet<String> = found.map(|package| package.name.to_string()).collect();
    assert_eq!(found, names(&ADAPTERS));
}

#[test]
fn dependencies_point_inwards() {
    let metadata = metadata();
    let layer = |name: &str| match name {
        "seckill-domain" => Some(0),
        "seckill-application" => Some(1),
        BINARY => Some(3),
        TESTS | BENCH | SIMULATION | FUZZ => Some(4),
        name => ADAPTERS.contains(&name).then_some(2),
    };
    for (package, dependencies) in direct_dependencies(&metadata, DependencyKind::Normal) {
        let here = layer(&package).unwrap_or_else(|| panic!("{package} has a layer"));
        for dependency in dependencies {
            let there = layer(&dependency);
            assert!(
                there.is_none_or(|there| there < here),
                "{package} on {dependency}"
            );
        }
    }
}

#[test]
fn each_technology_belongs_to_one_adapter() {
    let metadata = metadata();
    for kind in [DependencyKind::Normal, DependencyKind::Build] {
        for (package, dependencies) in direct_dependencies(&metadata, kind) {
            for (technology, owner) in OWNERS {
                let uses = dependencies.contains(technology);
                let may = package == owner || package == TESTS || package == BENCH;
                assert!(!uses || may, "{package} uses {technology}");
            }
        }
    }
}

#[test]
fn everything_is_where_a_stranger_looks_for_it() {
    let expected = [
        "Cargo.toml",
        "README.md",
        "ARCHITECTURE.md",
        "domain/src/lib.rs",
        "application/src/lib.rs",
        "application/src/ports/mod.rs",
        "adapters/http/src/lib.rs",
        "adapters/memory/src/lib.rs",
        "adapters/mysql/src/lib.rs",
        "adapters/redis/src/lib.rs",
        "bootstrap/src/main.rs",
        "lua",
        "migrations",
        "tests/src/contract",
        "docs/adr",
    ];
    let root = root();
    let missing: Vec<_> = expected
        .iter()
        .filter(|path| !root.join(path).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Files of our own, by their path from the root.
fn files() -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut ahead = vec![root.clone()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                let ours = !name.starts_with('.') && !name.starts_with("target");
                ahead.extend(ours.then_some(path));
            } else {
                found.push(path.strip_prefix(&root).expect("below the root").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn with_extension(extension: &str) -> Vec<PathBuf> {
    let mut files = files();
    files.retain(|file| file.extension().is_some_and(|it| it == extension));
    assert!(!files.is_empty(), "there are .{extension} files");
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(root().join(file)).expect("a text")
}

#[test]
fn no_file_is_too_long_to_be_read() {
    for (extension, lines_max) in [("rs", SOURCE_LINES_MAX), ("lua", SCRIPT_LINES_MAX)] {
        let lengths = with_extension(extension).into_iter().map(|file| {
            let lines = read(&file).lines().count();
            (file, lines)
        });
        let too_long: Vec<_> = lengths.filter(|(_, lines)| *lines > lines_max).collect();
        assert!(
            too_long.is_empty(),
            "more than {lines_max} lines: {too_long:?}"
        );
    }
}

#[test]
fn no_room_is_named_after_nothing() {
    let mut files = with_extension("rs");
    files.extend(with_extension("lua"));
    for file in files {
        for room in file.with_extension("").components() {
            let room = room.as_os_str().to_string_lossy();
            assert!(!FORBIDDEN_ROOMS.contains(&&*room), "{}", file.display());
        }
    }
}

#[test]
fn the_domain_neither_waits_nor_looks_at_a_clock() {
    let sources = with_extension("rs");
    let domain: Vec<_> = sources
        .iter()
        .filter(|file| file.starts_with("domain/src"))
        .collect();
    assert!(domain.len() > 10, "{domain:?}");
    for file in domain {
        let source = read(file);
        for foreign in [
            "async fn",
            ".await;",
            ".await?",
            "SystemTime",
            "Instant::",
            "std::net",
            "std::fs",
        ] {
            assert!(!source.contains(foreign), "{foreign} in {}", file.display());
        }
    }
}

#[test]
fn every_suite_of_the_contract_is_stamped() {
    let suites = with_extension("rs").into_iter().filter_map(|file| {
        let stamps =
            file.starts_with("tests/src/contract") && read(&file).contains("\npromises! {");
        let source = stamps.then(|| read(&file))?;
        let (_, list) = source.split_once("\npromises! {")?;
        let (name, _) = list.split_once(" over ")?;
        Some(name.trim().to_owned())
    });
    let suites: Vec<String> = suites.collect();
    assert!(suites.len() > 30, "{suites:?}");
    let stamps = read(Path::new("tests/src/contract/mod.rs"));
    let (_, stamps) = stamps
        .split_once("macro_rules! contract_suites")
        .expect("the stamps");
    for suite in suites {
        let words = stamps.split_whitespace();
        let times = words.filter(|word| *word == suite).count();
        assert_eq!(times, 1, "{suite} is stamped {times} times");
    }
}
