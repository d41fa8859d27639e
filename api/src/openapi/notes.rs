//! What neither the access table nor the types say of a route.
//!
//! One entry for each, in one `match` without a catch-all: a new route does not compile without its
//! documentation.

use super::failure::Failure;
use crate::access::Op;

/// The parts of the API, as tags of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::VariantArray)]
pub(super) enum Area {
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
    pub(super) fn description(self) -> &'static str {
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

/// What an answer may be held back for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It tells what is so now.
    No,
    /// One object, 10 s unless `wait` says otherwise; its failure is the answer's.
    ForObject,
    /// The objects of a task, not at all unless `wait` says otherwise.
    ForTask,
}

/// What is to be said of a route.
pub(super) struct Note {
    pub(super) area: Area,
    pub(super) description: &'static str,
    pub(super) waits: Waits,
    /// It takes `if_generation`.
    pub(super) guarded: bool,
    /// It takes `page`, `page_size` and `search`.
    pub(super) paged: bool,
    /// Headers of a success, by their names in the components.
    pub(super) headers: &'static [&'static str],
    /// Failures beside those that the row brings with it.
    pub(super) failures: &'static [Failure],
}

const fn note(area: Area, description: &'static str) -> Note {
    Note {
        area,
        description,
        waits: Waits::No,
        guarded: false,
        paged: false,
        headers: &[],
        failures: &[],
    }
}

impl Note {
    const fn waits(self, waits: Waits) -> Self {
        Self { waits, ..self }
    }

    const fn guarded(self) -> Self {
        Self {
            guarded: true,
            ..self
        }
    }

    const fn paged(self) -> Self {
        Self {
            paged: true,
            ..self
        }
    }

    const fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    const fn fails(self, failures: &'static [Failure]) -> Self {
        Self { failures, ..self }
    }
}

const NO_OBJECT: Failure = Failure(404, "not_found", "there is no such object");
const NO_USER: Failure = Failure(404, "not_found", "there is no such user");
const NO_CONTAINER: Failure = Failure(404, "not_found", "there is no such user or container");
const REMOVED: Failure = Failure(409, "name_being_removed", "the user is being removed");
const DISABLED: Failure = Failure(409, "account_disabled", "the user is disabled");
const TAKEN: Failure = Failure(409, "already_exists", "the name is taken");
const NAME_REMOVED: Failure = Failure(
    409,
    "name_being_removed",
    "the previous bearer of the name is still being removed",
);
const ATTEMPTS: Failure = Failure(
    429,
    "too_many_attempts",
    "more than 10 attempts in 5 minutes",
);
const STREAMS: Failure = Failure(
    429,
    "too_many_streams",
    "the account follows 4 logs already",
);
const BUSY: Failure = Failure(503, "busy", "too much is under way; try again soon");
const ENGINE: Failure = Failure(
    503,
    "engine_unavailable",
    "the container engine can't be reached",
);
const IMAGE_REMOVED: Failure = Failure(
    409,
    "image_being_removed",
    "the image is being removed from the engine",
);
const NO_ROLLOUT: Failure = Failure(404, "not_found", "there is no such rollout");
const ROLLOUT_STATE: Failure = Failure(
    409,
    "wrong_state",
    "the rollout has ended, or is in a state that does not allow it",
);
const IN_ROLLOUT: Failure = Failure(
    409,
    "in_rollout",
    "one of the users is in another rollout that has not ended",
);
const NO_USERS: Failure = Failure(422, "no_users", "there is nobody to move");
const START_FAILURES: &[Failure] = &[IN_ROLLOUT, NO_USERS];
const ROLLOUT_FAILURES: &[Failure] = &[NO_ROLLOUT, ROLLOUT_STATE];
const LOG_FAILURES: &[Failure] = &[NO_CONTAINER, STREAMS, BUSY, ENGINE];
const RUN_FAILURES: &[Failure] = &[NO_USER, REMOVED, DISABLED];

