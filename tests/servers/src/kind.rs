//! Which servers there are, and where their binaries lie.

use std::fmt;
use std::path::{Path, PathBuf};

/// A server the live tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Redis 7.0: the only one built with TLS.
    Redis70,
    /// Redis 8.2.
    Redis82,
    /// Valkey 8.1.
    Valkey81,
    /// Valkey 9.1.
    Valkey91,
}

impl Kind {
    /// Every kind, oldest first.
    pub const ALL: [Self; 4] = [Self::Redis70, Self::Redis82, Self::Valkey81, Self::Valkey91];

    /// The name of its binary, such as `redis-7.0`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis70 => "redis-7.0",
            Self::Redis82 => "redis-8.2",
            Self::Valkey81 => "valkey-8.1",
            Self::Valkey91 => "valkey-9.1",
        }
    }

    /// Whether the binary was built with TLS.
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Redis70)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The binary of `kind`: in the folder `RESPIRAL_SERVERS` names, else in `target/servers`. A relative
/// folder is meant from the workspace's top, since each package's tests run in its own.
///
/// # Panics
///
/// When it is not there; the message is the command that brings it.
#[track_caller]
pub fn find(kind: Kind) -> PathBuf {
    let folder = std::env::var_os("RESPIRAL_SERVERS")
        .filter(|folder| !folder.is_empty())
        .unwrap_or_else(|| "target/servers".into());
    let folder = workspace_top().join(folder);
    let binary = folder.join(kind.name());
    assert!(
        binary.is_file(),
        "{kind} is not in {folder}. To bring it, run: {manifest}/gather {folder}",
        folder = folder.display(),
        manifest = env!("CARGO_MANIFEST_DIR"),
    );
    binary
}

/// The nearest folder above this package whose manifest opens a workspace; the package's own without one.
fn workspace_top() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .find(|folder| {
            std::fs::read_to_string(folder.join("Cargo.toml"))
                .is_ok_and(|manifest| manifest.lines().any(|line| line.starts_with("[workspace")))
        })
        .unwrap_or(package)
}
