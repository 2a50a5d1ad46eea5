// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as JSON, on its way from who made it, and as it is kept.

use crate::{Arrival, LabError, RecordedTransfer, Recording, Track, error::Result};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, rc::Rc};

/// The single values that a track can have.
const FACTS: [&str; 7] = ["start", "finish", "due", "timeouts", "base_rtt", "capacity", "standstill_ms"];

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    times: Vec<f64>,
    flows: Vec<TrackOfFile>,
    links: Vec<TrackOfFile>,
}

#[derive(Serialize, Deserialize)]
struct TrackOfFile {
    name: String,
    columns: BTreeMap<String, Vec<Option<f64>>>,
    facts: BTreeMap<String, f64>,
    transfers: Vec<TransferOfFile>,
    spans: Vec<(f64, f64, f64)>,
    /// When the packets that arrived were sent and had arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Vec<(f64, f64)>>,
}

#[derive(Serialize, Deserialize)]
struct TransferOfFile {
    start: f64,
    bytes: f64,
    finish: Option<f64>,
    due: Option<f64>,
}

impl Recording {
    /// All of it, of single packets those that arrived.
    pub fn to_json(&self) -> String {
        let tracks = |tracks: &[Track]| tracks.iter().map(TrackOfFile::of).collect();
        let (flows, links) = (tracks(&self.flows), tracks(&self.links));
        let file = File { version: self.version.clone(), times: self.times.to_vec(), flows, links };
        serde_json::to_string(&file).expect("text keys, and numbers that are finite")
    }

    /// What [`Recording::to_json`] wrote.
    ///
    /// # Errors
    /// It is no recording.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let wrong = |what: &dyn std::fmt::Display| LabError::new(format!("this is no recording of a run: {what}"));
        let file: File = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
        let number = file.times.len();
        let tracks = |tracks: Vec<TrackOfFile>| tracks.into_iter().map(|it| it.track(number)).collect::<Result<_, _>>();
        let (flows, links) = (tracks(file.flows), tracks(file.links));
        let (flows, links) = flows.and_then(|flows| Ok((flows, links?))).map_err(|what: String| wrong(&what))?;
        Ok(Self { times: file.times.into(), flows, links, version: file.version })
    }
}

impl TrackOfFile {
    fn of(track: &Track) -> Self {
        let present = |values: &Rc<[f64]>| values.iter().map(|value| value.is_finite().then_some(*value)).collect();
        let transfer = |&RecordedTransfer { start, bytes, finish, due }: &RecordedTransfer| TransferOfFile {
            start,
            bytes,
            finish,
            due,
        };
        Self {
            name: track.name.clone(),
            columns: track.columns.iter().map(|(name, values)| (name.clone(), present(values))).collect(),
            facts: track.facts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            transfers: track.transfers.iter().map(transfer).collect(),
            spans: track.spans.clone(),
            arrivals: (track.packets.as_ref())
                .map(|packets| packets.arrivals.iter().map(|it| (it.sent, it.arrived)).collect()),
        }
    }

    fn track(self, number: usize) -> Result<Track, String> {
        let column = |(name, values): (String, Vec<Option<f64>>)| match values.len() == number {
            true => Ok((name, values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())),
            false => Err(format!("{name} of {} has {} values for {number} times", self.name, values.len())),
        };
        let fact = |(name, value): (String, f64)| {
            let known = FACTS.into_iter().find(|known| *known == name);
            known.map(|known| (known, value)).ok_or_else(|| format!("{} has the unknown fact {name}", self.name))
        };
        let transfer = |TransferOfFile { start, bytes, finish, due }: TransferOfFile| RecordedTransfer {
            start,
            bytes,
            finish,
            due,
        };
        let arrival = |(sent, arrived)| Arrival { sent, arrived };
        Ok(Track {
            columns: self.columns.into_iter().map(column).collect::<Result<_, _>>()?,
            facts: self.facts.into_iter().map(fact).collect::<Result<_, _>>()?,
            transfers: self.transfers.into_iter().map(transfer).collect(),
            spans: self.spans,
            name: self.name,
            packets: self.arrivals.map(|all| all.into_iter().map(arrival).collect::<Vec<_>>().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let columns = BTreeMap::from([("rate".to_owned(), Rc::from([1.0 / 3.0, f64::NAN]))]);
        let flow = Track {
            name: "bg".to_owned(),
            columns,
            facts: BTreeMap::from([("start", 0.5)]),
            transfers: vec![RecordedTransfer { start: 0.5, bytes: 1e6, finish: None, due: Some(9.0) }],
            spans: vec![(0.0, 1.0, 0.5)],
            packets: Some(vec![Arrival { sent: 0.7, arrived: 1.0 / 3.0 }].into()),
        };
        let link = Track { name: "bottleneck".to_owned(), ..Track::default() };
        let version = Some("1".to_owned());
        Recording { times: Rc::from([0.1, 0.2]), flows: vec![flow], links: vec![link], version }
    }

    #[test]
    fn what_is_written_comes_back() {
        let before = recording();
        let after = Recording::from_json(before.to_json().as_bytes()).unwrap();
        assert_eq!(before.to_json(), after.to_json());
        // as it was kept before there were versions
        let old = Recording { version: None, ..before.clone() }.to_json();
        assert!(!old.contains("version") && Recording::from_json(old.as_bytes()).unwrap().version.is_none());
        let (a, b) = (&before.flows[0], &after.flows[0]);
        assert_eq!((&a.name, &a.facts, &a.transfers, &a.spans), (&b.name, &b.facts, &b.transfers, &b.spans));
        assert_eq!(b.columns["rate"][0], 1.0 / 3.0);
        let arrivals = |track: &Track| track.packets.as_ref().unwrap().arrivals.clone();
        assert_eq!(arrivals(a), arrivals(b));
        assert!(b.columns["rate"][1].is_nan());
    }

    #[test]
    fn what_is_none_is_refused() {
        let text = recording().to_json();
        let error = |text: &str| Recording::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error("{}").contains("no recording"));
        assert!(error(&text.replace("\"start\":0.5}", "\"begin\":0.5}")).contains("unknown fact begin"));
        assert!(error(&text.replace("[0.1,0.2]", "[0.1]")).contains("2 values for 1 times"));
    }
}
