//! Aligned columns without borders, printed page by page.
//!
//! No table library: those need all rows before the first is printed, and a list of ten thousand
//! users is printed while it comes.

use super::cell::Cell;

/// Space between columns.
const GAP: usize = 2;

/// A table that grows. Columns are as wide as what has been printed so far needs.
pub struct Table {
    titles: Vec<&'static str>,
    widths: Vec<usize>,
    headed: bool,
}

impl Table {
    /// Columns with these titles.
    pub fn new(titles: Vec<&'static str>, headers: bool) -> Self {
        Self {
            widths: titles.iter().map(|title| title.len()).collect(),
            titles,
            headed: !headers,
        }
    }

    /// The next rows, below the titles if they are the first.
    pub fn rows(&mut self, rows: &[Vec<Cell>]) -> String {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut text = String::new();
        if !self.headed && !rows.is_empty() {
            self.headed = true;
            let titles: Vec<Cell> = self.titles.iter().map(|title| Cell::new(title)).collect();
            self.line(&mut text, &titles);
        }
        for row in rows {
            self.line(&mut text, row);
        }
        text
    }

    fn line(&self, text: &mut String, row: &[Cell]) {
        for (index, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
            text.push_str(&cell.painted());
            // No blanks at the end of a line.
            if index + 1 < row.len() {
                let blanks = width.saturating_sub(cell.width()) + GAP;
                text.extend(std::iter::repeat_n(' ', blanks));
            }
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let mut table = Table::new(vec!["NAME", "STATUS", "X"], true);
        let row =
            |name: &str, status: &str| vec![Cell::new(name), Cell::status(status), Cell::new("")];
        let first = table.rows(&[row("漢字", "running"), row("bob", "odd\x1b")]);
        let expected = "NAME  STATUS     X\n\
                        漢字  \x1b[32mrunning\x1b[0m    -\n\
                        bob   odd\\u{1b}  -\n";
        assert_eq!(first, expected);
        // Later pages have no titles and stay below the first.
        assert_eq!(table.rows(&[row("c", "x")]), "c     x          -\n");
        assert_eq!(Table::new(vec!["NAME"], true).rows(&[]), "");
        assert_eq!(
            Table::new(vec!["NAME"], false).rows(&[vec![Cell::new("a")]]),
            "a\n"
        );
    }
}
