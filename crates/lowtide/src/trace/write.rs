// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records as JSON lines or CSV.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use jiff::Timestamp;
use lowtide_kernel::trace::{
    Record,
    names::{Scale, Shown, Value},
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::read::VERSION;
use crate::cli::TraceFormat;

/// The fields of each record but for the law's own, with units.
const FIELDS: [(&str, &str); 20] = [
    ("t_us", "µs since the trace began, of the monotonic clock"),
    ("connection", "number in this trace"),
    ("law", ""),
    ("event", ""),
    ("local_port", ""),
    ("peer", "address and port"),
    ("direction", "up: what this end sends is governed; down: what it receives"),
    ("cwnd", "segments"),
    ("ssthresh", "segments"),
    ("stack_cwnd", "segments; of a download the window in its latest ACK"),
    ("in_flight", "segments; of a download those that the sender may have in flight"),
    ("srtt_us", "µs"),
    ("rtt_min_us", "µs, since the round began"),
    ("rtt_max_us", "µs, since the round began"),
    ("delivered", "segments, since the round began"),
    ("marked", "of those, with CE"),
    ("weight", "w"),
    ("state", "of the stack; of a download what the law does with it"),
    ("inode", "of the socket"),
    ("dropped", "records that did not fit into the buffer, in records of the event dropped"),
];

/// A law that is traced, in the order of the records' sources.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) law: String,
    pub(super) text: String,
    pub(super) values: &'static [Value],
}

/// What a field has.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Nothing,
    Whole(u64),
    Number(f64),
    Switch(bool),
    Word(String),
}

impl Cell {
    fn word(text: &str) -> Cell {
        Cell::Word(text.to_owned())
    }

    fn some(value: Option<impl Into<u64>>) -> Cell {
        value.map_or(Cell::Nothing, |value| Cell::Whole(value.into()))
    }
}

impl From<Shown> for Cell {
    fn from(shown: Shown) -> Cell {
        match shown {
            Shown::Nothing => Cell::Nothing,
            Shown::Number(number) => Cell::Number(number),
            Shown::Switch(on) => Cell::Switch(on),
            Shown::Word(word) => Cell::word(word),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Nothing => serializer.serialize_none(),
            Cell::Whole(number) => serializer.serialize_u64(*number),
            Cell::Number(number) => serializer.serialize_f64(*number),
            Cell::Switch(on) => serializer.serialize_bool(*on),
            Cell::Word(word) => serializer.serialize_str(word),
        }
    }
}

impl std::fmt::Display for Cell {
    /// As in CSV. No word of ours has a comma or a quote.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Nothing => Ok(()),
            Cell::Whole(number) => number.fmt(f),
            Cell::Number(number) => number.fmt(f),
            Cell::Switch(on) => u8::from(*on).fmt(f),
            Cell::Word(word) => f.write_str(word),
        }
    }
}

/// A JSON object with its fields in this order; those that have nothing are left out, but for a law's.
struct Line<'a> {
    fields: &'a [Cell],
    values: Option<Vec<(&'static str, Cell)>>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for ((name, _), cell) in FIELDS.iter().zip(self.fields).filter(|(_, cell)| **cell != Cell::Nothing) {
            map.serialize_entry(name, cell)?;
        }
        if let Some(values) = &self.values {
            map.serialize_entry("values", &Entries(values))?;
        }
        map.end()
    }
}

struct Entries<'a, T>(&'a [(&'static str, T)]);

impl<T: Serialize> Serialize for Entries<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct Header<'a> {
    lowtide_trace: u64,
    version: &'static str,
    started: String,
    fields: Entries<'a, &'static str>,
    laws: Vec<HeaderLaw<'a>>,
}

#[derive(Serialize)]
struct HeaderLaw<'a> {
    law: &'a str,
    parameters: &'a str,
    values: Vec<HeaderValue>,
}

#[derive(Serialize)]
struct HeaderValue {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    /// What the kernel's integer is multiplied by, where it is a number.
    scale: Option<f64>,
    /// Where it is a word, those that there are.
    words: Option<&'static [&'static str]>,
}

impl From<&Value> for HeaderValue {
    fn from(value: &Value) -> HeaderValue {
        let (scale, words) = match value.scale {
            Scale::Number(unit) => (Some(unit), None),
            Scale::Word(words) => (None, Some(words)),
            Scale::Chance | Scale::Switch => (None, None),
        };
        HeaderValue { name: value.name, unit: value.unit, about: value.about, scale, words }
    }
}

