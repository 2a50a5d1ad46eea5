// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passes over a control socket: docs/control-socket.md describes it. Fields may be added; a change of meaning
//! changes the number.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The protocol's number, the field `lowtide` of each frame.
pub const VERSION: u32 = 1;
/// Bytes of a request, at most.
pub const LONGEST_REQUEST: usize = 4096;
/// Bytes of a reply, at most.
pub const LONGEST_REPLY: usize = 1 << 16;
/// The latest deadline that is taken, in seconds from now: ten years.
const LATEST_S: f64 = 10.0 * 366.0 * 86_400.0;
/// The greatest rate that is taken, in bits per second: what 32 bits of bytes hold, as with BPF's pacing.
const GREATEST_RATE_BPS: u64 = 8 * u32::MAX as u64;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub lowtide: u32,
    /// What to do.
    pub command: Command,
    /// With [`Command::Set`] alone, and always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// With [`Command::Share`] alone, and always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Tell the status.
    Status,
    /// Change goal or limits.
    Set,
    /// Send no more than keeps connections alive.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Stop governing a group that was attached to.
    Detach,
    /// Hand over the descriptor of the state per path, for another transfer of the same group.
    Share,
}

/// What transfers have to have in common to share their state per path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// `--group`.
    pub group: String,
    /// The law with its parameters.
    pub law: String,
    /// The BPF programs of this build: what is in the state, and what it means.
    pub build: String,
}

impl Share {
    /// Whether a transfer that has this may hand over its state to one that has `other`.
    ///
    /// # Errors
    /// One sentence: what differs.
    pub fn check(&self, other: &Share) -> Result<()> {
        if self.group != other.group {
            bail!("it is of the group {}", self.group);
        }
        if self.build != other.build {
            bail!("it is of another build of Lowtide");
        }
        if self.law != other.law {
            bail!("its law is {}, not {}", self.law, other.law);
        }
        Ok(())
    }
}

/// What `set` changes; what is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    /// When the transfer has to be finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Due>,
    /// Bytes of the whole transfer; greater than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes that are left to send from now on, in place of `size_bytes`; greater than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_bytes: Option<u64>,
    /// Bits per second that all connections together may send; 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate_bps: Option<u64>,
    /// Bits per second that are aimed for at least; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate_bps: Option<u64>,
    /// The greatest weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub w_max: Option<f64>,
    /// The hours in which it may press; none of them: at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<String>>,
    /// Hours with a limit on the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caps: Option<Vec<String>>,
}

/// A new deadline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// No deadline any more.
    None,
    /// When the wall clock shows this.
    At(Timestamp),
    /// So many seconds from now; greater than 0.
    InS(f64),
}

impl Request {
    /// Of this version.
    #[must_use]
    pub fn new(command: Command) -> Request {
        Request { lowtide: VERSION, command, changes: None, share: None }
    }

    /// Reads a frame, without its end of line.
    ///
    /// # Errors
    /// One sentence: no JSON, another version, or a field that is missing, unknown or out of its range.
    pub fn parse(frame: &[u8]) -> Result<Request> {
        if frame.len() > LONGEST_REQUEST {
            bail!("the request is longer than {LONGEST_REQUEST} bytes");
        }
        check_version(frame)?;
        let request: Request = serde_json::from_slice(frame).context("the request")?;
        match (request.command, &request.changes) {
            (Command::Set, Some(changes)) => changes.check()?,
            (Command::Set, None) => bail!("set without changes: nothing is to be done"),
            (_, Some(_)) => bail!("only set has changes"),
            (_, None) => {}
        }
        match (request.command, &request.share) {
            (Command::Share, None) => bail!("share without what has to be in common"),
            (Command::Share, Some(_)) | (_, None) => {}
            (_, Some(_)) => bail!("only share says what has to be in common"),
        }
        Ok(request)
    }
}

impl Changes {
    fn check(&self) -> Result<()> {
        if *self == Changes::default() {
            bail!("set without changes: nothing is to be done");
        }
        if self.size_bytes.is_some() && self.remaining_bytes.is_some() {
            bail!("size and remaining are both given; give one of them");
        }
        if self.size_bytes == Some(0) || self.remaining_bytes == Some(0) {
            bail!("a size of 0 leaves nothing to send; give a number of bytes");
        }
        if let Some(Due::InS(seconds)) = self.deadline
            && !(seconds > 0.0 && seconds <= LATEST_S)
        {
            bail!("a deadline lies between now and ten years from now");
        }
        let rates = [self.max_rate_bps, self.min_rate_bps];
        if rates.into_iter().flatten().any(|rate| rate > GREATEST_RATE_BPS || (1..8).contains(&rate)) {
            bail!("a rate lies between 8 and {GREATEST_RATE_BPS} bits per second, or is 0 for none");
        }
        Ok(())
    }
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// [`VERSION`].
    pub lowtide: u32,
    /// What was asked for has been done.
    pub ok: bool,
    /// Why not: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How the transfer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

impl Reply {
    /// It is done, and this is how the transfer is.
    #[must_use]
    pub fn done(status: Option<Status>) -> Reply {
        Reply { lowtide: VERSION, ok: true, error: None, status }
    }

