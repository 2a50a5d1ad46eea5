// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the terminal can do, by its name in the environment.

use std::env;

/// Whether a line can be drawn again. A terminal without a name can.
pub(crate) fn moves() -> bool {
    env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Whether it has colours, and they are wanted: by the convention of no-color.org.
pub(crate) fn has_colour() -> bool {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let named = env::var_os("TERM").is_some_and(|name| !name.to_string_lossy().contains("mono"));
    !unwanted && named && moves()
}
