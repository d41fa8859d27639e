//! Prints the objects of one kind, page by page, in the format asked for.

use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;
use serde_json::Value;

use super::cell::Cell;
use super::table::Table;
use super::{Format, OutputArgs, screen};
use crate::cli::kinds::KindInfo;
use crate::cli::{Result, failed};

/// How many objects are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// One, by its name.
    One,
    /// A list that ends.
    List,
    /// A list without end, for as long as it is watched.
    Endless,
}

/// Prints objects as they come.
pub struct Printer {
    kind: &'static KindInfo,
    format: Format,
    amount: Amount,
    headers: bool,
    table: Table,
    printed: usize,
    /// Number of objects of the present kind that were printed.
    of_kind: usize,
    /// Objects of several kinds are printed: each says its kind.
    is_mixed: bool,
    /// A table was printed before this one.
    follows: bool,
}

impl Printer {
    /// For objects of this kind.
    pub fn new(kind: &'static KindInfo, output: OutputArgs, amount: Amount) -> Self {
        let OutputArgs { format, no_headers } = output;
        let headers = !no_headers;
        Self {
            kind,
            format,
            amount,
            headers,
            table: Table::new(titles(kind, format), headers),
            printed: 0,
            of_kind: 0,
            is_mixed: false,
            follows: false,
        }
    }

    /// The same for objects of several kinds, of which each says its kind.
    pub fn mixed(self) -> Self {
        Self {
            is_mixed: true,
            ..self
        }
    }

    /// Goes on with objects of another kind: in tables, with one of its own.
    pub fn turn_to(&mut self, kind: &'static KindInfo) {
        if self.is_table() {
            self.note_none();
            self.follows |= self.of_kind > 0;
            self.table = Table::new(titles(kind, self.format), self.headers);
        }
        self.kind = kind;
        self.of_kind = 0;
    }

    fn is_table(&self) -> bool {
        match self.format {
            Format::Table | Format::Wide | Format::Custom(_) => true,
            Format::Json | Format::Yaml | Format::Name => false,
        }
    }

    /// Says that there is nothing of the present kind.
    fn note_none(&self) {
        if self.of_kind == 0 {
            screen::note(&format!("no {}", self.kind.plural));
        }
    }

    /// Prints the next ones.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn print(&mut self, items: &[Value]) -> Result {
        let is_first = self.of_kind == 0 && !items.is_empty();
        let mut text = self.text(items, SystemClock.now())?;
        if is_first && self.follows && self.is_table() {
            text.insert(0, '\n');
        }
        match self.is_table() {
            true => screen::print(&text),
            false => screen::print_raw(text.as_bytes()),
        }
    }

    /// Prints what belongs behind the last.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn end(&mut self) -> Result {
        match (self.format, self.printed) {
            (Format::Json, 0) if self.amount == Amount::List => screen::print_raw(b"[]\n"),
            (Format::Yaml, 0) if self.amount == Amount::List => screen::print_raw(b"[]\n"),
            (Format::Json, _) if self.amount == Amount::List => screen::print_raw(b"\n]\n"),
            (Format::Table | Format::Wide | Format::Custom(_), _) => {
                self.note_none();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends what was begun when no more can come, so that it can be read all the same.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn close(&mut self) -> Result {
        if self.printed > 0 { self.end() } else { Ok(()) }
    }

    fn text(&mut self, items: &[Value], now: Timestamp) -> Result<String> {
        let before = self.printed;
        self.printed += items.len();
        self.of_kind += items.len();
        match self.format {
            Format::Table | Format::Wide => {
                let wide = self.format == Format::Wide;
                let mut rows = Cell::rows(self.kind.columns(wide), items, now);
                let first = self.kind.columns(wide).next();
                if self.is_mixed && first.is_some_and(|column| column.field == self.kind.id) {
                    for (row, item) in rows.iter_mut().zip(items) {
                        if let Some(name) = row.first_mut() {
                            *name = Cell::new(&self.kind.address(item));
                        }
                    }
                }
                Ok(self.table.rows(&rows))
            }
            Format::Custom(columns) => {
                let row = |item| {
                    let cells = columns.iter().map(|column| Cell::new(&column.text(item)));
                    cells.collect()
                };
                let rows: Vec<Vec<Cell>> = items.iter().map(row).collect();
                Ok(self.table.rows(&rows))
            }
            Format::Name => {
                let names = items.iter().map(|item| self.kind.address(item) + "\n");
                Ok(names.collect())
            }
            Format::Json if self.is_mixed => self.json(&self.kinded(items), before),
            Format::Yaml if self.is_mixed => self.yaml(&self.kinded(items)),
            Format::Json => self.json(items, before),
            Format::Yaml => self.yaml(items),
        }
    }

    /// The same objects, each with its kind.
    fn kinded(&self, items: &[Value]) -> Vec<Value> {
        let mut items = items.to_vec();
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            let kind = || Value::from(self.kind.singular);
            item.entry("kind").or_insert_with(kind);
        }
        items
    }

    fn json(&self, items: &[Value], before: usize) -> Result<String> {
        let mut text = String::new();
        for (index, item) in items.iter().enumerate() {
            match self.amount {
                Amount::Endless => text += &format!("{item}\n"),
                Amount::One => text += &(pretty(item)? + "\n"),
                Amount::List => {
                    text += if before + index == 0 { "[\n" } else { ",\n" };
                    let pretty = pretty(item)?;
                    let lines: Vec<String> = pretty.lines().map(|l| format!("  {l}")).collect();
                    text += &lines.join("\n");
                }
            }
        }
        Ok(text)
    }

    fn yaml(&self, items: &[Value]) -> Result<String> {
        match self.amount {
            Amount::List if items.is_empty() => Ok(String::new()),
            Amount::List => serde_yaml::to_string(items).map_err(failed),
            Amount::One | Amount::Endless => {
                let mut text = String::new();
                for item in items {
                    text += "---\n";
                    text += &serde_yaml::to_string(item).map_err(failed)?;
                }
                Ok(text)
            }
        }
    }
}