    /// It is not done.
    #[must_use]
    pub fn refused(error: &anyhow::Error) -> Reply {
        Reply { lowtide: VERSION, ok: false, error: Some(format!("{error:#}")), status: None }
    }

    /// Reads a frame, without its end of line.
    ///
    /// # Errors
    /// One sentence: no JSON, another version, or a field that is missing.
    pub fn parse(frame: &[u8]) -> Result<Reply> {
        check_version(frame)?;
        serde_json::from_slice(frame).context("the reply")
    }
}

/// How a transfer is. Rates are in bits per second of payload, times in seconds or RFC 3339.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The transfer's name, by which it is found.
    pub name: String,
    /// `run` or `attach`.
    pub kind: String,
    /// `up`, `down` or `both`: which way data go that are governed.
    pub direction: String,
    /// Lowtide's process.
    pub pid: u32,
    /// The program's first word, or what was attached to.
    pub program: String,
    /// The governed group's directory, and its number in the kernel.
    pub group: String,
    /// See [`Status::group`].
    pub group_id: u64,
    /// The control law.
    pub law: String,
    /// When Lowtide began.
    pub started: Timestamp,
    /// When this was seen.
    pub now: Timestamp,
    /// The deadline.
    pub deadline: Option<Timestamp>,
    /// The size announced.
    pub size_bytes: Option<u64>,
    /// Payload that receivers acknowledged; of a download (`run --direction down`) what has arrived.
    pub acknowledged_bytes: u64,
    /// Payload sent again.
    pub retransmitted_bytes: u64,
    /// Over the last two seconds.
    pub rate_bps: f64,
    /// What the deadline needs, within the limits.
    pub needed_bps: Option<f64>,
    /// The weight, and its range.
    pub w: f64,
    /// See [`Status::w`].
    pub w_min: f64,
    /// See [`Status::w`].
    pub w_max: f64,
    /// The limit on the rate of all connections.
    pub max_rate_bps: Option<f64>,
    /// The least rate that is aimed for.
    pub min_rate_bps: Option<f64>,
    /// It is paused.
    pub paused: bool,
    /// Smoothed round-trip time of the connections, in seconds.
    pub srtt_s: Option<f64>,
    /// What of it is queueing delay; of a download that on the way here alone.
    pub queueing_delay_s: Option<f64>,
    /// It is a download that leaves the link to competing flows.
    #[serde(default)]
    pub yields: bool,
    /// Connections.
    pub connections: u32,
    /// Those that are sending; of a download those on which data come.
    pub sending: u32,
    /// Congestion events so far.
    pub losses: u64,
    /// Phantom signals so far.
    pub phantom_signals: u64,
    /// Reductions on account of delay so far.
    pub delay_backoffs: u64,
    /// Bytes over UDP, which is not governed.
    pub udp_sent_bytes: u64,
    /// What the program says of its progress: `run --progress-from`.
    #[serde(default)]
    pub progress: Option<OwnProgress>,
    /// The group whose transfers share a budget.
    #[serde(default)]
    pub budget: Option<String>,
    /// The hours in which it may press; none: at any time.
    #[serde(default)]
    pub windows: Vec<String>,
    /// Hours with a limit on the rate.
    #[serde(default)]
    pub caps: Vec<String>,
    /// The limit on the rate that is in force now: the lesser of [`Status::max_rate_bps`] and the present cap.
    #[serde(default)]
    pub limit_bps: Option<f64>,
    /// Why it takes spare capacity alone, whatever its deadline: `window` or `turn`.
    #[serde(default)]
    pub hold: Option<String>,
    /// When its next window opens, while it is outside of them.
    #[serde(default)]
    pub opens: Option<Timestamp>,
    /// When its window closes.
    #[serde(default)]
    pub closes: Option<Timestamp>,
    /// When it means to be done: a little before the deadline, in a window.
    #[serde(default)]
    pub aim: Option<Timestamp>,
    /// The forecast's kind, as in a report.
    pub outlook: String,
    /// Expected completion.
    pub expected: Option<Timestamp>,
    /// The forecast and the reason of the present rate, in words.
    pub sentence: String,
}

/// How far a program says that it is, in bytes as it counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnProgress {
    /// The program whose output is read so.
    pub from: String,
    /// Done; `None` as long as it has said nothing.
    pub done_bytes: Option<u64>,
    /// Of so many.
    pub total_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Version {
    lowtide: Option<u64>,
}

