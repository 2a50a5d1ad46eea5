// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a model. Means are over the measured span, from `measure_from` to the end.

use serde::Serialize;

/// What came of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The sources, in the order of the model.
    pub sources: Vec<SourceOutcome>,
    /// The link.
    pub link: LinkOutcome,
    /// The spans that the model asks for.
    pub spans: Vec<SpanOutcome>,
    /// The time series.
    pub samples: Vec<Sample>,
    /// The seed.
    pub seed: u64,
}

/// What became of a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceOutcome {
    /// Its name.
    pub name: String,
    /// Its mean rate in units while it was there.
    pub mean_rate: f64,
    /// Units times seconds sent in all.
    pub sent: f64,
    /// Its transfer, if it has a deadline; a list, as flows of packets have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<TransferOutcome>,
}

/// What became of a transfer with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransferOutcome {
    /// Units times seconds that it had to send.
    pub size: f64,
    /// When it began, in seconds.
    pub start_s: f64,
    /// When it was due, in seconds.
    pub due_s: f64,
    /// When it was done, in seconds; `None`: never.
    pub finished_s: Option<f64>,
    /// Whether it was done by then; `None`: it was not, but neither was it due before all ended.
    pub met: Option<bool>,
    /// From the deadline to its end, in seconds: negative if it was early; if it was never done, the least that it can
    /// have been. `None` as for `met`.
    pub late_s: Option<f64>,
}

/// What became of the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkOutcome {
    /// Its mean capacity in units.
    pub capacity: f64,
    /// Share of it that the sources' rates make.
    pub utilisation: f64,
    /// The mean probability of loss.
    pub loss: f64,
}

/// Means over a span of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanOutcome {
    /// Where it begins, in seconds.
    pub from_s: f64,
    /// Where it ends, in seconds.
    pub to_s: f64,
    /// The sources that were there in it.
    pub flows: Vec<SpanSource>,
}

/// A source in a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanSource {
    /// Its name.
    pub name: String,
    /// Its mean rate in units over the whole span.
    pub mean_rate: f64,
    /// That as a part of what it would have had if, while it was there, all had shared the capacity equally.
    pub of_fair_share: f64,
    /// The mean of ζ in units, of a transfer that was not past its deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The mean of its weight while it was there.
    pub weight: f64,
}

/// Means over a sample interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The end of the interval, in seconds.
    pub time_s: f64,
    /// The link.
    pub link: LinkOutcome,
    /// The sources, in the order of the model.
    pub sources: Vec<SourceSample>,
}

/// A source in a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceSample {
    /// Its mean rate, in units.
    pub rate: f64,
    /// What steers it at the end of the interval; `None` while it is not there.
    pub state: Option<SourceState>,
}

/// What steers a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceState {
    /// w.
    pub weight: f64,
    /// φ; 1 where it is not measured.
    pub price_ratio: f64,
    /// ζ in units, of a transfer that is not past its deadline.
    pub target: Option<f64>,
}

impl Outcome {
    /// The mean rate in units of the source at this place, between two instants in seconds that are multiples of the
    /// sample interval.
    #[must_use]
    pub fn mean_rate(&self, source: usize, from_s: f64, to_s: f64) -> f64 {
        let within = |sample: &&Sample| sample.time_s > from_s + 1e-9 && sample.time_s <= to_s + 1e-9;
        let (sum, number) = self
            .samples
            .iter()
            .filter(within)
            .fold((0.0, 0.0), |(sum, number), sample| (sum + sample.sources[source].rate, number + 1.0));
        if number > 0.0 { sum / number } else { 0.0 }
    }
}
