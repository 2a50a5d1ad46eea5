// SPDX-License-Identifier: MIT OR Apache-2.0
//! restic: an object in JSON a line, with `message_type`. Its total grows while it still looks for files.

use serde::Deserialize;

use super::Progress;

#[derive(Deserialize)]
struct Message {
    message_type: String,
    total_bytes: Option<u64>,
    /// Of a backup; left out where it is 0.
    bytes_done: Option<u64>,
    /// Of `restic restore`.
    bytes_restored: Option<u64>,
    /// Likewise: what was there already.
    bytes_skipped: Option<u64>,
}

/// `before`: what it has said last.
pub(super) fn line(line: &str, before: Option<Progress>) -> Option<Progress> {
    if !line.starts_with('{') {
        return None;
    }
    let message: Message = serde_json::from_str(line).ok()?;
    match message.message_type.as_str() {
        "status" => {
            let restored = message.bytes_restored.unwrap_or(0).saturating_add(message.bytes_skipped.unwrap_or(0));
            Some(Progress { done: message.bytes_done.unwrap_or(restored), total: message.total_bytes? })
        }
        // all is done, however much that is
        "summary" => before.map(|Progress { total, .. }| Progress { done: total, total }),
        _ => None,
    }
}
