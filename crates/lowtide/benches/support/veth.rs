// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two network namespaces with nothing between them that limits.

use std::process::Command;

use lowtide_emu::Namespace;

/// The second one's address.
pub(crate) const B: &str = "10.78.0.2";

/// The two, with names of their own for this process.
pub(crate) fn pair(what: &str) -> (Namespace, Namespace) {
    let name = |side| format!("lt{what}{}{side}", std::process::id());
    let (a, b) = (Namespace::create(&name("a")).unwrap(), Namespace::create(&name("b")).unwrap());
    ip(&format!("-n {} link add veth0 type veth peer name veth0 netns {}", a.name(), b.name()));
    for (namespace, address) in [(&a, "10.78.0.1"), (&b, B)] {
        ip(&format!("-n {} address add {address}/30 dev veth0", namespace.name()));
        ip(&format!("-n {} link set veth0 up", namespace.name()));
    }
    (a, b)
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {arguments}");
}
