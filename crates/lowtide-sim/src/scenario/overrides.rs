// SPDX-License-Identifier: MIT OR Apache-2.0
//! `key=value` on the command line, over what the file says.

use super::{
    error::{Origin, ScenarioError},
    tree::{Entry, Node, Table, Value, parse_value, unknown},
};

/// Sets `path=value` in a file's table. The path is that of the key, with dots; flows and bottlenecks go by their
/// names, which may be left out where there is only one: `flow.bg.cc`, `bottleneck.rate`.
pub(super) fn apply(root: &mut Table, text: &str) -> Result<(), ScenarioError> {
    let origin = Origin::Override(text.to_owned());
    let Some((path, value)) = text.split_once('=') else {
        return Err(origin.error("there is no value; write it like bottleneck.rate=20mbit"));
    };
    let node = parse_value(value.trim(), &origin);
    let mut keys = path.trim().split('.').peekable();
    let mut table = root;
    while let Some(key) = keys.next() {
        if keys.peek().is_none() {
            set(table, key, node);
            break;
        }
        let place = entry(table, key, &origin);
        table = match &mut place.value {
            Value::Table(table) => {
                keys.next_if(|name| name_in(table).unwrap_or(key) == *name);
                table
            }
            Value::Array(nodes) => element(nodes, key, &mut keys, &origin)?,
            Value::Text(_) => return Err(origin.error(format!("`{key}` is a single value and has no parts"))),
        };
    }
    Ok(())
}

/// The value of a key, an empty table if there is none.
fn entry<'a>(table: &'a mut Table, key: &str, origin: &Origin) -> &'a mut Node {
    let position = table.entries.iter().position(|entry| entry.key == key);
    let position = position.unwrap_or_else(|| {
        let value = Value::Table(Table::empty(origin.clone()));
        set(table, key, Node { origin: origin.clone(), value });
        table.entries.len() - 1
    });
    &mut table.entries[position].node
}

/// The table of an array that the next key names; the only one, if it names none.
fn element<'a, 'k>(
    nodes: &'a mut [Node],
    kind: &str,
    keys: &mut std::iter::Peekable<impl Iterator<Item = &'k str>>,
    origin: &Origin,
) -> Result<&'a mut Table, ScenarioError> {
    let name = keys.peek().copied().unwrap_or_default();
    let names: Vec<String> = nodes.iter().filter_map(name_of).map(str::to_owned).collect();
    let position = match nodes.iter().position(|node| name_of(node) == Some(name)) {
        Some(position) => {
            keys.next();
            position
        }
        None if nodes.len() == 1 => 0,
        None => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(origin.error(unknown(kind, name, &names)));
        }
    };
    match &mut nodes[position].value {
        Value::Table(table) => Ok(table),
        _ => Err(origin.error(format!("`{kind}` has no parts"))),
    }
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Table(table) => name_in(table),
        _ => None,
    }
}

fn name_in(table: &Table) -> Option<&str> {
    match &table.peek("name")?.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

fn set(table: &mut Table, key: &str, node: Node) {
    match table.entries.iter_mut().find(|entry| entry.key == key) {
        Some(entry) => entry.node = node,
        None => table.entries.push(Entry { key: key.to_owned(), origin: node.origin.clone(), node }),
    }
}
