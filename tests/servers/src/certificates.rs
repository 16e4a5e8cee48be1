//! Certificates for a server with TLS: an authority of its own, and what it signed for 127.0.0.1.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Extensions are spelled out here, because the defaults differ between installations.
const OPENSSL_CONFIG: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = respiral test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
";

/// PEM files in a server's directory.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Writes them into `directory`, with the program `openssl`.
    pub(crate) fn write(directory: &Path) -> io::Result<Self> {
        fs::write(directory.join("openssl.cnf"), OPENSSL_CONFIG)?;
        request(directory, "authority", "/CN=respiral test authority", &[])?;
        let signed_by = ["-CA", "authority.pem", "-CAkey", "authority.key"];
        request(directory, "server", "/CN=localhost", &signed_by)?;
        Ok(Self {
            authority: directory.join("authority.pem"),
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
        })
    }
}

/// Makes the key and certificate `name`, with the extensions of that name.
fn request(directory: &Path, name: &str, subject: &str, more: &[&str]) -> io::Result<()> {
    let output = Command::new("openssl")
        .current_dir(directory)
        .args(["req", "-x509", "-config", "openssl.cnf", "-days", "30"])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-nodes", "-subj", subject, "-extensions", name])
        .args(["-keyout", &format!("{name}.key")])
        .args(["-out", &format!("{name}.pem")])
        .args(more)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("openssl: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("openssl req for {name}: {said}")))
}