fn check_version(frame: &[u8]) -> Result<()> {
    if !frame.trim_ascii_start().starts_with(b"{") {
        bail!("a frame is an object in JSON"); // a list would do for the parser
    }
    let found: Version = serde_json::from_slice(frame).context("a frame is an object in JSON")?;
    match found.lowtide {
        Some(version) if version == u64::from(VERSION) => Ok(()),
        Some(other) => {
            bail!("this Lowtide speaks version {VERSION} of the protocol, not {other}; use the same on both sides")
        }
        None => bail!("a frame needs the protocol's version: \"lowtide\": {VERSION}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_back_as_they_were_written() {
        let set = |changes| Request { changes: Some(changes), ..Request::new(Command::Set) };
        for request in [
            Request::new(Command::Status),
            Request::new(Command::Detach),
            Request { share: Some(common("tide")), ..Request::new(Command::Share) },
            set(Changes { deadline: Some(Due::None), ..Changes::default() }),
            set(Changes { deadline: Some(Due::InS(7200.0)), remaining_bytes: Some(7), ..Changes::default() }),
            set(Changes { deadline: Some(Due::At(Timestamp::UNIX_EPOCH)), w_max: Some(0.5), ..Changes::default() }),
            set(Changes { max_rate_bps: Some(5_000_000), min_rate_bps: Some(0), ..Changes::default() }),
            set(Changes { windows: Some(vec!["22:00-06:00".into()]), caps: Some(Vec::new()), ..Changes::default() }),
        ] {
            let text = serde_json::to_vec(&request).unwrap();
            assert_eq!(Request::parse(&text).unwrap(), request, "{}", String::from_utf8_lossy(&text));
        }
    }

    fn common(law: &str) -> Share {
        Share { group: "nightly".into(), law: law.into(), build: "1".into() }
    }

    #[test]
    fn only_what_is_alike_is_shared() {
        let own = common("tide");
        own.check(&common("tide")).unwrap();
        for (other, part) in [
            (Share { group: "weekly".into(), ..own.clone() }, "of the group nightly"),
            (Share { build: "2".into(), ..own.clone() }, "another build"),
            (common("tide:drain=0s"), "its law is tide, not tide:drain=0s"),
        ] {
            let error = own.check(&other).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_request_is_one_sentence() {
        let long = format!("{{\"lowtide\":1,\"command\":\"{}\"}}", "a".repeat(LONGEST_REQUEST));
        for (text, part) in [
            ("", "an object in JSON"),
            ("\u{0}\u{1}", "an object in JSON"),
            ("[1]", "an object in JSON"),
            ("{}", "needs the protocol's version"),
            (r#"{"lowtide":2,"command":"status"}"#, "version 1 of the protocol, not 2"),
            (r#"{"lowtide":1}"#, "command"),
            (r#"{"lowtide":1,"command":"halt"}"#, "unknown variant"),
            (r#"{"lowtide":1,"command":"status","who":"me"}"#, "unknown field"),
            (r#"{"lowtide":1,"command":"status","changes":{"w_max":1}}"#, "only set has changes"),
            (r#"{"lowtide":1,"command":"set"}"#, "without changes"),
            (r#"{"lowtide":1,"command":"share"}"#, "share without"),
            (r#"{"lowtide":1,"command":"share","share":{"group":"a"}}"#, "missing field"),
            (
                r#"{"lowtide":1,"command":"status","share":{"group":"a","law":"tide","build":""}}"#,
                "only share says what",
            ),
            (r#"{"lowtide":1,"command":"set","changes":{}}"#, "without changes"),
            (r#"{"lowtide":1,"command":"set","changes":{"size_bytes":0}}"#, "leaves nothing to send"),
            (r#"{"lowtide":1,"command":"set","changes":{"size_bytes":-1}}"#, "invalid value"),
            (r#"{"lowtide":1,"command":"set","changes":{"size_bytes":1,"remaining_bytes":1}}"#, "both given"),
            (r#"{"lowtide":1,"command":"set","changes":{"deadline":{"in_s":0}}}"#, "between now and ten years"),
            (r#"{"lowtide":1,"command":"set","changes":{"deadline":{"in_s":1e300}}}"#, "between now and ten years"),
            (r#"{"lowtide":1,"command":"set","changes":{"max_rate_bps":7}}"#, "a rate lies between"),
            (r#"{"lowtide":1,"command":"set","changes":{"max_rate_bps":99999999999999}}"#, "a rate lies between"),
            (&long, "longer than 4096 bytes"),
        ] {
            let error = format!("{:#}", Request::parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(part) && !error.contains('\n'), "{text:.90}: {error}");
        }
    }
}