/// Writes a trace.
pub(super) struct Writer<W> {
    out: W,
    format: TraceFormat,
    sources: Vec<Source>,
    /// When the trace began.
    start_ns: u64,
    /// In the order of their first records.
    connections: HashMap<(usize, u32), u64>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Writes what stands before the records. `start_ns` and `started` are the same instant.
    pub(super) fn start(
        mut out: W,
        format: TraceFormat,
        sources: Vec<Source>,
        start_ns: u64,
        started: Timestamp,
    ) -> io::Result<Writer<W>> {
        match format {
            TraceFormat::Jsonl => {
                let laws = sources.iter().map(|source| HeaderLaw {
                    law: &source.law,
                    parameters: &source.text,
                    values: source.values.iter().map(HeaderValue::from).collect(),
                });
                let header = Header {
                    lowtide_trace: VERSION,
                    version: env!("CARGO_PKG_VERSION"),
                    started: started.to_string(),
                    fields: Entries(&FIELDS),
                    laws: laws.collect(),
                };
                serde_json::to_writer(&mut out, &header)?;
                writeln!(out)?;
            }
            TraceFormat::Csv => {
                let names = FIELDS.iter().map(|(name, _)| (*name).to_owned());
                let names: Vec<_> =
                    names.chain(columns(&sources).map(|(law, value)| format!("{law}.{}", value.name))).collect();
                writeln!(out, "{}", names.join(","))?;
            }
        }
        Ok(Writer { out, format, sources, start_ns, connections: HashMap::new(), records: 0 })
    }

    /// A record.
    pub(super) fn record(&mut self, record: &Record) -> io::Result<()> {
        let next = self.connections.len() as u64 + 1;
        let number = *self.connections.entry((record.source, record.connection)).or_insert(next);
        let Some(source) = self.sources.get(record.source) else { return Ok(()) };
        self.records += 1;
        let fields = [
            self.micros(record.time_ns),
            Cell::Whole(number),
            Cell::word(&source.law),
            Cell::word(record.event),
            Cell::Whole(record.local_port.into()),
            Cell::Word(record.remote.to_string()),
            Cell::word(record.direction.name()),
            Cell::Number(record.cwnd),
            record.ssthresh.map_or(Cell::Nothing, Cell::Number),
            Cell::Whole(record.stack_cwnd.into()),
            Cell::Whole(record.in_flight.into()),
            Cell::some(record.srtt_us),
            Cell::some(record.rtt_min_us),
            Cell::some(record.rtt_max_us),
            Cell::Whole(record.delivered.into()),
            Cell::Whole(record.marked.into()),
            record.weight.map_or(Cell::Nothing, Cell::Number),
            Cell::word(record.state),
            Cell::some(record.inode),
            Cell::Nothing,
        ];
        let shown = |(value, written): (&Value, &i64)| (value.name, Cell::from(value.show(*written)));
        let values: Vec<_> = source.values.iter().zip(&record.values).map(shown).collect();
        self.line(&fields, Some((record.source, values)))
    }

    /// So many records were dropped since the last time.
    pub(super) fn dropped(&mut self, now_ns: u64, records: u64) -> io::Result<()> {
        let mut fields = vec![Cell::Nothing; FIELDS.len()];
        fields[0] = self.micros(now_ns);
        fields[3] = Cell::word("dropped");
        fields[FIELDS.len() - 1] = Cell::Whole(records);
        self.line(&fields, None)
    }

