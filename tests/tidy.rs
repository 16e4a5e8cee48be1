//! The rules of the house that a machine can check: the layers, and where `unsafe` may stand.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers of `src/`, lowest first. A file imports only from layers before its own; those of one row do not import each
/// other, except in the first, whose parts are plain values.
///
/// Some names are reserved for parts to come.
const LAYERS: &[&[&str]] = &[
    &["error", "id", "time", "rng", "planted"],
    &["buf"],
    &["io"],
    &["resp"],
    &["command"],
    &["connection", "topology", "policy"],
    &["client"],
    &["deployment"],
    &["engine"],
    &["driver"],
];

/// Layers above the core that may not use all of what lies below: engines know no RESP.
const ONLY_UP_TO: &[(&str, usize)] = &[("engine", 2)];

/// Where `unsafe` may stand.
const UNSAFE: &[&str] = &["src/buf/", "src/engine/", "tests/testkit/src/alloc_count.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no Rust file in {directory}");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("inside").display().to_string()
}

/// The code of a line, without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Modules named by `crate::module` or in `use crate::{…}`.
fn imports(line: &str) -> Vec<&str> {
    let parts = code(line).split("crate::").skip(1);
    parts
        .map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default())
        .filter(|module| !module.is_empty())
        .collect()
}

#[test]
fn imports_go_down() {
    let mut faults = Vec::new();
    for path in rust_files("src") {
        let name = relative(&path);
        let module = name["src/".len()..].split(['/', '.']).next().unwrap_or_default();
        if module == "lib" || module == "manual" {
            continue;
        }
        let Some(own) = layer_of(module) else {
            faults.push(format!("{name}: `{module}` has no layer"));
            continue;
        };
        let highest =
            ONLY_UP_TO.iter().find(|(limited, _)| *limited == module).map_or(own, |(_, layer)| layer + 1);
        for (number, line) in fs::read_to_string(&path).expect("readable").lines().enumerate() {
            assert!(!code(line).contains("crate::{"), "{name}:{}: one `use` per module", number + 1);
            for import in imports(line) {
                // Re-exports at the crate's root are all plain values.
                let layer = layer_of(import).unwrap_or(0);
                if import != module && layer >= highest && !(own == 0 && layer == 0) {
                    faults.push(format!("{name}:{}: {module} imports {import}", number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "imports that go up or sideways:\n{}", faults.join("\n"));
}

#[test]
fn unsafe_stands_where_the_kernel_is() {
    let mut faults = Vec::new();
    for directory in ["src", "tests", "runtime-adapters"] {
        for path in rust_files(directory) {
            let name = relative(&path);
            if name == "tests/tidy.rs" || UNSAFE.iter().any(|place| name.starts_with(place)) {
                continue;
            }
            for (number, line) in fs::read_to_string(&path).expect("readable").lines().enumerate() {
                let words = code(line).split(|c: char| !c.is_alphanumeric() && c != '_');
                if words.into_iter().any(|word| word == "unsafe") {
                    faults.push(format!("{name}:{}", number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "unsafe outside its places:\n{}", faults.join("\n"));
}

#[test]
fn the_core_reads_no_clock_and_rolls_no_dice() {
    let core = ["buf", "client", "command", "connection", "error", "io", "resp"];
    let banned =
        ["Instant::now", "SystemTime::now", "thread::spawn", "thread::sleep", "std::net::Tcp", "rand::"];
    let mut faults = Vec::new();
    for path in core.iter().flat_map(|module| rust_files(&format!("src/{module}"))) {
        let text = fs::read_to_string(&path).expect("readable");
        // Tests at the foot of a file start their virtual clock somewhere.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if path.ends_with("tests.rs") || relative(&path).contains("/tests/") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            faults.extend(
                banned
                    .iter()
                    .filter(|word| code(line).contains(*word))
                    .map(|word| format!("{}:{}: {word}", relative(&path), number + 1)),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nothing_is_left_unfinished() {
    let words = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore"),
    ];
    let mut faults = Vec::new();
    for path in ["src", "tests", "runtime-adapters"].iter().flat_map(|directory| rust_files(directory)) {
        let text = fs::read_to_string(&path).expect("readable");
        faults.extend(
            words
                .iter()
                .filter(|word| text.contains(*word))
                .map(|word| format!("{}: {word}", relative(&path))),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
