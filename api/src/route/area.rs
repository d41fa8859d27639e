//! The parts of the API.

/// A part of the API: a tag of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::VariantArray)]
pub(crate) enum Area {
    Service,
    Session,
    Account,
    Agent,
    Configuration,
    Users,
    Superadmins,
    Containers,
    Images,
    Adapter,
    Operators,
}

impl Area {
    /// What belongs to it.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Service => "Health of the service, and this document",
            Self::Session => "Signing in and out",
            Self::Account => "What users see and do of their own",
            Self::Agent => "How users set up their own agents",
            Self::Configuration => "The configuration in the database",
            Self::Users => "Ordinary users",
            Self::Superadmins => "Those who administer",
            Self::Containers => "Agent containers of users",
            Self::Images => "Images on the engine and in registries, and moving users between them",
            Self::Adapter => "The package that says how agents are run and configured",
            Self::Operators => "What is reconciled and how it goes",
        }
    }
}