    /// Records and connections so far.
    pub(super) fn count(&self) -> (u64, usize) {
        (self.records, self.connections.len())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn micros(&self, time_ns: u64) -> Cell {
        Cell::Number((i128::from(time_ns) - i128::from(self.start_ns)) as f64 / 1e3)
    }

    fn line(&mut self, fields: &[Cell], values: Option<(usize, Vec<(&'static str, Cell)>)>) -> io::Result<()> {
        match self.format {
            TraceFormat::Jsonl => {
                let values = values.map(|(_, values)| values);
                serde_json::to_writer(&mut self.out, &Line { fields, values })?;
            }
            TraceFormat::Csv => {
                let (law, values) = match &values {
                    Some((source, values)) => (self.sources[*source].law.as_str(), values.as_slice()),
                    None => ("", &[][..]),
                };
                let own = columns(&self.sources).map(|(of, value)| {
                    let found = values.iter().find(|(name, _)| of == law && *name == value.name);
                    found.map_or(Cell::Nothing, |(_, cell)| cell.clone())
                });
                let cells: Vec<_> = fields.iter().cloned().chain(own).map(|cell| cell.to_string()).collect();
                write!(self.out, "{}", cells.join(","))?;
            }
        }
        writeln!(self.out)
    }
}

/// The laws' own columns: each law once.
fn columns(sources: &[Source]) -> impl Iterator<Item = (&str, &'static Value)> {
    let first = |at: usize| sources[..at].iter().all(|other| other.law != sources[at].law);
    let laws = (0..sources.len()).filter(move |at| first(*at)).map(|at| &sources[at]);
    laws.flat_map(|source| source.values.iter().map(|value| (source.law.as_str(), value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_kernel::{Direction, trace::names};

    fn source(law: &str) -> Source {
        Source { law: law.to_owned(), text: format!("{law}:x=1"), values: names::values(law, true) }
    }

    fn record(source: usize, connection: u32, values: &[i64]) -> Record {
        Record {
            time_ns: 3_500,
            source,
            connection,
            event: "loss",
            inode: None,
            cgroup: 1,
            direction: Direction::Up,
            cwnd: 2.5,
            ssthresh: None,
            stack_cwnd: 2,
            in_flight: 1,
            srtt_us: Some(40_000),
            rtt_min_us: Some(39_000),
            rtt_max_us: None,
            delivered: 7,
            marked: 0,
            weight: Some(0.25),
            state: "recovery",
            local_port: 40_000,
            remote: "[2001:db8::1]:443".parse().unwrap(),
            values: values.to_vec(),
        }
    }

    fn written(format: TraceFormat) -> Vec<String> {
        let mut bytes = Vec::new();
        let sources = vec![source("vegas"), source("ledbat"), source("vegas")];
        let mut writer = Writer::start(&mut bytes, format, sources, 1_000, Timestamp::UNIX_EPOCH).unwrap();
        writer.record(&record(1, 5, &[39_000, i64::MIN, 60_000])).unwrap();
        writer.record(&record(2, 5, &[38_000, 3, 1 << 17, 1])).unwrap();
        writer.dropped(1_001_000, 12).unwrap();
        assert_eq!(writer.count(), (2, 2));
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn json_lines_begin_with_what_the_fields_are() {
        let lines: Vec<serde_json::Value> =
            written(TraceFormat::Jsonl).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [header, first, second, dropped] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&header["lowtide_trace"], &header["started"]), (&1.into(), &"1970-01-01T00:00:00Z".into()));
        assert_eq!(header["laws"][0]["values"][2]["name"], "alpha");
        assert_eq!(header["laws"][0]["values"][2]["scale"], 1.0 / 65_536.0);
        assert_eq!((&first["t_us"], &first["law"], &first["connection"]), (&2.5.into(), &"ledbat".into(), &1.into()));
        assert_eq!((&first["peer"], &first["weight"]), (&"[2001:db8::1]:443".into(), &0.25.into()));
        assert!(first.get("ssthresh").is_none() && first["values"]["queuing_us"].is_null(), "{first}");
        assert_eq!((&second["connection"], &second["values"]["alpha"]), (&2.into(), &2.0.into()));
        assert_eq!(
            (&dropped["event"], &dropped["dropped"], &dropped["t_us"]),
            (&"dropped".into(), &12.into(), &1000.0.into())
        );
    }

    #[test]
    fn the_reader_takes_what_the_writer_gives() {
        let trace = super::super::read::read(&written(TraceFormat::Jsonl).join("\n")).unwrap();
        assert_eq!((trace.connections.len(), trace.dropped), (2, 12));
        assert_eq!(trace.connections[&1].points[0].rtt_min_us, Some(39_000.0));
    }

    #[test]
    fn csv_has_a_column_for_each_value_of_each_law() {
        let lines = written(TraceFormat::Csv);
        let rows: Vec<Vec<&str>> = lines.iter().map(|line| line.split(',').collect()).collect();
        let at = |name: &str| rows[0].iter().position(|it| *it == name).unwrap();
        assert!(rows.iter().all(|row| row.len() == FIELDS.len() + 4 + 3), "{lines:?}");
        assert_eq!((rows[1][at("ledbat.base_us")], rows[1][at("ledbat.queuing_us")]), ("39000", ""));
        assert_eq!((rows[1][at("vegas.diff")], rows[2][at("vegas.diff")]), ("", "3"));
        assert_eq!((rows[2][at("vegas.enabled")], rows[2][at("ssthresh")]), ("1", ""));
        assert_eq!((rows[3][at("event")], rows[3][at("dropped")]), ("dropped", "12"));
    }
}
