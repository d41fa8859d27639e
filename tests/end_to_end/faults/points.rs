//! The points at which the service is killed.

use Operation::{Create, Delete, GoBack, Replace, Restart, Start, Stop};

/// What an administrator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new user.
    Create,
    /// A start after a stop.
    Start,
    Stop,
    Restart,
    /// Other limits: the old container goes only when the new one is ready.
    Replace,
    /// Other limits, but the new container does not become ready: the old one comes back.
    GoBack,
    Delete,
}

/// A point the operation passes, and whether the small scale has it too.
pub struct Point(pub Operation, pub &'static str, pub bool);

impl Point {
    /// Its name without the number of the passage.
    pub fn name(&self) -> &'static str {
        self.1.split(':').next().unwrap()
    }
}

/// Every point that an operation passes. One that is not passed, or is missing here, fails a test.
pub const POINTS: &[Point] = &[
    Point(Create, "user.AddFinalizer.before", false),
    Point(Create, "user.AddFinalizer.after", false),
    Point(Create, "user.EnsureHome.before", false),
    Point(Create, "home.ensure.after_marker", false),
    Point(Create, "home.ensure.after_home", false),
    Point(Create, "home.ensure.after_part", true),
    Point(Create, "user.EnsureHome.after", false),
    Point(Create, "user.status.before", false),
    Point(Create, "user.status.after", false),
    Point(Create, "agent-config.WriteFiles.before", false),
    Point(Create, "home.files.prepared", false),
    Point(Create, "home.files.renamed", true),
    Point(Create, "agent-config.WriteFiles.after", false),
    Point(Create, "agent-config.SaveFacts.before", false),
    Point(Create, "agent-config.SaveFacts.after", true),
    Point(Create, "agent-config.status.before", false),
    Point(Create, "agent-config.status.after", false),
    Point(Create, "container.AddFinalizer.before", false),
    Point(Create, "container.AddFinalizer.after", false),
    Point(Create, "container.SaveFacts.before", false),
    Point(Create, "container.SaveFacts.after", false),
    Point(Create, "container.Create.before", false),
    Point(Create, "container.Create.after", true),
    Point(Create, "container.Start.before", false),
    Point(Create, "container.Start.after", true),
    Point(Create, "container.SaveFacts.before:2", false),
    Point(Create, "container.SaveFacts.after:2", false),
    Point(Create, "container.status.before", false),
    Point(Create, "container.status.after", false),
    Point(Start, "container.Create.before", false),
    Point(Start, "container.Create.after", true),
    Point(Start, "container.Start.before", false),
    Point(Start, "container.Start.after", false),
    Point(Start, "container.SaveFacts.before", false),
    Point(Start, "container.SaveFacts.after", false),
    Point(Start, "container.status.before", false),
    Point(Start, "container.status.after", false),
    Point(Stop, "container.SaveFacts.before", false),
    Point(Stop, "container.SaveFacts.after", false),
    Point(Stop, "container.Stop.before", false),
    Point(Stop, "container.Stop.after", true),
    Point(Stop, "container.Remove.before", false),
    Point(Stop, "container.Remove.after", false),
    Point(Stop, "container.status.before", false),
    Point(Stop, "container.status.after", false),
    Point(Restart, "container.SaveFacts.before", false),
    Point(Restart, "container.SaveFacts.after", false),
    Point(Restart, "container.Stop.before", false),
    Point(Restart, "container.Stop.after", true),
    Point(Restart, "container.Remove.before", false),
    Point(Restart, "container.Remove.after", true),
    Point(Restart, "container.Create.before", false),
    Point(Restart, "container.Create.after", false),
    Point(Restart, "container.Start.before", false),
    Point(Restart, "container.Start.after", false),
    Point(Restart, "container.status.before", false),
    Point(Restart, "container.status.after", false),
    Point(Replace, "container.Create.before", false),
    Point(Replace, "container.Create.after", true),
    Point(Replace, "container.Rename.before", false),
    Point(Replace, "container.Rename.after", true),
    Point(Replace, "container.Stop.before", false),
    Point(Replace, "container.Stop.after", false),
    Point(Replace, "container.Rename.before:2", false),
    Point(Replace, "container.Rename.after:2", false),
    Point(Replace, "container.Start.before", false),
    Point(Replace, "container.Start.after", true),
    Point(Replace, "container.Remove.before", true),
    Point(Replace, "container.Remove.after", false),
    Point(Replace, "container.SaveFacts.before", false),
    Point(Replace, "container.SaveFacts.after", false),
    Point(Replace, "container.status.before", false),
    Point(Replace, "container.status.after", false),
    Point(Delete, "container.Stop.before", false),
    Point(Delete, "container.Stop.after", true),
    Point(Delete, "container.Remove.before", false),
    Point(Delete, "container.Remove.after", false),
    Point(Delete, "container.ReleaseFinalizer.before", false),
    Point(Delete, "container.ReleaseFinalizer.after", false),
    Point(Delete, "user.ArchiveHome.before", false),
    Point(Delete, "home.archive.after_claim", false),
    Point(Delete, "home.archive.after_rename", true),
    Point(Delete, "home.archive.before_release", false),
    Point(Delete, "home.archive.after_release", false),
    Point(Delete, "user.ArchiveHome.after", false),
    Point(Delete, "user.Purge.before", false),
    Point(Delete, "user.Purge.after", true),
    Point(Delete, "container.status.before", false),
    Point(Delete, "container.status.after", false),
    Point(Delete, "agent-config.status.before", false),
    Point(Delete, "agent-config.status.after", false),
    Point(Delete, "user.status.before", false),
    Point(Delete, "user.status.after", false),
    Point(GoBack, "container.SaveFacts.before", false),
    Point(GoBack, "container.SaveFacts.after", false),
    Point(GoBack, "container.Remove.before", false),
    Point(GoBack, "container.Remove.after", true),
    Point(GoBack, "container.Rename.before:3", false),
    Point(GoBack, "container.Rename.after:3", true),
    Point(GoBack, "container.Start.before:2", false),
    Point(GoBack, "container.Start.after:2", false),
];
