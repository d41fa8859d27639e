//! The parts of the API.

/// A part of the API: a tag of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::VariantArray)]
pub(crate) enum Area {
    Service,
    Session,
    Account,
    Agent,
    Chat,
    Files,
    Configuration,
    Users,
    Authentication,
    Superadmins,
    Containers,
    Images,
    Groups,
    Skills,
    Adapter,
    Mcp,
    Operators,
}

impl Area {
    /// What belongs to it.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Service => "Health of the service, and this document",
            Self::Session => "Sign-in, sign-out and CSRF tokens",
            Self::Account => "A user's own account and container",
            Self::Agent => "A user's own agent: channels and cookies",
            Self::Chat => "A user's conversations with their own agent",
            Self::Files => "The files of a user's own workspace",
            Self::Configuration => "The service's configuration",
            Self::Users => "Ordinary users",
            Self::Authentication => "Where users come from, and who of them may sign in",
            Self::Superadmins => "Accounts and API tokens that administer the service",
            Self::Containers => "Agent containers of users",
            Self::Images => "Images on the engine and in registries, and rollouts",
            Self::Groups => "Groups of users",
            Self::Skills => "Skills, who gets them, and the repositories they come from",
            Self::Adapter => "The package that defines how agents are run and configured",
            Self::Mcp => "What users' agents do in the users' own browsers and desktops",
            Self::Operators => "Reconciliation, events, tasks and audit",
        }
    }
}