/// The titles of the columns of a kind.
fn titles(kind: &'static KindInfo, format: Format) -> Vec<&'static str> {
    match format {
        Format::Custom(columns) => columns.iter().map(|column| column.title.as_str()).collect(),
        format => {
            let columns = kind.columns(format == Format::Wide);
            columns.map(|column| column.title).collect()
        }
    }
}

/// JSON for people and programs.
pub fn pretty(value: &Value) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(failed)
}

/// Prints one whole answer of the server; tables are left to the caller.
///
/// # Errors
/// When the output cannot be written.
pub fn print_one(kind: &'static KindInfo, value: &Value, format: Format) -> Result {
    Printer::new(kind, format.into(), Amount::One).print(std::slice::from_ref(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::kinds;

    fn text(format: Format, amount: Amount, pages: &[&[Value]]) -> String {
        let kind = kinds::named("superadmin").unwrap();
        let mut printer = Printer::new(kind, format.into(), amount);
        let now = Timestamp::from_secs(1_778_500_000);
        let pages = pages.iter().map(|page| printer.text(page, now).unwrap());
        pages.collect()
    }

    #[test]
    fn kinds_are_told_apart() {
        let (group, superadmin) = (kinds::named("group").unwrap(), kinds::named("sa").unwrap());
        let now = Timestamp::from_secs(1_778_500_000);
        let of = |format: Format| {
            let mut printer = Printer::new(group, format.into(), Amount::List).mixed();
            let first = printer.text(&[json!({"name": "eng"})], now).unwrap();
            printer.turn_to(superadmin);
            first + &printer.text(&[json!({"username": "root"})], now).unwrap()
        };
        let table = of(Format::Table);
        let firsts: Vec<&str> = table
            .lines()
            .filter_map(|line| line.split("  ").next())
            .collect();
        assert_eq!(firsts, ["NAME", "group/eng", "NAME", "superadmin/root"]);
        let list: Vec<Value> = serde_json::from_str(&(of(Format::Json) + "\n]\n")).unwrap();
        assert_eq!(list[0], json!({"kind": "group", "name": "eng"}));
        assert_eq!(list[1]["kind"], "superadmin");
        assert_eq!(of(Format::Name), "group/eng\nsuperadmin/root\n");
    }

    #[test]
    fn pages_are_one_list_for_programs() {
        let (a, b) = (json!({"username": "a\u{1b}"}), json!({"username": "b"}));
        let pages: [&[Value]; 2] = [std::slice::from_ref(&a), std::slice::from_ref(&b)];
        let list = text(Format::Json, Amount::List, &pages) + "\n]\n";
        let parsed: Vec<Value> = serde_json::from_str(&list).unwrap();
        assert_eq!(parsed, [a.clone(), b.clone()], "untouched");
        let list = text(Format::Yaml, Amount::List, &pages);
        let parsed: Vec<Value> = serde_yaml::from_str(&list).unwrap();
        assert_eq!(parsed, [a.clone(), b.clone()]);
        let lines = text(Format::Json, Amount::Endless, &pages);
        assert_eq!(lines.lines().count(), 2);
        let name = text(Format::Name, Amount::List, &pages[1..]);
        assert_eq!(name, "superadmin/b\n");
        let one: Value =
            serde_json::from_str(&text(Format::Json, Amount::One, &pages[1..])).unwrap();
        assert_eq!(one, b);
    }
}
