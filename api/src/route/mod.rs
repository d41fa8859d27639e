//! Routes as values: a row beside its handler says everything that is said of a route.
//!
//! The access table, the dispatcher, the API document and the lists of the tests are made from these
//! rows, so nothing is registered twice. Who may use a route is said by its handler's caller type.

mod area;
mod failure;
mod handler;
#[cfg(test)]
pub(crate) mod matrix;
#[cfg(test)]
mod tests;

use http::Method;

use crate::limits::Bound;

pub(crate) use area::Area;
pub(crate) use failure::Failure;
pub(crate) use handler::{Handle, Handler};

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Anybody; no session is looked up.
    Public,
    /// Anybody; a session is looked up when a cookie is there. One that cannot be looked up is none.
    Visitor,
    /// Any session.
    Login,
    /// A session of an ordinary user.
    OrdinaryUser,
    /// A session of a superadmin, or the admin socket.
    Superadmin,
    /// An MCP token of an ordinary user; no session is looked up.
    McpToken,
}

/// Which API tokens may use a route for superadmins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tokens {
    /// None: it is about tokens, about the caller's own account, or takes the audit trail away.
    None,
    /// All: it changes nothing.
    Read,
    /// Those of the role `admin`.
    Admin,
}

/// In which authentication modes a route works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Modes {
    /// In every mode.
    Any,
    /// In local mode only; `mode_forbidden` elsewhere.
    LocalOnly,
    /// In ldap mode only; `mode_forbidden` elsewhere.
    LdapOnly,
}

/// What a route does, by the method of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    /// It reads; HEAD is answered like GET.
    Get,
    /// It changes something.
    Post,
    /// It ends something.
    Delete,
}

/// What a route reads of the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BodyKind {
    /// Nothing; a body is left unread.
    None,
    /// Named fields: form-urlencoded, multipart with text parts, or a JSON object.
    Fields,
    /// Multipart with one file, and named fields beside it.
    Upload,
    /// The same with a file that may be large: it is received on disk.
    SpooledUpload,
    /// Multipart with files for the caller's workspace, and named fields beside them.
    Files,
    /// JSON as it is, in memory; parameters stand in the query.
    Message,
}

/// What an answer may be held back for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Waits {
    /// It reports what is so now.
    No,
    /// One object, 10 s unless `wait` says otherwise; its failure is the answer's.
    ForObject,
    /// The objects of a task, not at all unless `wait` says otherwise.
    ForTask,
}

/// The default limit of a request body, in bytes.
pub(crate) const DEFAULT_BODY_LIMIT: u64 = 1024 * 1024;

/// The limit of what anybody may send without being known, in bytes: a name, a password and room
/// for how they are written.
pub(crate) const ANONYMOUS_BODY_LIMIT: u64 = 16 * 1024;

/// Room for what is around the file of an upload, in bytes: boundaries, and fields beside it.
const AROUND_A_FILE: u64 = 64 * 1024;

/// A route.
pub struct Route {
    /// Its operation in the API document, and the action of its entries in the audit trail.
    pub(crate) id: &'static str,
    pub(crate) verb: Verb,
    /// The path, parameters in braces. What begins with `/api/` is served under `/api/v1/` too.
    pub(crate) path: &'static str,
    /// Who may use it.
    pub(crate) access: Access,
    /// Which API tokens may use it: said by every row for superadmins, and by no other.
    pub(crate) tokens: Option<Tokens>,
    /// In which authentication modes it works.
    pub(crate) modes: Modes,
    /// What it reads of the body.
    pub(crate) body: BodyKind,
    /// The largest body it takes, in bytes.
    pub(crate) body_limit: u64,
    /// Whether the listener for agents serves it, too.
    pub(crate) for_agents: bool,
    /// Exists on the admin socket only.
    pub(crate) on_machine: bool,
    /// Whether browser extensions use it with a token.
    pub(crate) for_extensions: bool,
    /// Whether people open it in a browser: its failures are pages there.
    pub(crate) for_browsers: bool,
    /// The part of the API that it belongs to.
    pub(crate) area: Area,
    /// One line, an imperative.
    pub(crate) title: &'static str,
    /// What the title does not say.
    pub(crate) description: &'static str,
    /// What its answer may be held back for.
    pub(crate) waits: Waits,
    /// Whether it takes `if_generation`.
    pub(crate) guarded: bool,
    /// Whether it takes `page`, `page_size` and `search`.
    pub(crate) paged: bool,
    /// Headers of a success, by their names in the components of the API document.
    pub(crate) headers: &'static [&'static str],
    /// Failures beside those that follow from the rest of the row.
    pub(crate) failures: &'static [Failure],
    /// Memory of the answer while it is made, in bytes, which is taken before; 0: as any answer.
    pub(crate) memory: usize,
    /// Bound of what an answer holds for as long as its client wants: a stream, a socket, a thread.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by limits::tests"))]
    pub(crate) holds: Option<&'static Bound>,
    pub(crate) handler: Handler,
}

