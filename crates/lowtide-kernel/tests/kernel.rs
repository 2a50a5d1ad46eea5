// SPDX-License-Identifier: MIT OR Apache-2.0
use lowtide_kernel::*;
#[test]
fn loads() {
    let d = diagnose();
    for f in &d.features { println!("{f:?}"); }
}
