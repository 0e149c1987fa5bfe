//! A report as figures and lists, made of its JSON: single values are figures, lists of objects are tables.

use crate::lang::Lang;
use crate::term::{Screen, Style, grouped, left, right, safe, width, wrap};
use osteon::memory::bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Rows of a table that are printed, unless all are asked for.
const ROWS: usize = 40;

/// Columns of a table; the fields of a report are fewer.
const COLUMNS: usize = 32;

/// Columns that a cell may take where lines are cut.
const WIDEST: usize = 60;

/// Fields in the order in which a reader wants them; others follow.
const ORDER: [&str; 56] = [
    "verdict",
    "explanation",
    "advice",
    "kind",
    "step",
    "request",
    "retained",
    "beyond",
    "frees",
    "bytes_per_step",
    "bytes",
    "nbytes",
    "size",
    "allocated",
    "requested",
    "reserved",
    "idle",
    "cached",
    "limit",
    "time_ns",
    "count",
    "storages",
    "tensors",
    "missed",
    "largest_free",
    "below",
    "above",
    "device",
    "storage",
    "label",
    "from",
    "by",
    "op",
    "reason",
    "site",
    "origin",
    "held",
    "scope",
    "dtype",
    "shape",
    "stride",
    "offset",
    "view",
    "saved",
    "reached",
    "reached_bytes",
    "compact_frees",
    "holders",
    "room",
    "free",
    "compact",
    "events",
    "hint",
    "thread",
    "newest",
    "omitted",
];

/// Fields that count bytes.
const BYTES: [&str; 16] = [
    "bytes",
    "nbytes",
    "size",
    "allocated",
    "requested",
    "reserved",
    "idle",
    "cached",
    "limit",
    "compact_frees",
    "reached_bytes",
    "bytes_per_step",
    "beyond",
    "frees",
    "reached",
    "retained",
];

/// Figures and lists under a heading.
#[derive(Debug, Default, Serialize)]
pub struct Sheet {
    pub title: String,
    pub figures: Vec<(String, String)>,
    pub tables: Vec<Table>,
}

/// A list.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    /// Whether the last rows matter most.
    #[serde(skip)]
    pub newest_last: bool,
}

/// A column of a list.
#[derive(Debug, Serialize)]
pub struct Column {
    pub name: String,
    /// Whether it holds numbers, which stand at the right.
    pub is_number: bool,
}

impl Column {
    pub fn text(name: &str) -> Column {
        let name = name.to_owned();
        Column {
            name,
            is_number: false,
        }
    }

    pub fn number(name: &str) -> Column {
        let is_number = true;
        Column {
            is_number,
            ..Column::text(name)
        }
    }
}

impl Sheet {
    /// The sheet of a report.
    pub fn of_json(title: String, report: &Value) -> Sheet {
        let mut sheet = Sheet {
            title,
            ..Sheet::default()
        };
        if let Value::Object(fields) = report {
            for (key, value) in sorted(fields) {
                if !matches!(key, "schema" | "kind") {
                    sheet.add(key, key, value);
                }
            }
        }
        sheet
    }

    fn add(&mut self, name: &str, key: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (inner, value) in sorted(fields) {
                    self.add(&format!("{name} {inner}"), inner, value);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                self.tables.push(Table::of_json(name, key, items));
            }
            Value::Null => {}
            value => self.figures.push((spaced(name), shown(key, value))),
        }
    }

    pub fn print(
        &self,
        out: &mut dyn Write,
        all: bool,
        screen: Screen,
        lang: Lang,
    ) -> io::Result<()> {
        writeln!(out, "{}", screen.paint(Style::Bold, safe(&self.title)))?;
        let names = self.figures.iter().map(|(name, _)| width(&safe(name)));
        let column = names.max().unwrap_or(0) + 2;
        for (name, value) in &self.figures {
            let name = screen.paint(Style::Dim, left(&safe(name), column));
            let space = screen.width.saturating_sub(2 + column).max(20);
            let mut lines = wrap(&safe(value), space).into_iter();
            writeln!(out, "  {name}{}", lines.next().unwrap_or_default())?;
            for line in lines {
                writeln!(out, "  {:column$}{line}", "")?;
            }
        }
        for table in &self.tables {
            table.print(out, all, screen, lang)?;
        }
        Ok(())
    }
}

impl Table {
    fn of_json(name: &str, key: &str, items: &[Value]) -> Table {
        let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
        let mut keys: Vec<&str> = Vec::new();
        for object in &objects {
            for (key, value) in *object {
                // A column that is empty throughout says nothing.
                if !is_empty(value) && keys.len() < COLUMNS && !keys.contains(&key.as_str()) {
                    keys.push(key);
                }
            }
        }
        keys.sort_by_key(|key| (rank(key), *key));
        let columns = keys.iter().map(|key| Column {
            name: spaced(key),
            is_number: objects
                .iter()
                .any(|o| o.get(*key).is_some_and(Value::is_number)),
        });
        let row = |o: &&Map<String, Value>| {
            let cell = |key: &&str| o.get(*key).map_or(String::new(), |value| shown(key, value));
            keys.iter().map(cell).collect()
        };
        Table {
            name: spaced(name),
            columns: columns.collect(),
            rows: objects.iter().map(row).collect(),
            newest_last: key == "events",
        }
    }

