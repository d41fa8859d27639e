//! What commands print: tables for people, the server's own objects for programs.

pub mod cell;
pub mod clean;
pub mod items;
pub mod screen;
pub mod table;
pub mod time;

use clap::ValueEnum;

/// How objects are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Aligned columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// The server's objects; with --watch one a line
    Json,
    /// The server's objects
    Yaml,
    /// `kind/name`, one a line
    Name,
}
