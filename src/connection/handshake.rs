//! Set-up of a connection: HELLO, AUTH, CLIENT SETNAME, SELECT, CLIENT SETINFO.
//!
//! ```text
//!            HELLO ok                          every reply in
//!  Hello ───────────────▶ Settings(RESP3) ───────────────────▶ done
//!    │ unknown command, NOPROTO (Auto)             │ LOADING to a step
//!    └───────────────────▶ Settings(RESP2, AUTH first)   └─▶ Waiting ──▶ that step again
//! ```
//! HELLO is alone on the wire until it is answered (CONN-007). The rest leaves in one piece, and every reply is
//! consumed in its order before the first application frame, so no late `OK` can shift a user's reply (F-09).

use super::config::{ConnectionConfig, Protocol};
use crate::buf::Log;
use crate::buf::Payload;
use crate::error::{AuthError, Error, InvalidError, ServerError, code};
use crate::resp::{Decoder, Encoder, FromReply, Token, Value};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The library's name, as servers show it (CLIENT LIST, `lib-name`).
const LIB_NAME: &str = "respiral";

/// What a server without room says before it closes; it has not looked at the step that it seems to answer.
const NO_ROOM: &str = "ERR max number of clients reached";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Hello,
    Auth,
    SetName,
    Select,
    LibName,
    LibVersion,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Hello => "HELLO",
            Step::Auth => "AUTH",
            Step::SetName => "CLIENT SETNAME",
            Step::Select => "SELECT",
            Step::LibName | Step::LibVersion => "CLIENT SETINFO",
        }
    }

    /// Set-up goes on when the server refuses it (F-21, CONN-140).
    fn is_optional(self) -> bool {
        matches!(self, Step::SetName | Step::LibName | Step::LibVersion)
    }

    fn encode(self, config: &ConnectionConfig, out: &mut Log) {
        let mut encoder = Encoder::new(out);
        let credentials = config.credentials.as_ref();
        match (self, credentials) {
            (Step::Hello, None) => {
                encoder.begin(2);
                encoder.arg(b"HELLO");
                encoder.arg(b"3");
            }
            (Step::Hello, Some(credentials)) => {
                encoder.begin(5);
                encoder.arg(b"HELLO");
                encoder.arg(b"3");
                encoder.arg(b"AUTH");
                encoder.arg(credentials.username.as_deref().unwrap_or("default").as_bytes());
                encoder.arg(credentials.password.reveal().as_bytes());
            }
            (Step::Auth, None) => unreachable!("AUTH is a step only with credentials"),
            (Step::Auth, Some(credentials)) => {
                encoder.begin(2 + usize::from(credentials.username.is_some()));
                encoder.arg(b"AUTH");
                if let Some(username) = &credentials.username {
                    encoder.arg(username.as_bytes());
                }
                encoder.arg(credentials.password.reveal().as_bytes());
            }
            (Step::SetName, _) => {
                encoder.begin(3);
                encoder.arg(b"CLIENT");
                encoder.arg(b"SETNAME");
                encoder.arg(config.client_name.as_deref().unwrap_or_default().as_bytes());
            }
            (Step::Select, _) => {
                encoder.begin(2);
                encoder.arg(b"SELECT");
                encoder.uint(config.database.into());
            }
            (Step::LibName, _) => set_info(&mut encoder, b"LIB-NAME", LIB_NAME),
            (Step::LibVersion, _) => set_info(&mut encoder, b"LIB-VER", env!("CARGO_PKG_VERSION")),
        }
    }
}

fn set_info(encoder: &mut Encoder<'_>, attribute: &[u8], value: &str) {
    encoder.begin(4);
    encoder.arg(b"CLIENT");
    encoder.arg(b"SETINFO");
    encoder.arg(attribute);
    encoder.arg(value.as_bytes());
}

