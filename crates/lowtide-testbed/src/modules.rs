// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of the kernel's own laws. They belong to a module, so they hold for the whole machine and for all flows
//! of a law.

use crate::laws::Host;
use std::{collections::BTreeMap, fs};

/// The parameters that the flows ask for, by law and name.
pub(crate) type Parameters = BTreeMap<(String, &'static str), u64>;

/// What they ask for.
///
/// # Errors
/// Two of them do not agree, in a sentence.
pub(crate) fn wanted(hosts: &[Host]) -> Result<Parameters, String> {
    let mut wanted = Parameters::new();
    for host in hosts {
        let Host::Kernel(law, parameters) = host else { continue };
        for (name, value) in parameters {
            if wanted.insert((law.clone(), name), *value).is_some_and(|other| other != *value) {
                return Err(format!(
                    "all flows of the kernel's {law} have the same parameters, and these differ in {name}"
                ));
            }
        }
    }
    Ok(wanted)
}

/// Whether this machine's modules have these.
///
/// # Errors
/// The first that differs, in a sentence.
pub(crate) fn check(wanted: &Parameters) -> Result<(), String> {
    for ((law, name), value) in wanted {
        let path = format!("/sys/module/tcp_{law}/parameters/{name}");
        let found = fs::read_to_string(&path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        if !same(&found, *value) {
            return Err(format!("{path} is {}, and {value} is needed", found.trim()));
        }
    }
    Ok(())
}

/// A truth is Y or N there.
fn same(text: &str, value: u64) -> bool {
    match text.trim() {
        "Y" => value == 1,
        "N" => value == 0,
        number => number.parse() == Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_are_letters() {
        assert!(same("Y\n", 1) && same("N\n", 0) && same("724\n", 724));
        assert!(!same("Y\n", 0) && !same("724\n", 725) && !same("x", 0));
    }

    #[test]
    fn flows_of_one_law_agree() {
        let host = |value| Host::Kernel("cdg".to_owned(), vec![("window", value)]);
        assert!(wanted(&[host(8), host(16)]).unwrap_err().contains("differ in window"));
        assert_eq!(wanted(&[host(8), Host::Nobody, host(8)]).unwrap(), [(("cdg".to_owned(), "window"), 8)].into());
        let nowhere = [(("none".to_owned(), "window"), 8)].into();
        assert!(check(&nowhere).unwrap_err().starts_with("/sys/module/tcp_none/parameters/window cannot be read"));
    }
}
