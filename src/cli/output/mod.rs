//! What commands print: tables for people, the server's answers for programs.

pub mod cell;
pub mod clean;
pub mod custom;
pub mod items;
pub mod screen;
pub mod table;
pub mod time;

use clap::{Args, ValueEnum};

use self::custom::{CustomColumn, FormatParser};

/// How objects are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Aligned columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// JSON as returned by the API; one object per line with --watch
    Json,
    /// YAML of the same
    Yaml,
    /// KIND/NAME, one per line
    Name,
    /// Columns of the caller's choice, of lists only.
    #[value(skip)]
    Custom(&'static [CustomColumn]),
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        value_parser = FormatParser,
        default_value = "table"
    )]
    pub format: Format,
    /// Omit the header row
    #[arg(long)]
    pub no_headers: bool,
}

impl From<Format> for OutputArgs {
    fn from(format: Format) -> Self {
        Self {
            format,
            no_headers: false,
        }
    }
}
