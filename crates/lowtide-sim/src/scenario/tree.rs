// SPDX-License-Identifier: MIT OR Apache-2.0
//! TOML whose values know where they stand, and tables that know which keys were asked for.

use super::error::{Lines, Origin, ScenarioError};
use lowtide_net::nearest;
use std::{borrow::Cow, cell::RefCell, fmt::Display, ops::RangeInclusive};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// As it is written, without quotes.
    Text(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A table. A key that was not read is an error in [`Table::finish`].
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) origin: Origin,
    pub(super) entries: Vec<Entry>,
    asked: RefCell<Vec<&'static str>>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) origin: Origin,
    pub(super) node: Node,
}

type Result<T, E = ScenarioError> = std::result::Result<T, E>;

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Result<Table> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(table) => Ok(Table::new(table.get_ref(), Origin::File { line: 1, column: 1 }, &|byte| lines.at(byte))),
        Err(error) => {
            let origin = lines.at(error.span().map_or(0, |span| span.start));
            Err(origin.error(error.message().lines().collect::<Vec<_>>().join(", ")))
        }
    }
}

/// A whole file that has been read already.
pub(super) fn of_table(table: &toml::Table) -> Table {
    let entry = |(key, value): (&String, &toml::Value)| Entry {
        key: key.clone(),
        origin: Origin::Table,
        node: of_value(value),
    };
    Table { entries: table.iter().map(entry).collect(), ..Table::empty(Origin::Table) }
}

fn of_value(value: &toml::Value) -> Node {
    let value = match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Array(values) => Value::Array(values.iter().map(of_value).collect()),
        toml::Value::Table(table) => Value::Table(of_table(table)),
        single => Value::Text(single.to_string()),
    };
    Node { origin: Origin::Table, value }
}

/// Reads one value of an override; what is no TOML is a text.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Node {
    match DeValue::parse(text) {
        Ok(value) => Node::new(&value, &|_| origin.clone()),
        Err(_) => Node { origin: origin.clone(), value: Value::Text(text.to_owned()) },
    }
}

impl Node {
    fn new(value: &Spanned<DeValue<'_>>, place: &impl Fn(usize) -> Origin) -> Self {
        let origin = place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
            DeValue::Integer(number) => Value::Text(
                i64::from_str_radix(number.as_str(), number.radix())
                    .map_or_else(|_| number.to_string(), |number| number.to_string()),
            ),
            DeValue::Float(number) => Value::Text(number.as_str().to_owned()),
            DeValue::Boolean(value) => Value::Text(value.to_string()),
            DeValue::Datetime(time) => Value::Text(time.to_string()),
            DeValue::Array(nodes) => Value::Array(nodes.iter().map(|node| Self::new(node, place)).collect()),
            DeValue::Table(table) => Value::Table(Table::new(table, origin.clone(), place)),
        };
        Self { origin, value }
    }

    /// The value as this type reads it.
    pub(super) fn read<T, E: Display>(&self, key: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T> {
        let Value::Text(text) = &self.value else {
            return Err(self.origin.error(format!("{key}: a single value is expected here")));
        };
        read(text).map_err(|error| self.origin.error(format!("{key}: {error}")))
    }

    /// The value as a table.
    pub(super) fn table(&self, key: &str) -> Result<&Table> {
        match &self.value {
            Value::Table(table) => Ok(table),
            _ => Err(self.origin.error(format!("{key}: a table is expected here, like [{key}]"))),
        }
    }

    /// The value as tables: one, or an array of them.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<&Table>> {
        match &self.value {
            Value::Array(nodes) => nodes.iter().map(|node| node.table(key)).collect(),
            _ => self.table(key).map(|table| vec![table]),
        }
    }
}

impl Table {
    fn new(table: &DeTable<'_>, origin: Origin, place: &impl Fn(usize) -> Origin) -> Self {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let text: &Cow<'_, str> = key.get_ref();
            Entry { key: text.clone().into_owned(), origin: place(key.span().start), node: Node::new(value, place) }
        };
        Self { entries: table.iter().map(entry).collect(), ..Self::empty(origin) }
    }

    pub(super) fn empty(origin: Origin) -> Self {
        Self { origin, entries: Vec::new(), asked: RefCell::default() }
    }

    pub(super) fn get(&self, key: &'static str) -> Option<&Node> {
        self.asked.borrow_mut().push(key);
        self.peek(key)
    }

    /// The same without asking for it.
    pub(super) fn peek(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The table of a key, an empty one if it is not there.
    pub(super) fn table_or_empty(&self, key: &'static str) -> Result<Cow<'_, Table>> {
        match self.get(key) {
            Some(node) => node.table(key).map(Cow::Borrowed),
            None => Ok(Cow::Owned(Self::empty(self.origin.clone()))),
        }
    }

    /// A value, if it is there.
    pub(super) fn read<T, E: Display>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        self.get(key).map(|node| node.read(key, read)).transpose()
    }

    /// A value that has to be there; `example` shows it.
    pub(super) fn need<T, E: Display>(
        &self,
        key: &'static str,
        example: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T> {
        let missing = || match self.entries.iter().find(|entry| likeness(&entry.key, key) >= 600) {
            Some(entry) => entry.origin.error(format!("unknown key `{}`; did you mean `{key}`?", entry.key)),
            None => self.origin.error(format!("`{key}` is missing here; write it like {key} = {example}")),
        };
        self.read(key, read)?.ok_or_else(missing)
    }

    /// An error at this key's value; if it is not there, at the table.
    pub(super) fn error(&self, key: &str, what: impl Into<String>) -> ScenarioError {
        let node = self.peek(key);
        node.map_or(&self.origin, |node| &node.origin).error(what)
    }

    /// Every key must have been asked for.
    pub(super) fn finish(&self) -> Result<()> {
        let asked = self.asked.borrow();
        match self.entries.iter().find(|entry| !asked.contains(&entry.key.as_str())) {
            Some(entry) => Err(entry.origin.error(unknown("key", &entry.key, &asked))),
            None => Ok(()),
        }
    }
}

/// A whole number within a range.
pub(super) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("\"{text}\" is not a whole number from {} to {}", range.start(), range.end()))
    }
}

/// `true` or `false`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("\"{text}\" is neither true nor false"))
}

/// The sentence about a name that does not exist: the nearest one that does, if one is near, and all of them.
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let nearest = nearest(name, known.iter().copied());
    let hint = nearest.map_or("; there are".to_owned(), |nearest| format!("; did you mean `{nearest}`? There are"));
    format!("unknown {kind} `{name}`{hint} {}", list(known))
}

/// From 0 to 1000, for the same name. Where a key is missing, another one is taken for it only if it is more like it
/// than `nearest` asks for: `rtt` is no misspelt `rate`.
fn likeness(a: &str, b: &str) -> u32 {
    (strsim::normalized_damerau_levenshtein(a, b) * 1e3) as u32
}

/// `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
