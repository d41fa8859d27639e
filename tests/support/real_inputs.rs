//! The table of real inputs: each reader of the product with odd forms of what it reads, and what comes of them. The test of a
//! crate makes the rows by reading, and compares them with its part of `docs/architecture/real-inputs.md`;
//! `AGENTYARD_WRITE_TABLES=1` writes them there.

use std::fmt::Write as _;
use std::path::Path;

/// Rules of `docs/decisions/real-inputs.md`, by number.
pub const RULES: [&str; 6] = [
    "What we do not use cannot fail us",
    "One bad item does not stop the others",
    "Read it as its maker meant it, or say why not",
    "Silence is a defect",
    "Every refusal names value, rule and remedy",
    "Two readers of one thing are one function",
];

/// Result of reading an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Taken as it is.
    Taken,
    /// Taken, with warnings.
    Warned(Vec<String>),
    /// Refused, with the message.
    Refused(String),
    /// Read by several readers: the same by all, or what each made of it.
    Same(Vec<Outcome>),
}

/// A reader, an odd form of what it reads, and what came of it.
pub struct Row {
    /// Number of the rule that it shows.
    pub rule: usize,
    /// Reader.
    pub reader: &'static str,
    /// Odd form.
    pub form: &'static str,
    /// Result; of rule 5 a refusal with these parts: the value and the remedy.
    pub outcome: Outcome,
    /// Texts that the result must contain.
    pub parts: &'static [&'static str],
}

impl Outcome {
    fn text(&self) -> String {
        match self {
            Self::Taken => "taken".to_owned(),
            Self::Warned(warnings) => format!("taken; “{}”", warnings.join("”, “")),
            Self::Refused(message) => format!("refused: “{message}”"),
            Self::Same(outcomes) => {
                outcomes.first().map(Self::text).unwrap_or_default() + ", by each"
            }
        }
    }
}

/// Makes a row.
pub fn row(
    rule: usize,
    reader: &'static str,
    form: &'static str,
    outcome: Outcome,
    parts: &'static [&'static str],
) -> Row {
    Row {
        rule,
        reader,
        form,
        outcome,
        parts,
    }
}

impl Row {
    /// Returns the defect of a row that does not show its rule.
    fn defect(&self) -> Option<String> {
        let text = self.outcome.text();
        let shows = match (self.rule, &self.outcome) {
            (1, Outcome::Taken) => true,
            (2, Outcome::Taken | Outcome::Warned(_)) => true,
            (3, Outcome::Taken | Outcome::Warned(_) | Outcome::Refused(_)) => true,
            (4, Outcome::Warned(_)) => true,
            (5, Outcome::Refused(_)) => self.parts.len() >= 2,
            (6, Outcome::Same(outcomes)) => {
                outcomes.len() > 1 && outcomes.windows(2).all(|pair| pair[0] == pair[1])
            }
            _ => false,
        };
        let missing = self.parts.iter().find(|part| !text.contains(**part));
        let (rule, reader, form) = (self.rule, self.reader, self.form);
        match (shows, missing) {
            (true, None) => None,
            (true, Some(part)) => Some(format!("{rule} {reader}, {form}: no {part:?} in {text}")),
            (false, _) => Some(format!("{rule} {reader}, {form}: {:?}", self.outcome)),
        }
    }
}

/// One line of a table: what a text has of its own is shown as text.
fn cell(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

fn render(rows: &[Row]) -> String {
    let mut page = String::new();
    for (number, rule) in (1..).zip(RULES) {
        let _ = write!(
            page,
            "\n**{number}. {rule}.**\n\n| reader | odd form | what comes of it |\n| --- | --- | --- |\n"
        );
        for row in rows.iter().filter(|row| row.rule == number) {
            let outcome = cell(&row.outcome.text());
            let _ = writeln!(page, "| {} | {} | {outcome} |", row.reader, cell(row.form));
        }
    }
    page.push('\n');
    page
}

/// Compares the rows with the part `name` of the page below `root`, the top of the project.
///
/// # Panics
/// A row does not show its rule, a rule has no row, or the page says something else.
pub fn check(root: &Path, name: &str, rows: &[Row]) {
    let defects: Vec<String> = rows.iter().filter_map(Row::defect).collect();
    assert!(defects.is_empty(), "{}", defects.join("\n"));
    for number in 1..=RULES.len() {
        assert!(rows.iter().any(|row| row.rule == number), "rule {number}");
    }
    let path = root.join("docs/architecture/real-inputs.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let marks = [
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    ];
    let (before, rest) = page.split_once(&marks[0]).expect("the begin of the part");
    let (part, after) = rest.split_once(&marks[1]).expect("the end of the part");
    let made = render(rows);
    if std::env::var_os("AGENTYARD_WRITE_TABLES").is_some() {
        let page = format!("{before}{}{made}{}{after}", marks[0], marks[1]);
        std::fs::write(&path, page).unwrap();
        return;
    }
    assert_eq!(part, made, "AGENTYARD_WRITE_TABLES=1 writes the page anew");
}
