// SPDX-License-Identifier: MIT OR Apache-2.0
//! The release of this kernel, for what the kernel itself does not say.

use nix::sys::utsname::uname;

/// The first kernel that registers a law by a link.
pub(crate) const LINKS_SINCE: (u32, u32) = (6, 4);

/// The first two numbers of this kernel's release.
pub(crate) fn release() -> (u32, u32) {
    version(&release_text())
}

/// Its release as the kernel says it; empty if it says nothing.
pub(crate) fn release_text() -> String {
    uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// The first two numbers of a release.
pub(crate) fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases() {
        assert_eq!(version("6.18.44-fc-v669"), (6, 18));
        assert_eq!(version("6.1.0-25-amd64"), (6, 1));
        assert_eq!(version("garbage"), (0, 0));
    }
}