/// The set-up of one socket.
pub(super) struct Handshake {
    /// Steps whose replies are owed, in order.
    owed: VecDeque<Step>,
    /// Steps to be sent again, and when: the server was loading.
    again: Vec<Step>,
    again_at: Option<Instant>,
    delay: Duration,
    resp3: bool,
    /// The last LOADING answer, to be told if the time runs out.
    loading: Option<ServerError>,
}

/// What a reply led to.
#[derive(Debug, PartialEq)]
pub(super) enum Progress {
    /// More replies are owed, or a step waits.
    Going,
    /// The connection is ready and speaks this protocol.
    Done,
}

impl Handshake {
    /// First delay before a step that was answered LOADING is sent again; doubles up to a second.
    const FIRST_DELAY: Duration = Duration::from_millis(50);
    const DELAY_MAX: Duration = Duration::from_secs(1);

    /// Begins: writes the first frames to `out`.
    pub fn begin(config: &ConnectionConfig, out: &mut Log) -> Self {
        let mut this = Self {
            owed: VecDeque::new(),
            again: Vec::new(),
            again_at: None,
            delay: Self::FIRST_DELAY,
            resp3: false,
            loading: None,
        };
        if config.protocol == Protocol::Resp2 {
            this.send_settings(config, true, out);
        } else {
            // The reply to HELLO may be in either protocol; errors look the same in both.
            this.resp3 = true;
            this.send(Step::Hello, config, out);
        }
        this
    }

    /// Which protocol is spoken now.
    pub fn resp3(&self) -> bool {
        self.resp3
    }

    /// True when no reply is owed and nothing waits: with RESP2 and nothing to set, set-up is over at once.
    pub fn is_done(&self) -> bool {
        self.owed.is_empty() && self.again.is_empty()
    }

