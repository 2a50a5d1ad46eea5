// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws as short texts: `name` or `name:key=value,key=value`.
//!
//! Each law declares its parameters once, with [`parameters!`]; reading, printing, defaults and ranges follow from
//! that.

use std::{fmt, num::NonZeroU32, ops::RangeInclusive, time::Duration};

/// Why a text is no law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LawError {
    /// There is no law of that name.
    #[error("unknown control law `{name}`; did you mean `{nearest}`? There are {known}")]
    Law {
        /// What was written.
        name: String,
        /// The most similar name.
        nearest: &'static str,
        /// All names.
        known: String,
    },
    /// The law has no such parameter.
    #[error("`{law}` has no parameter `{key}`; did you mean `{nearest}`? It has {known}")]
    Parameter {
        /// The law.
        law: &'static str,
        /// What was written.
        key: String,
        /// The most similar parameter.
        nearest: String,
        /// All parameters.
        known: String,
    },
    /// A parameter has no value.
    #[error("`{law}`: `{text}` has no value; write `{text}=…`")]
    NoValue {
        /// The law.
        law: &'static str,
        /// What was written.
        text: String,
    },
    /// A parameter stands there twice.
    #[error("`{law}`: `{key}` is given twice")]
    Twice {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: String,
    },
    /// The value is not one.
    #[error("`{law}`: `{key}={value}` is not possible; {key} is {expected}")]
    Value {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: &'static str,
        /// What was written.
        value: String,
        /// What is possible.
        expected: String,
    },
}

/// A type that a parameter can have.
pub trait Value: Sized + PartialEq + Clone {
    /// Reads a value.
    fn read(text: &str) -> Option<Self>;
    /// Prints it so that [`Value::read`] gives it back.
    fn print(&self) -> String;
    /// What can be written.
    fn expected() -> String;
}

impl Value for bool {
    fn read(text: &str) -> Option<Self> {
        match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    fn print(&self) -> String {
        if *self { "on" } else { "off" }.into()
    }

    fn expected() -> String {
        "on or off".into()
    }
}

impl Value for f64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite())
    }

    fn print(&self) -> String {
        self.to_string()
    }

    fn expected() -> String {
        "a number".into()
    }
}

impl Value for u32 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }

    fn expected() -> String {
        "a whole number".into()
    }
}

/// How often, where that can also be never: written `off`, or 0.
impl Value for Option<NonZeroU32> {
    fn read(text: &str) -> Option<Self> {
        if text == "off" { Some(None) } else { u32::read(text).map(NonZeroU32::new) }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "off".into(), |number| number.to_string())
    }

    fn expected() -> String {
        "a whole number".into()
    }
}

/// Units of time, the largest first.
const UNITS: [(&str, u32); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];

impl Value for Duration {
    fn read(text: &str) -> Option<Self> {
        let at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = text.split_at(at);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let nanos = f64::read(number)? * f64::from(*nanos);
        (0.0..1e18).contains(&nanos).then(|| Self::from_nanos(nanos.round() as u64))
    }

    fn print(&self) -> String {
        let nanos = self.as_nanos();
        let fits = |(_, unit): &&(&str, u32)| nanos != 0 && nanos.is_multiple_of(u128::from(*unit));
        let (name, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[0]);
        format!("{}{name}", nanos / u128::from(*unit))
    }

    fn expected() -> String {
        "a time such as 5ms".into()
    }
}

/// A parameter of a law, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it can be.
    pub possible: String,
    /// Where it has a range: the ends, written like the value.
    pub range: Option<(String, String)>,
    /// What it means.
    pub meaning: String,
}

/// The parameters of one law.
pub trait Parameters: Default + Clone + PartialEq {
    /// The law's name.
    const LAW: &'static str;

    /// The names of the parameters.
    const KEYS: &'static [&'static str];

    /// Reads one parameter's value.
    ///
    /// # Errors
    /// There is no such parameter, or this is no value of it.
    fn set(&mut self, key: &str, value: &str) -> Result<(), LawError>;

    /// All parameters with their values, in the order of [`Parameters::KEYS`].
    fn entries(&self) -> Vec<(&'static str, String)>;

    /// The same with what they mean and can be.
    fn describe(&self) -> Vec<Described>;

    /// What the other parameters are when only the variant is given. A law without variants has one set of defaults.
    fn baseline(&self) -> Self {
        Self::default()
    }
}