const GLOBAL: Failure = Failure(
    422,
    "invalid_global_config",
    "the administrator's settings for agents can't be used",
);
const NO_ACCOUNT: Failure = Failure(404, "not_found", "the account is being removed");
const NO_CHANNEL: Failure = Failure(
    404,
    "not_found",
    "the agent has no such channel, or the account is being removed",
);
const NOT_ALLOWED: Failure = Failure(
    403,
    "channel_not_allowed",
    "no administrator has allowed the channel",
);
const CHANNEL_FAILURES: &[Failure] = &[NO_CHANNEL, NOT_ALLOWED, GLOBAL];
const SAVE_FAILURES: &[Failure] = &[
    NO_CHANNEL,
    NOT_ALLOWED,
    GLOBAL,
    REMOVED,
    Failure(
        422,
        "invalid_values",
        "`problems` names every field that is refused",
    ),
];

/// The note on a route.
pub(super) fn of(op: Op) -> Note {
    use Area::{
        Account, Adapter, Agent, Configuration, Containers, Images, Operators, Service, Session,
        Superadmins, Users,
    };
    use Waits::{ForObject, ForTask};
    match op {
        Op::Health => note(Service, "Touches neither database nor engine."),
        Op::Liveness => note(Service, "`ok` as long as the process answers at all."),
        Op::Readiness => note(
            Service,
            "One line each for database, engine, leadership and the parts of the service; 503 when the database fails, the engine is unavailable, or a part has failed for good. A standby is ready: it serves the API.",
        ),
        Op::ApiDocument => note(Service, "OpenAPI 3.1 of every route."),
        Op::Login => note(
            Session,
            "Sets the session cookie, which holds for 24 hours. Never waits for a container. All causes of a refused password have one answer.",
        )
        .headers(&["Set-Cookie"])
        .fails(&[
            Failure(401, "bad_credentials", "wrong name or password"),
            Failure(403, "superadmin_client", "a superadmin signs in to the web console only"),
            ATTEMPTS,
            BUSY,
        ]),
        Op::LoginMode => note(Session, "What a sign-in page must show."),
        Op::LoginOidc => note(Session, "There is no identity provider to go to: 400."),
        Op::Logout => note(
            Session,
            "Ends the session, if there is one, and clears the cookie.",
        )
        .headers(&["Set-Cookie"]),
        Op::Csrf => note(
            Session,
            "Every POST that acts with the rights of a session needs it, as field `csrf_token` or as header `X-CSRF-Token`.",
        ),
        Op::UserInfo => note(Session, "The account of the present session."),
        Op::UserInitStatus => note(
            Account,
            "What a page shows while the first container starts.",
        ),
        Op::UserPassword => note(
            Account,
            "Ends all other sessions. A wrong old password counts as a failed sign-in.",
        )
        .fails(&[
            Failure(401, "wrong_password", "the old password is wrong"),
            ATTEMPTS,
            BUSY,
        ]),
        Op::OwnContainer => note(Account, "Status and conditions of the own container.").fails(&[
            Failure(404, "not_found", "the account is being removed"),
        ]),
        Op::OwnLogs => note(Account, LOG).fails(LOG_FAILURES),
        Op::OwnContainerRestart => note(
            Account,
            "Replaces the container by a fresh one, once.",
        )
        .waits(ForObject)
        .guarded()
        .fails(RUN_FAILURES),
        Op::OwnSessions => note(
            Account,
            "The own live sessions, newest first. `search` finds addresses and clients.",
        )
        .paged(),
        Op::OwnSessionsRevoke => note(
            Account,
            "Ends the session that `issued_at` names, or all but the one that asks. Ending one that has ended is no failure.",
        ),
        Op::ChatAppRead => note(
            Agent,
            "The channel that the adapter names for it. The secret is never told.",
        )
        .fails(CHANNEL_FAILURES),
        Op::ChatAppSave => note(
            Agent,
            "Switches the channel on. An empty secret stays as it is. The agent restarts once, also when nothing is different; one that is stopped stays so and has the files. `if_generation` compares with `generation` of the reading.",
        )
        .waits(ForObject)
        .guarded()
        .fails(SAVE_FAILURES),
        Op::OwnChannels => note(
            Agent,
            "Those that an administrator allows (enables in the global settings) and the user's agent knows, whether or not its container ever ran. `config_version` asks for other forms, and allows nothing more.",
        )
        .fails(&[NO_ACCOUNT, GLOBAL]),
        Op::OwnFieldsRead => note(
            Agent,
            "The fields of one channel; without `section` of all that are allowed, each with the channel it belongs to. Defaults are told as `default`, never as `value`; of secrets only whether they are set.",
        )
        .fails(CHANNEL_FAILURES),
        Op::OwnFieldsSave => note(
            Agent,
            "What is not named stays as it is, and so does a secret that is empty; `null` takes a value away. Everything wrong is told at once, and then nothing is saved. The agent restarts once, also when nothing is different; one that is stopped stays so and has the files. `if_generation` compares with `generation` of the reading.",
        )
        .waits(ForObject)
        .guarded()
        .fails(SAVE_FAILURES),
        Op::CookiesSave => note(
            Agent,
            "They replace what was stored for the domain, and never restart the agent. At most 300 domains and 1 MiB in all.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[
            REMOVED,
            Failure(409, "too_many_cookies", "more than 300 domains, or more than 1 MiB in all"),
        ]),
        Op::CookiesList => note(
            Agent,
            "Domains and times, never the cookies. `search` finds domains.",
        )
        .paged()
        .fails(&[NO_ACCOUNT]),
        Op::CookiesDelete => note(
            Agent,
            "In the agent's files, too. The agent is not restarted.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[
            REMOVED,
            Failure(404, "not_found", "there are no cookies of this domain"),
        ]),
        Op::ConfigRead => note(
            Configuration,
            "All keys as one nested document, without envelope; secrets are `********`.",
        )
        .headers(&["ETag", "X-Config-Generation"]),
        Op::ConfigSave => note(
            Configuration,
            "Keys that are not sent stay as they are, a masked secret too; `null` returns a key to its default. With `dry_run` nothing is saved. `if_generation` compares with the configuration's generation.",
        )
        .guarded()
        .fails(&[
            Failure(409, "network_in_use", "the network can't be changed while containers exist"),
            Failure(422, "invalid_config", "`problems` names every key that is refused"),
            Failure(422, "not_available_yet", "the values are right, but not supported yet"),
        ]),
        Op::ConfigSchema => note(
            Configuration,
            "Made from the registry of keys: title, description, default, rule, whether it is secret, and whether this release supports it.",
        ),
        Op::ConfigHistory => note(
            Configuration,
            "Newest first, always one page; the newest 1,000 saves are kept. Values are masked as in the document, `null` stands for the default. `search` finds actors and keys.",
        )
        .paged(),
        Op::ConfigRollback => note(Configuration, ROLLBACK).guarded().fails(&[
            Failure(404, "not_found", "there is no such revision yet"),
            Failure(409, "history_too_short", "it is not known any more what changed since"),
            Failure(409, "network_in_use", "the network can't be changed while containers exist"),
            Failure(422, "invalid_config", "`problems` names every key that can't be as it was"),
            Failure(422, "not_available_yet", "the values are right, but not supported yet"),
        ]),
        Op::ConfigApply => note(Configuration, APPLY)
            .waits(ForObject)
            .guarded()
            .fails(&[
                NO_USER,
                REMOVED,
                Failure(422, "not_available_yet", "there are no groups yet"),
            ]),
        Op::McpToken => note(
            Account,
            "The same at every call and after restarts; another account of the same name has another one. It is stored nowhere.",
        ),
        Op::UsersList => note(Users, "Everybody, or one page. No engine is asked.").paged(),
        Op::UsersCreate => note(
            Users,
            "Creates an account with its container. The password is told once; even when the container fails, the account is there and the failure carries `username` and `password`.",
        )
        .waits(ForObject)
        .fails(&[TAKEN, NAME_REMOVED, BUSY]),
        Op::UsersBatchCreate => note(
            Users,
            "Each name by itself; what befalls one is told in its result. The containers of all that were created are one task.",
        )
        .waits(ForTask),
        Op::UsersDelete => note(
            Users,
            "The container goes, the directory is archived, and the name becomes free. Asking again waits for the same removal.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_USER]),
        Op::UsersResetPassword => note(
            Users,
            "All sessions of the user end. A random password is told once; one that was given is not repeated.",
        )
        .fails(&[NO_USER, REMOVED, BUSY]),
        Op::UsersDisable => note(Users, "No sign-in, no session, no running container.")
            .waits(ForObject)
            .guarded()
            .fails(&[NO_USER, REMOVED]),
        Op::UsersEnable => note(
            Users,
            "Signing in is possible again, and the container is as desired.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_USER, REMOVED]),
        Op::UsersRevokeSessions => note(Users, "Superadmins' sessions, too.").fails(&[NO_USER]),
        Op::SuperadminsList => note(
            Superadmins,
            "Names under `admins`, more of each under `items`.",
        )
        .paged(),
        Op::SuperadminsCreate => {
            note(Superadmins, "The random password is told once.").fails(&[TAKEN, NAME_REMOVED, BUSY])
        }
        Op::SuperadminsDelete => note(
            Superadmins,
            "Ends the account and its sessions. Nobody deletes the own account.",
        )
        .fails(&[
            Failure(404, "not_found", "there is no such superadmin"),
            Failure(409, "last_superadmin", "there must be one"),
        ]),
        Op::SuperadminsReset => note(
            Superadmins,
            "Ends all sessions of the account but the one that asks. A random password is told once; one that was given is not repeated.",
        )
        .fails(&[
            Failure(404, "not_found", "there is no such superadmin"),
            BUSY,
        ]),
        Op::ContainerStart => note(Containers, "It shall run; ends debugging.")
            .waits(ForObject)
            .guarded()
            .fails(RUN_FAILURES),
        Op::ContainerStop => note(
            Containers,
            "Nothing of it stays but the user's directory.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_USER, REMOVED]),
        Op::ContainerRestart => note(
            Containers,
            "Replaces it by a fresh one, once; a stopped one is started.",
        )
        .waits(ForObject)
        .guarded()
        .fails(RUN_FAILURES),
        Op::ContainerDebug => note(
            Containers,
            "Replaces it by one that runs the adapter's debug command, until the next start or restart.",
        )
        .waits(ForObject)
        .guarded()
        .fails(RUN_FAILURES),
        Op::ContainerLimits => note(
            Containers,
            "Sets both limits; one that is absent or empty goes back to what is configured for everybody.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_USER, REMOVED]),
        Op::ContainerLogs => note(Containers, LOG).fails(LOG_FAILURES),
        Op::ContainerInspect => note(
            Containers,
            "Asked of the engine now. Of the environment, names only.",
        )
        .fails(&[NO_CONTAINER, ENGINE]),
        Op::ContainerStats => {
            note(Containers, "One sample, taken now.").fails(&[NO_CONTAINER, ENGINE])
        }
        Op::Reconcile => note(
            Operators,
            "Counts come from the database and hold on every replica; what is live is this process's own.",
        ),
        Op::ReconcileObjects => note(
            Operators,
            "Objects with their conditions, each with its remedy, and for what is not as desired: what is wrong, since when, what is tried next, and how to force it. `search` finds names.",
        )
        .paged(),
        Op::ReconcileObject => note(
            Operators,
            "Desired and observed state, conditions with their remedies, what the next pass would do, and the newest events.",
        )
        .fails(&[NO_OBJECT]),
        Op::ReconcileRetry => note(Operators, "A pass at once, back-off or not; a container in a crash loop is started anew.").fails(&[
            NO_OBJECT,
            Failure(409, "paused", "what is paused is not looked at before it is resumed"),
            Failure(409, "not_leader", "this replica runs no reconcilers; ask the leader"),
        ]),
        Op::ReconcilePause => note(
            Operators,
            "No passes until it is resumed. Waits until a pass has seen it.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_OBJECT]),
        Op::ReconcileResume => note(Operators, "Passes go on.")
            .waits(ForObject)
            .guarded()
            .fails(&[NO_OBJECT]),
        Op::Events => note(
            Operators,
            "Newest first: one page, or without one the newest. Repeats within 5 minutes are one event. Objects that are gone have events, too.",
        )
        .paged(),
        Op::Watch => note(
            Operators,
            "The present state of each object that changes, one event each; several changes between two looks are one event. The first event is `open`, with the id to come back with in `Last-Event-ID`, or `resync` when the history since the client's position is gone: then list again. A client that reads too slowly is dropped.",
        )
        .fails(&[
            Failure(503, "too_many_watchers", "too many watch already"),
            BUSY,
        ]),
        Op::AdapterShow => note(
            Adapter,
            "What the active adapter declares: for each version of the agent the configuration version, and what is migrated from that of the version before.",
        ),
        Op::AdapterRefresh => note(
            Adapter,
            "Only a newer package takes the place of the active one. Without `wait` the answer is held back for 10 s.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[
            Failure(422, "no_adapter_source", "adapter.source_url is not set"),
            Failure(422, "adapter_invalid", "the source gave something that is no valid package"),
            Failure(502, "adapter_source_failed", "the source gave no package"),
        ]),
        Op::AdapterUpload => note(
            Adapter,
            "Any version may be uploaded, also an older one. It stays in effect when the service is started again. `if_generation` compares with `generation` of the reading.",
        )
        .guarded()
        .fails(&[
            Failure(422, "invalid_adapter", "the package is not valid; `problems` names files and places"),
        ]),
        Op::AdapterRollback => note(
            Adapter,
            "Done twice, it goes back and forth. `if_generation` compares with `generation` of the reading.",
        )
        .guarded()
        .fails(&[Failure(409, "wrong_state", "there is no earlier adapter")]),
        Op::AdapterList => note(
            Adapter,
            "The active one, the one before, and the one that the service was started with; newest first.",
        ),
        Op::AdapterChannels => note(
            Adapter,
            "By configuration version: which know the channel, and in which the global settings permit it.",
        ),
        Op::Audit => note(
            Operators,
            "Newest first, always one page. `search` finds actors, objects, actions and details.",
        )
        .paged(),
        Op::AuditVerify => note(
            Operators,
            "Goes along the whole trail. One that was tampered with is an answer, not a failure.",
        ),
        Op::AuditExport => note(
            Operators,
            "JSON Lines, oldest first, each entry with its hash. A download that ends early was cut by an error.",
        ),
        Op::TaskStatus => note(
            Operators,
            "A bare resource, made from the states of the task's objects.",
        )
        .fails(&[Failure(404, "not_found", "there is no such task")]),
        Op::Tasks => note(
            Operators,
            "Newest first, always one page; at most 200 results of each.",
        )
        .paged(),
        Op::TaskCancel => note(
            Operators,
            CANCEL,
        )
        .waits(ForObject)
        .guarded()
        .fails(&[
            Failure(404, "not_found", "there is no such task"),
            Failure(409, "not_cancellable", "tasks of this type can't be cancelled"),
            Failure(409, "wrong_state", "the task has ended"),
            IMAGE_REMOVED,
        ]),
        Op::ImagesList => note(
            Images,
            "Those of the repository `image.name`, and those that users have; with `all` every image. `search` finds tags and ids.",
        )
        .paged()
        .fails(&[ENGINE]),
        Op::ImagesPull => note(Images, PULL).guarded().fails(&[
            IMAGE_REMOVED,
            STREAMS,
        ]),
        Op::ImagesPulls => note(
            Images,
            "What this replica pulls, and what an administrator asked for and the engine does not have yet.",
        )
        .paged(),
        Op::ImagesPullsCancel => note(
            Images,
            "What the engine has, it keeps. `converged` says that the reconciler has taken note.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[
            Failure(404, "not_found", "nothing of that name is being pulled"),
            IMAGE_REMOVED,
        ]),
        Op::ImagesDelete => note(
            Images,
            "A reference goes; of an id, the image with all its references. While the engine cannot be reached, references of `image.name` are accepted without a look.",
        )
        .waits(ForObject)
        .fails(&[
            Failure(404, "not_found", "neither engine nor database knows the image"),
            Failure(409, "not_managed", "the image is of another repository than `image.name`; `force` removes it"),
            Failure(409, "image_in_use", "`users` have it; `alternatives` are there"),
            ENGINE,
        ]),
        Op::ImagesMigrate => note(
            Images,
            "A rollout of everybody who has `image`, by name, or of those named. The new image is pulled if it is missing.",
        )
        .waits(ForTask)
        .fails(START_FAILURES),
        Op::ImagesUpgrade => note(Images, UPGRADE).waits(ForTask).fails(&[
            IN_ROLLOUT,
            NO_USERS,
            Failure(422, "not_available_yet", "there are no groups yet"),
            STREAMS,
        ]),
        Op::ImagesRollouts => note(
            Images,
            "Newest first, always one page. `search` finds ids, references and actors.",
        )
        .paged(),
        Op::ImagesRollout => note(
            Images,
            "What became of each user, in the order in which they are moved. `search` finds users.",
        )
        .paged()
        .fails(&[NO_ROLLOUT]),
        Op::ImagesRolloutsPause => note(
            Images,
            "Nobody more is moved until it is resumed; users under way are waited for. `converged` says that the reconciler has taken note.",
        )
        .waits(ForObject)
        .guarded()
        .fails(ROLLOUT_FAILURES),
        Op::ImagesRolloutsResume => note(
            Images,
            "The image is pulled and resolved once more, who failed gets another turn, and it goes on.",
        )
        .waits(ForObject)
        .guarded()
        .fails(ROLLOUT_FAILURES),
        Op::ImagesRolloutsCancel => note(
            Images,
            "Nobody more is moved; users under way are waited for, and that is the end.",
        )
        .waits(ForObject)
        .guarded()
        .fails(ROLLOUT_FAILURES),
        Op::ImagesRolloutsRollback => note(
            Images,
            "Everybody goes back to the image of before; also of a rollout that has ended, by default the newest of all.",
        )
        .waits(ForObject)
        .guarded()
        .fails(&[NO_ROLLOUT, ROLLOUT_STATE, IN_ROLLOUT]),
        Op::ImagesRegistry => note(
            Images,
            "All pages of the registry's list, newest version first, remembered for five minutes.",
        )
        .paged()
        .fails(&[Failure(502, "remote_failed", "the registry can't be reached, refuses, or answers with something else")]),
        Op::ImagesLocalTags => note(
            Images,
            "Tags of `image.name` that are on the engine, newest version first.",
        )
        .paged()
        .fails(&[ENGINE]),
        Op::ImagesUpgradeCandidates => note(
            Images,
            "Users who have another reference, or the same one from before it was last pulled. No engine is asked.",
        )
        .paged(),
        Op::ImagesUsers => note(Images, "By reference or id. No engine is asked.").paged(),
    }
}

const LOG: &str = "The newest lines, at most 1 MiB. With `follow=true` an event stream: one event for each line, `end` when the log has ended, `error` with a JSON object of `error` and `code` when reading failed. It lasts no longer than the session.";
const ROLLBACK: &str = "Every key that has changed since the revision becomes what it was after it: a save like any other, with a revision of its own. Secrets and `security` stay as they are now. Objects such as `agent` come back as the history shows them: a masked leaf keeps what is stored there now; one of which nothing is stored any more refuses the whole, so that nothing is lost; what was not there then goes. With `dry_run` nothing is saved.";
const APPLY: &str = "The files of one user, or of everybody, are looked at and brought to what is configured; an agent whose files change so is restarted. Of one user the answer waits, 10 s unless `wait` says otherwise. Everybody's are a task of type `config_apply`, not waited for by default; each call is a task of its own. Whoever changes something of one user comes before them. `if_generation` goes with `username` only.";
const CANCEL: &str = "A rollout moves nobody more, a pull is called off; `converged` says that its reconciler has taken note. A task of type `config_apply` ends at once: users it has not reached count as failed, `cancelled`. What is configured stays so, and ordinary passes still bring it to them.";
const PULL: &str = "An image that is there is pulled once more. The event stream has one JSON object per event: `status`, `id`, `progressDetail` and `progress` as the engine reports them, and `percent` of the whole, which never falls; the last one is `{\"status\":\"done\",\"digest\"}` or `{\"status\":\"error\",\"error\"}`. Closing it stops nothing. With `Last-Event-ID` nothing new is asked for, and the stream goes on after that event as far as the past is kept. It lasts no longer than the session. The operation of type `pull` is among the tasks.";
const UPGRADE: &str = "A rollout of the users named, in this order, or of everybody by name: one of `users`, `groups`, `all`. The image is pulled first. With `Accept: text/event-stream` there is one JSON object per change: `status` (the phase), `task_id`, `total`, `done`, `failed`, `running`, `pending`, `message`; the last one is `{\"status\":\"done\",\"task_id\",\"total\"}` or, when it failed or paused, `{\"status\":\"error\",\"error\",\"task_id\"}`. Closing it stops nothing.";