impl Route {
    pub(crate) fn get<X>(id: &'static str, path: &'static str, handler: impl Handle<X>) -> Self {
        Self {
            id,
            verb: Verb::Get,
            path,
            access: handler.access(),
            tokens: None,
            modes: Modes::Any,
            body: BodyKind::None,
            body_limit: 0,
            for_agents: false,
            on_machine: handler.is_on_machine(),
            for_extensions: false,
            for_browsers: false,
            area: Area::Service,
            title: "",
            description: "",
            waits: Waits::No,
            guarded: false,
            paged: false,
            headers: &[],
            failures: &[],
            memory: 0,
            holds: None,
            handler: handler.erase(),
        }
    }

    pub(crate) fn post<X>(id: &'static str, path: &'static str, handler: impl Handle<X>) -> Self {
        Self {
            verb: Verb::Post,
            body: BodyKind::Fields,
            body_limit: DEFAULT_BODY_LIMIT,
            ..Self::get(id, path, handler)
        }
    }

    pub(crate) fn delete<X>(id: &'static str, path: &'static str, handler: impl Handle<X>) -> Self {
        Self {
            verb: Verb::Delete,
            ..Self::get(id, path, handler)
        }
    }

    /// API tokens of these roles may use it.
    pub(crate) fn tokens(self, tokens: Tokens) -> Self {
        Self {
            tokens: Some(tokens),
            ..self
        }
    }

    /// The area that it belongs to, and its line there.
    pub(crate) fn title(self, area: Area, title: &'static str) -> Self {
        Self {
            area,
            title,
            ..self
        }
    }

    /// What the title does not say.
    pub(crate) fn about(self, description: &'static str) -> Self {
        Self {
            description,
            ..self
        }
    }

    pub(crate) fn body_limit(self, body_limit: u64) -> Self {
        Self { body_limit, ..self }
    }

    /// It takes a file of at most so many bytes.
    pub(crate) fn upload(self, bytes: u64) -> Self {
        Self {
            body: BodyKind::Upload,
            body_limit: bytes + AROUND_A_FILE,
            ..self
        }
    }

    /// It takes a file of at most so many bytes, which is received on disk.
    pub(crate) fn spooled_upload(self, bytes: u64) -> Self {
        Self {
            body: BodyKind::SpooledUpload,
            body_limit: bytes + AROUND_A_FILE,
            ..self
        }
    }

    /// It takes files for the caller's workspace, of at most so many bytes together.
    pub(crate) fn files(self, bytes: u64) -> Self {
        Self {
            body: BodyKind::Files,
            body_limit: bytes + AROUND_A_FILE,
            ..self
        }
    }

    /// It takes one JSON text of at most so many bytes, as it is.
    pub(crate) fn message(self, bytes: u64) -> Self {
        Self {
            body: BodyKind::Message,
            body_limit: bytes,
            ..self
        }
    }

    pub(crate) fn without_body(self) -> Self {
        Self {
            body: BodyKind::None,
            body_limit: 0,
            ..self
        }
    }

    pub(crate) fn local_only(self) -> Self {
        Self {
            modes: Modes::LocalOnly,
            ..self
        }
    }

    pub(crate) fn ldap_only(self) -> Self {
        Self {
            modes: Modes::LdapOnly,
            ..self
        }
    }

    pub(crate) fn for_agents(self) -> Self {
        Self {
            for_agents: true,
            ..self
        }
    }

    pub(crate) fn for_extensions(self) -> Self {
        Self {
            for_extensions: true,
            ..self
        }
    }

    pub(crate) fn for_browsers(self) -> Self {
        Self {
            for_browsers: true,
            ..self
        }
    }

    /// Its answer waits for the object.
    pub(crate) fn waits(self) -> Self {
        Self {
            waits: Waits::ForObject,
            ..self
        }
    }

    /// Its answer may wait for the objects of the task.
    pub(crate) fn waits_for_task(self) -> Self {
        Self {
            waits: Waits::ForTask,
            ..self
        }
    }

    pub(crate) fn guarded(self) -> Self {
        Self {
            guarded: true,
            ..self
        }
    }

    pub(crate) fn paged(self) -> Self {
        Self {
            paged: true,
            ..self
        }
    }

    pub(crate) fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    pub(crate) fn fails(self, failures: &'static [Failure]) -> Self {
        Self { failures, ..self }
    }

    /// Takes so many bytes of memory before the handler runs.
    pub(crate) fn takes_memory(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// Names the bound of what an answer holds for as long as its client wants.
    pub(crate) fn holds(self, bound: &'static Bound) -> Self {
        Self {
            holds: Some(bound),
            ..self
        }
    }

    /// Whether it is asked for by POST.
    pub(crate) fn is_post(&self) -> bool {
        self.verb == Verb::Post
    }

    /// Reports that it changes something.
    pub(crate) fn changes(&self) -> bool {
        self.verb != Verb::Get
    }

    /// Whether a CSRF token is required: on everything but GET that acts with the rights of a session.
    /// Signing in and out are the exceptions; neither acts on anything but the session itself.
    pub(crate) fn csrf(&self) -> bool {
        self.changes()
            && match self.access {
                Access::Public | Access::Visitor | Access::McpToken => false,
                Access::Login | Access::OrdinaryUser | Access::Superadmin => true,
            }
    }

    /// The method.
    pub(crate) fn method(&self) -> Method {
        match self.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Delete => Method::DELETE,
        }
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method(), self.path)
    }
}
