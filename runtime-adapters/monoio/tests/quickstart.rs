//! The quick start where io_uring is denied: it does the same on epoll, and says why.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the example (`cargo test` has done that, unless it was asked for this test alone) and tells where it is.
fn example() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "-q", "--example", "quickstart", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    // This test is in `deps`, and the examples are beside that.
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/quickstart")
}

// H38
#[test]
fn without_io_uring() {
    let example = example();
    conformance::denied::deny();
    let output = Command::new(example).env_remove("REDIS_URL").output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("ops/s"), "{said}");
    let engine = said.lines().find(|line| line.starts_with("engine: ")).unwrap_or_default();
    for part in ["epoll", "io_uring_setup", "seccomp", "remedy: "] {
        assert!(engine.contains(part), "{engine}");
    }
}
