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
    table: Table,
    printed: usize,
}

impl Printer {
    /// For objects of this kind.
    pub fn new(kind: &'static KindInfo, output: OutputArgs, amount: Amount) -> Self {
        let OutputArgs { format, no_headers } = output;
        let titles = kind
            .columns(format == Format::Wide)
            .map(|column| column.title)
            .collect();
        Self {
            kind,
            format,
            amount,
            table: Table::new(titles, !no_headers),
            printed: 0,
        }
    }

    /// Prints the next ones.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn print(&mut self, items: &[Value]) -> Result {
        let text = self.text(items, SystemClock.now())?;
        match self.format {
            Format::Table | Format::Wide => screen::print(&text),
            Format::Json | Format::Yaml | Format::Name => screen::print_raw(text.as_bytes()),
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
            (Format::Table | Format::Wide, 0) => {
                screen::note(&format!("no {}", self.kind.plural));
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
        match self.format {
            Format::Table | Format::Wide => {
                let wide = self.format == Format::Wide;
                let rows = Cell::rows(self.kind.columns(wide), items, now);
                Ok(self.table.rows(&rows))
            }
            Format::Name => {
                let names = items.iter().map(|item| self.kind.address(item) + "\n");
                Ok(names.collect())
            }
            Format::Json => self.json(items, before),
            Format::Yaml => self.yaml(items),
        }
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