/// Reads `key=value,key=value`. A variant decides the defaults of the rest, wherever it stands.
pub(crate) fn read<P: Parameters>(text: &str) -> Result<P, LawError> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (key, value) =
            part.split_once('=').ok_or_else(|| LawError::NoValue { law: P::LAW, text: part.to_owned() })?;
        if pairs.iter().any(|pair| pair.0 == key) {
            return Err(LawError::Twice { law: P::LAW, key: key.to_owned() });
        }
        pairs.push((key, value));
    }
    let mut parameters = P::default();
    if let Some((key, value)) = pairs.iter().find(|pair| pair.0 == VARIANT) {
        parameters.set(key, value)?;
        parameters = parameters.baseline();
    }
    for (key, value) in pairs {
        parameters.set(key, value)?;
    }
    Ok(parameters)
}

/// The parameter that decides the defaults of the others.
const VARIANT: &str = "variant";

/// Prints the law's name and what differs from its defaults.
pub(crate) fn print<P: Parameters>(parameters: &P, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(P::LAW)?;
    let (default, baseline) = (P::default().entries(), parameters.baseline().entries());
    let mut separator = ':';
    for (n, (key, value)) in parameters.entries().into_iter().enumerate() {
        let usual = if key == VARIANT { &default[n].1 } else { &baseline[n].1 };
        if value != *usual {
            write!(f, "{separator}{key}={value}")?;
            separator = ',';
        }
    }
    Ok(())
}

/// The most similar of some names. `lowtide-net` has a function like it; this crate depends on no other of Lowtide.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let similarity = |candidate: &&&str| (strsim::jaro_winkler(name, candidate) * 1e6) as u64;
    known.iter().max_by_key(similarity).copied().unwrap_or("")
}

/// `a, b and c`.
pub(crate) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub(crate) fn unknown_parameter<P: Parameters>(key: &str) -> LawError {
    let nearest = nearest(key, P::KEYS).to_owned();
    LawError::Parameter { law: P::LAW, key: key.to_owned(), nearest, known: list(P::KEYS) }
}

pub(crate) fn bad_value<V: Value>(
    law: &'static str,
    key: &'static str,
    value: &str,
    range: Option<&RangeInclusive<V>>,
) -> LawError {
    LawError::Value { law, key, value: value.to_owned(), expected: possible(range) }
}

/// What a parameter can be.
pub(crate) fn possible<V: Value>(range: Option<&RangeInclusive<V>>) -> String {
    let mut possible = V::expected();
    if let Some(range) = range {
        possible += &format!(" from {} to {}", range.start().print(), range.end().print());
    }
    possible
}

/// Declares the parameters of a law: fields with a default and, where it makes sense, a range.
///
/// Makes the struct, its [`Parameters`], and for each field a method of the same name that sets it after checking its
/// range. With `defaults by f`, `f(variant)` gives the defaults of a variant.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident for $law:literal $(defaults by $defaults:path)? {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr $(, in $range:expr)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub(crate) $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            $(
                $(#[doc = $doc])*
                ///
                /// # Errors
                /// The value is out of its range.
                pub fn $field(mut self, value: $type) -> Result<Self, $crate::LawError> {
                    $(if !$range.contains(&value) {
                        let text = $crate::Value::print(&value);
                        return Err($crate::text::bad_value($law, stringify!($field), &text, Some(&$range)));
                    })?
                    self.$field = value;
                    Ok(self)
                }
            )*
        }

        impl $crate::Parameters for $name {
            const LAW: &'static str = $law;
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn set(&mut self, key: &str, value: &str) -> Result<(), $crate::LawError> {
                match key {
                    $(stringify!($field) => {
                        let range: Option<std::ops::RangeInclusive<$type>> = None;
                        $(let range = range.or(Some($range));)?
                        let wrong =
                            || $crate::text::bad_value::<$type>($law, stringify!($field), value, range.as_ref());
                        let read = <$type as $crate::Value>::read(value).ok_or_else(wrong)?;
                        *self = self.clone().$field(read)?;
                    })*
                    _ => return Err($crate::text::unknown_parameter::<Self>(key)),
                }
                Ok(())
            }

            fn entries(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), $crate::Value::print(&self.$field))),*]
            }

            fn describe(&self) -> Vec<$crate::Described> {
                vec![$({
                    let range: Option<std::ops::RangeInclusive<$type>> = None;
                    $(let range = range.or(Some($range));)?
                    $crate::Described {
                        name: stringify!($field),
                        value: $crate::Value::print(&self.$field),
                        possible: $crate::text::possible::<$type>(range.as_ref()),
                        range: range.map(|range| ($crate::Value::print(range.start()), $crate::Value::print(range.end()))),
                        meaning: concat!($($doc),*).trim().to_owned(),
                    }
                }),*]
            }

            $(fn baseline(&self) -> Self {
                $defaults(self.variant)
            })?
        }
    };
}
pub(crate) use parameters;