    fn print(&self, out: &mut dyn Write, all: bool, screen: Screen, lang: Lang) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", screen.paint(Style::Bold, safe(&self.name)))?;
        let listed = if all {
            self.rows.len()
        } else {
            self.rows.len().min(ROWS)
        };
        let rest = grouped((self.rows.len() - listed) as u64);
        let more = match lang {
            Lang::En => format!("  … and {rest} more (--all)"),
            Lang::Zh => format!("  ……还有 {rest} 行（--all）"),
        };
        let (rows, before) = match self.newest_last {
            true => (&self.rows[self.rows.len() - listed..], true),
            false => (&self.rows[..listed], false),
        };
        // A long cell in one row must not push all others apart.
        let width_of = |i: usize| {
            let cells = rows.iter().map(|row| width(&safe(&row[i])).min(WIDEST));
            cells
                .chain([width(&safe(&self.columns[i].name))])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width_of).collect();
        let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        let line = screen
            .clip(&self.line(&names, &widths), screen.width)
            .into_owned();
        writeln!(out, "{}", screen.paint(Style::Dim, line))?;
        let is_cut = listed < self.rows.len();
        if is_cut && before {
            writeln!(out, "{}", screen.paint(Style::Dim, more.as_str()))?;
        }
        for row in rows {
            writeln!(
                out,
                "{}",
                screen.clip(&self.line(row, &widths), screen.width)
            )?;
        }
        if is_cut && !before {
            writeln!(out, "{}", screen.paint(Style::Dim, more.as_str()))?;
        }
        Ok(())
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &width), column) in cells.iter().zip(widths).zip(&self.columns) {
            let cell = safe(cell);
            line.push_str("  ");
            line.push_str(&if column.is_number {
                right(&cell, width)
            } else {
                left(&cell, width)
            });
        }
        line.trim_end().to_owned()
    }
}

fn rank(key: &str) -> usize {
    ORDER
        .iter()
        .position(|known| *known == key)
        .unwrap_or(ORDER.len())
}

fn sorted(fields: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut list: Vec<_> = fields
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    list.sort_by_key(|(key, _)| (rank(key), *key));
    list
}

fn spaced(key: &str) -> String {
    key.trim_end_matches("_ns").replace('_', " ")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A value in a cell.
fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => is.to_string(),
        Value::Number(n) if BYTES.contains(&key) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => bytes(n).to_string(),
            (None, Some(n)) => format!("-{}", bytes(n.unsigned_abs())),
            _ => n.to_string(),
        },
        Value::Number(n) if key.ends_with("_ns") => match n.as_u64() {
            Some(ns) => time(ns),
            None => n.to_string(),
        },
        Value::Number(n) => n.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| shown("", item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let words = sorted(fields)
                .into_iter()
                .filter_map(|(key, value)| said(key, value));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// A field of an object that stands in one cell: what does not tell by itself is named.
fn said(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(false) => None,
        Value::Bool(true) => Some(spaced(key)),
        Value::Number(_) if !BYTES.contains(&key) => {
            Some(format!("{} {}", spaced(key), shown(key, value)))
        }
        value => Some(shown(key, value)).filter(|text| !text.is_empty()),
    }
}

/// A length of time in three digits or four.
pub fn time(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_and_tables_of_any_report() {
        let report = json!({
            "schema": 1, "kind": "x", "limit": null, "request": {"bytes": 1536, "op": "zeros", "shape": [2, 3]},
            "events": [{"kind": "alloc", "bytes": 100}, 7, {"kind": "free", "bytes": -2048, "label": ""}],
            "odd_thing": true,
            "pins": [{"beyond": 2048, "tensor": {"op": "t", "site": "a.rs:1", "view": true, "saved": false, "offset": 3, "shape": [2], "label": null}}],
        });
        let sheet = Sheet::of_json("x".into(), &report);
        let figure = |(name, value): &(String, String)| format!("{name}={value}");
        let figures: Vec<_> = sheet.figures.iter().map(figure).collect();
        assert_eq!(
            figures,
            [
                "request bytes=1.50 KiB",
                "request op=zeros",
                "request shape=[2, 3]",
                "odd thing=true"
            ]
        );
        let table = &sheet.tables[0];
        let columns: Vec<_> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(columns, ["kind", "bytes"]);
        assert_eq!(table.rows, [["alloc", "100 B"], ["free", "-2 KiB"]]);
        assert!(table.newest_last);
        assert_eq!(
            sheet.tables[1].rows,
            [["2 KiB", "t a.rs:1 [2] offset 3 view"]]
        );
    }
}
