//! Ways in which routes fail.

/// One way to fail: status, code, and when, as a sentence without its full stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure(
    pub(crate) u16,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

/// Those that several files name.
impl Failure {
    pub(crate) const NO_ACCOUNT: Self = Self(404, "not_found", "the account is being removed");
    pub(crate) const NO_CONTAINER: Self = Self(404, "not_found", "no such user or container");
    pub(crate) const NO_OBJECT: Self = Self(404, "not_found", "no such object");
    pub(crate) const NO_USER: Self = Self(404, "not_found", "no such user");
    pub(crate) const DISABLED: Self = Self(409, "account_disabled", "the user is disabled");
    pub(crate) const IMAGE_REMOVED: Self = Self(
        409,
        "image_being_removed",
        "the image is being removed from the engine",
    );
    pub(crate) const NAME_REMOVED: Self = Self(
        409,
        "name_being_removed",
        "the previous account of this name is still being removed",
    );
    pub(crate) const REMOVED: Self = Self(409, "name_being_removed", "the user is being removed");
    pub(crate) const TAKEN: Self = Self(409, "already_exists", "the name is taken");
    pub(crate) const ATTEMPTS: Self = Self(
        429,
        "too_many_attempts",
        "more than 10 attempts in 5 minutes, or 60 sign-ins of one account in a minute",
    );
    pub(crate) const STREAMS: Self = Self(
        429,
        "too_many_streams",
        "the account already has 4 open streams",
    );
    pub(crate) const BUSY: Self = Self(503, "busy", "too many requests in progress; retry soon");
    pub(crate) const ENGINE: Self = Self(
        503,
        "engine_unavailable",
        "the container engine cannot be reached",
    );
}