/// Declares an enumeration that a parameter can be, with the word for each.
macro_rules! values {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $crate::Value for $name {
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn print(&self) -> String {
                match self {
                    $(Self::$variant => $word,)*
                }
                .into()
            }

            fn expected() -> String {
                format!("one of {}", $crate::text::list(&[$($word),*]))
            }
        }
    };
}
pub(crate) use values;

pub(crate) fn unknown_law(name: &str, known: &[&'static str]) -> LawError {
    LawError::Law { name: name.to_owned(), nearest: nearest(name, known), known: list(known) }
}

#[cfg(test)]
mod tests {
    use crate::{Law, Value, law::reno};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn texts_are_read_and_printed() {
        for text in ["reno", "reno:beta=0.7", "reno:beta=0.7,ecn=on"] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
        assert_eq!("reno:ecn=on,beta=0.5".parse::<Law>().unwrap().to_string(), "reno:ecn=on");
    }

    /// The texts that the documentation promises.
    #[test]
    fn promised_texts() {
        for (text, short) in [
            ("cdg:g=2,shadow=off,ineff=off", "cdg:g=2"),
            ("cdg:shadow=off,ineff=off,tolerance=off", "cdg"),
            ("cdg:window=8,beta=0.5,hystart=off,increase=cubic", "cdg:beta=0.5,hystart=off,increase=cubic"),
            ("cdg:ineff=0", "cdg"),
            ("cdg:ineff=5", "cdg:ineff=5"),
            ("cdg:ineff=off,variant=thesis", "cdg:variant=thesis,ineff=off"),
            ("prague:accel=on,overload=on", "prague:accel=on,overload=on"),
            ("prague:accel_q=1ms", "prague"),
            ("dctcp:accel_q=5%", "dctcp:accel_q=5%"),
            ("reno", "reno"),
            ("cubic:hystart=off", "cubic:hystart=off"),
        ] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), short);
        }
        assert_eq!(
            "cdg:ineff=often".parse::<Law>().unwrap_err().to_string(),
            "`cdg`: `ineff=often` is not possible; ineff is a whole number from off to 65535"
        );
        let unknown = "prague:acel=on".parse::<Law>().unwrap_err().to_string();
        assert!(unknown.starts_with("`prague` has no parameter `acel`; did you mean `accel`?"), "{unknown}");
    }

    #[test]
    fn errors_name_what_is_near() {
        let error = |text: &str| text.parse::<Law>().unwrap_err().to_string();
        assert!(error("renoo").starts_with("unknown control law `renoo`; did you mean `reno`?"));
        assert_eq!(
            error("reno:betta=1"),
            "`reno` has no parameter `betta`; did you mean `beta`? It has beta, whole_segments, hystart, paced and ecn"
        );
        assert_eq!(error("reno:beta=2"), "`reno`: `beta=2` is not possible; beta is a number from 0.01 to 0.99");
        assert_eq!(error("reno:ecn=1"), "`reno`: `ecn=1` is not possible; ecn is on or off");
        assert_eq!(error("reno:ecn"), "`reno`: `ecn` has no value; write `ecn=…`");
        assert_eq!(error("reno:ecn=on,ecn=on"), "`reno`: `ecn` is given twice");
        assert!(reno::Parameters::default().beta(f64::NAN).is_err());
    }

    #[test]
    fn times_are_read_and_printed() {
        for text in ["5ms", "100us", "3s", "1500ms", "0s", "7ns"] {
            assert_eq!(Duration::read(text).unwrap().print(), text);
        }
        assert_eq!(Duration::read("1.5ms"), Some(Duration::from_micros(1500)));
        for text in ["", "5", "ms", "-1ms", "5 m", "infs", "1e99s"] {
            assert_eq!(Duration::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_law_or_an_error(text in "\\PC*") {
            let _ = text.parse::<Law>();
        }

        #[test]
        fn what_is_printed_is_read_back(
            law in prop::sample::select(Law::NAMES),
            key in 0usize..40,
            value in prop_oneof![
                Just("on".to_owned()), Just("off".to_owned()), (0.0..200.0).prop_map(|x: f64| x.to_string()),
                (0u32..300).prop_map(|x| x.to_string()), (0u32..300).prop_map(|x| format!("{x}ms")),
            ],
        ) {
            let law: Law = law.parse().unwrap();
            let keys = law.parameters();
            let text = format!("{law}:{}={value}", keys[key % keys.len()].0);
            if let Ok(law) = text.parse::<Law>() {
                prop_assert_eq!(law.to_string().parse::<Law>().unwrap(), law);
            }
        }
    }
}
