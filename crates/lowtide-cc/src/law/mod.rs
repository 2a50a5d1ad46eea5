// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws, one file each, and their registry.

pub mod bbr1;
pub mod bbr2;
pub mod bbr3;
pub mod cdg;
pub mod cubic;
pub mod dctcp;
pub mod eclipse;
pub mod ledbat;
pub mod ledbatpp;
pub mod lp;
pub mod nice;
pub mod prague;
pub mod proteus;
pub mod reno;
pub mod tide;
pub mod vegas;

pub mod bbr;
mod loss_based;

#[cfg(test)]
mod delay_based;

/// The flow that a law controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments of the initial window (RFC 6928: 10). Laws with their own ignore it.
    pub initial_window: u32,
    /// Seed of the law's random numbers.
    pub seed: u64,
}

/// A law's use of Explicit Congestion Notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// No ECN: packets are not ECT.
    #[default]
    Off,
    /// RFC 3168: ECT(0), the receiver echoes until it sees CWR.
    Classic,
    /// ECT(0) with exact feedback of every mark, as in DCTCP (RFC 8257).
    Accurate,
    /// ECT(1) with exact feedback (RFC 9331).
    L4s,
}

impl EcnUse {
    /// Classic ECN, if enabled.
    pub(crate) const fn classic(wanted: bool) -> Self {
        if wanted { Self::Classic } else { Self::Off }
    }
}

/// Declares the registry: one line for each law.
macro_rules! laws {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident($module:ident),)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($(#[$doc])* $variant($module::Parameters),)*
        }

        impl $name {
            /// The names of all laws.
            pub const NAMES: &'static [&'static str] = &[$(<$module::Parameters as $crate::Parameters>::LAW),*];

            /// The law's name, without parameters.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$module::Parameters as $crate::Parameters>::LAW,)*
                }
            }

            /// Every parameter with its value.
            pub fn parameters(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$variant(parameters) => $crate::Parameters::entries(parameters),)*
                }
            }

            /// The same with what each means and can be.
            pub fn describe(&self) -> Vec<$crate::Described> {
                match self {
                    $(Self::$variant(parameters) => $crate::Parameters::describe(parameters),)*
                }
            }

            /// The state of a flow that the law controls.
            pub fn build(&self, flow: &$crate::Flow) -> Box<dyn $crate::CongestionControl> {
                match self {
                    $(Self::$variant(parameters) => parameters.build(flow),)*
                }
            }

            /// What it asks of ECN.
            pub const fn ecn_use(&self) -> $crate::EcnUse {
                match self {
                    $(Self::$variant(parameters) => parameters.ecn_use(),)*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::LawError;

            /// Reads `name` or `name:key=value,key=value`.
            ///
            /// # Errors
            /// There is no such law or parameter, or a value is not possible.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                match name {
                    $(<$module::Parameters as $crate::Parameters>::LAW => {
                        $crate::text::read::<$module::Parameters>(rest).map(Self::$variant)
                    })*
                    _ => Err($crate::text::unknown_law(name, Self::NAMES)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant(parameters) => $crate::text::print(parameters, f),)*
                }
            }
        }
    };
}

laws! {
    /// A law with its parameters. Written as its name and its differences from the defaults: `reno` or
    /// `cubic:beta=0.8`.
    pub enum Law {
        /// TCP Reno.
        Reno(reno),
        /// TCP CUBIC.
        Cubic(cubic),
        /// BBR, version 1.
        Bbr1(bbr1),
        /// BBR, version 2.
        Bbr2(bbr2),
        /// BBR, version 3.
        Bbr3(bbr3),
        /// CDG: delay gradients.
        Cdg(cdg),
        /// Eclipse: a small part of the delay's range.
        Eclipse(eclipse),
        /// TCP Vegas.
        Vegas(vegas),
        /// LEDBAT (RFC 6817).
        Ledbat(ledbat),
        /// LEDBAT++.
        LedbatPlusPlus(ledbatpp),
        /// TCP-LP.
        LowPriority(lp),
        /// TCP Nice.
        Nice(nice),
        /// PCC Proteus.
        Proteus(proteus),
        /// Tide, a law of our own.
        Tide(tide),
        /// Data Center TCP.
        Dctcp(dctcp),
        /// TCP Prague.
        Prague(prague),
    }
}