    /// The command whose reply is awaited.
    pub fn awaited(&self) -> &'static str {
        self.owed.front().map_or("SELECT", |step| step.name())
    }

    /// When a step is to be sent again.
    pub fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// True while replies are owed (and so the reply deadline runs).
    pub fn is_waiting_for_reply(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The server's last LOADING answer.
    pub fn loading(&self) -> Option<&ServerError> {
        self.loading.as_ref()
    }

    /// Sends the steps that waited for the server to load.
    pub fn handle_timeout(&mut self, now: Instant, config: &ConnectionConfig, out: &mut Log) {
        if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            for step in std::mem::take(&mut self.again) {
                self.send(step, config, out);
            }
        }
    }

    /// Takes the reply to the oldest step.
    pub fn handle_reply(
        &mut self,
        now: Instant,
        payload: &Payload,
        config: &ConnectionConfig,
        out: &mut Log,
    ) -> Result<Progress, Error> {
        let Some(step) = self.owed.pop_front() else {
            return Err(Error::Protocol(Box::new(crate::error::ProtocolError::new(
                "a reply that nothing asked for",
            ))));
        };
        match error_text(payload) {
            None => self.on_success(step, payload, config, out)?,
            Some(text) => {
                let error = ServerError::parse(&text, Some(step.name().into()));
                // Classified as it came; no password leaves with it.
                self.on_refusal(step, error, config, out).map_err(|error| match &config.credentials {
                    Some(credentials) => error.without(credentials.password.reveal()),
                    None => error,
                })?;
            }
        }
        if self.owed.is_empty() && !self.again.is_empty() && self.again_at.is_none() {
            self.again_at = Some(now + self.delay);
            self.delay = (self.delay * 2).min(Self::DELAY_MAX);
        }
        Ok(if self.is_done() { Progress::Done } else { Progress::Going })
    }

    fn on_success(
        &mut self,
        step: Step,
        payload: &Payload,
        config: &ConnectionConfig,
        out: &mut Log,
    ) -> Result<(), Error> {
        if step == Step::Hello {
            if proto(payload) == Some(2) {
                let error = InvalidError::new("protocol", "the server answered HELLO 3 in RESP2");
                return Err(Error::Config(Box::new(error)));
            }
            tracing::debug!(endpoint = %config.endpoint, "connection speaks RESP3");
            self.send_settings(config, false, out);
        }
        Ok(())
    }

    fn on_refusal(
        &mut self,
        step: Step,
        error: ServerError,
        config: &ConnectionConfig,
        out: &mut Log,
    ) -> Result<(), Error> {
        let endpoint = || config.endpoint.to_string();
        let is_auth = matches!(error.code(), code::NOAUTH | code::WRONGPASS)
            || (error.code() == code::NOPERM && matches!(step, Step::Hello | Step::Auth))
            || step == Step::Auth && !error.is_transient();
        if error.code() == code::LOADING {
            self.loading = Some(error);
            self.again.push(step);
        } else if error.message().starts_with(NO_ROOM) {
            return Err(Error::Server(Box::new(error)));
        } else if is_auth {
            return Err(Error::Auth(Box::new(AuthError::new(endpoint(), error))));
        } else if step == Step::Hello {
            return self.on_hello_refused(error, config, out);
        } else if step.is_optional() {
            tracing::debug!(endpoint = %config.endpoint, step = step.name(), code = error.code(), "optional set-up step refused");
        } else {
            return Err(Error::Server(Box::new(error)));
        }
        Ok(())
    }

    /// CONN-009, CONN-016, CONN-017: only proof that the server does not know RESP3 leads to RESP2.
    fn on_hello_refused(
        &mut self,
        error: ServerError,
        config: &ConnectionConfig,
        out: &mut Log,
    ) -> Result<(), Error> {
        let text = error.message();
        let lower = text.to_ascii_lowercase();
        let unsupported = error.code() == code::NOPROTO || lower.starts_with("err unknown command");
        if unsupported && config.protocol == Protocol::Auto {
            tracing::info!(endpoint = %config.endpoint, "server does not speak RESP3; connection goes on in RESP2");
            self.resp3 = false;
            self.send_settings(config, true, out);
            return Ok(());
        }
        if unsupported {
            let invalid = InvalidError::new("protocol", "RESP3 is required and the server does not speak it");
            return Err(Error::Config(Box::new(invalid.with_server(error))));
        }
        let about_access =
            ["auth", "password", "permission", "acl", "user"].iter().any(|word| lower.contains(word));
        if error.code() != code::ERR {
            return Err(Error::Server(Box::new(error)));
        }
        if about_access {
            return Err(Error::Auth(Box::new(AuthError::new(config.endpoint.to_string(), error))));
        }
        let message =
            format!("the server refused HELLO: {text} (if it speaks only RESP2, set the protocol to RESP2)");
        Err(Error::Config(Box::new(InvalidError::new("protocol", message).with_server(error))))
    }

    fn send(&mut self, step: Step, config: &ConnectionConfig, out: &mut Log) {
        step.encode(config, out);
        self.owed.push_back(step);
    }

    fn send_settings(&mut self, config: &ConnectionConfig, auth: bool, out: &mut Log) {
        let steps = [
            (Step::Auth, auth && config.credentials.is_some()),
            (Step::SetName, config.client_name.is_some()),
            (Step::Select, config.database != 0),
            (Step::LibName, config.set_info),
            (Step::LibVersion, config.set_info),
        ];
        for (step, wanted) in steps {
            if wanted {
                self.send(step, config, out);
            }
        }
    }
}

/// The text of an error reply.
fn error_text(payload: &Payload) -> Option<String> {
    match Decoder::from(payload).token() {
        Ok(Token::Error(text) | Token::BlobError(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    }
}

/// The protocol that HELLO's reply names.
fn proto(payload: &Payload) -> Option<i64> {
    match Value::from_reply(&mut Decoder::from(payload)).ok()? {
        Value::Map(pairs) => {
            let (_, value) = pairs.into_iter().find(|(key, _)| key.as_bytes() == Some(b"proto"))?;
            if let Value::Integer(version) = value { Some(version) } else { None }
        }
        _ => None,
    }
}
