//! Conditions: what is known of an object, why, and since when.

use serde::{Deserialize, Serialize};

use crate::ids::{Generation, ObjectRef, Timestamp};

/// The type of a condition.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
pub enum ConditionType {
    /// Observed to be as desired, with nothing left to do.
    Ready,
    /// Makes no progress by itself: needs manual action.
    Stalled,
    /// Reconciliation of this object is suspended.
    Paused,
    /// The user's directory takes no more than the quota; absent while that is far.
    WithinQuota,
    /// Agents are kept from the services of the host and the networks behind it: of the engine, and a warning only, since
    /// agents run without it.
    HostRestricted,
}

impl ConditionType {
    /// Returns true for a condition that says nothing about `Ready`: if it is false, operators are warned.
    pub fn is_warning(self) -> bool {
        match self {
            Self::HostRestricted => true,
            Self::Ready | Self::Stalled | Self::Paused | Self::WithinQuota => false,
        }
    }
}

/// A condition's status.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It could not be observed.
    Unknown,
}

/// Needs manual action before it can become `Ready=True`.
const MANUAL: bool = true;
/// Passes by itself, or is nothing to pass.
const AUTOMATIC: bool = false;

/// A row for each reason: who has to act, one line that says what to do about it (empty when there is nothing to
/// do), and what the next reconciliation does by itself (empty when nothing is wrong).
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident => $needs_action:expr, $remedy:literal, $next_try:literal;)+) => {
        /// Why a condition has its status: a stable word for programs, with a remedy for operators.
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            Hash,
            Serialize,
            Deserialize,
            strum::Display,
            strum::IntoStaticStr,
            strum::EnumString,
            strum::VariantArray,
            utoipa::ToSchema,
        )]
        #[schema(example = "Running")]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// Whether manual action is needed before this can become `Ready=True`: for a caller who waits, a failure.
            pub fn needs_action(self) -> bool {
                match self {
                    $(Self::$name => $needs_action,)+
                }
            }

            /// One line that says what to do about it; empty when there is nothing to do.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)+
                }
            }

            /// What the next reconciliation does by itself; empty when nothing is wrong.
            pub fn next_try(self) -> &'static str {
                match self {
                    $(Self::$name => $next_try,)+
                }
            }
        }
    };
}

reasons! {
    /// Nothing was observed yet.
    Pending => AUTOMATIC, "Wait; reconciliation continues automatically.", "the next step is taken";
    /// Observed as desired: running and ready.
    Running => AUTOMATIC, "", "";
    /// Observed as desired: stopped on purpose.
    Stopped => AUTOMATIC, "", "";
    /// Observed as desired: stopped because the account is disabled.
    Disabled => AUTOMATIC, "Enable the user to start the container; one who is missing from the directory is enabled once it has the user again.", "";
    /// Observed as desired (objects that neither run nor stop).
    Converged => AUTOMATIC, "", "";
    /// Observed as desired; the source of adapter packages has a newer one, which waits for its activation.
    UpdateAvailable => AUTOMATIC, "Run `agentyard adapter refresh` to activate it, or set adapter.auto_activate.", "";
    /// Steps towards the desired state are under way.
    Progressing => AUTOMATIC, "Wait; reconciliation continues automatically.", "the next step is taken";
    /// Started, but the readiness check has not passed yet.
    NotReady => AUTOMATIC, "Wait; read the container's log if it does not become ready.",
        "the readiness check is repeated";
    /// The container engine cannot be reached.
    EngineUnavailable => AUTOMATIC, "Start the container engine or correct its address, as engine/local says; recovery is automatic.",
        "the connection to the engine is retried";
    /// The container engine speaks an API that is too old.
    EngineTooOld => MANUAL, "Upgrade the engine to the version that the message names, or newer.",
        "the engine's version is checked again";
    /// The engine sees another data directory than the service does.
    DataDirMismatch => MANUAL, "Set --engine-data-dir to the path of the data directory on the engine's host.",
        "the data directory is checked again";
    /// The agent network does not exist yet.
    NetworkMissing => AUTOMATIC, "Wait; the engine reconciler creates the network. If this persists, see `agentyard describe engine/local`.",
        "the network is checked again";
    /// The agent network must be recreated, but containers still use it.
    NetworkInUse => MANUAL, "Stop all containers, or restore the previous container.network_subnet.",
        "the network is checked again";
    /// The agent network has no free address.
    NetworkFull => MANUAL, "Delete users, or stop all containers and set a larger container.network_subnet.",
        "an address is requested again";
    /// The image is not on the engine and may not be pulled.
    ImageMissing => MANUAL, "Load the image on the engine, or set image.pull_policy to missing or always.",
        "the image is looked up on the engine again";
    /// The image is being pulled.
    ImagePulling => AUTOMATIC, "Wait until the pull has finished.", "the pull is checked again";
    /// The image could not be pulled.
    ImagePullFailed => MANUAL, "Check image.name, image.tag and the registry credentials; the pull is retried. Users who exist keep the image of before: `agentyard rollout start IMAGE --all` gives them another.",
        "the pull is retried";
    /// A pull that an administrator requested has failed.
    PullFailed => MANUAL, "Correct what the message names, then request the pull again with `agentyard image pull IMAGE`; `agentyard image delete IMAGE` withdraws the request.",
        "nothing is tried until the pull is requested again";
    /// The image is to be deleted, but users have it.
    ImageInUse => MANUAL, "Move its users to another image with `agentyard rollout start IMAGE --from IMAGE`; the image is then deleted automatically.",
        "the users of the image are checked again";
    /// A user did not become ready on the new image; no more users are moved.
    RolloutPaused => MANUAL, "Inspect the failed users (`agentyard rollout status`), then run `agentyard rollout resume`, `agentyard rollout rollback` or `agentyard rollout cancel`.",
        "nothing is tried until it is resumed";
    /// The rollout ended, and users could not be moved, or not back.
    RolloutFailed => MANUAL, "Inspect the failed users (`agentyard rollout status`), then start another rollout for them, or return all users with `agentyard rollout rollback`.",
        "nothing is tried; the rollout has ended";
    /// The container waits until the agent's files are as desired.
    ConfigPending => AUTOMATIC, "Wait; the agent-config reconciler writes the files. If this persists, see `agentyard describe agent-config/NAME`.",
        "the agent's files are checked again";
    /// A file of the agent cannot be read, so it is left unchanged.
    InvalidUserConfig => MANUAL, "Correct or delete the file named in the message, inside the container, then run `agentyard retry agent-config/NAME`.",
        "the files are read again";
    /// The agent's files cannot be brought to the version that the image reads.
    NoMigrationPath => MANUAL, "Choose an image that reads the files, or an adapter that declares this migration.",
        "the files are rendered again";
    /// The global agent or security settings cannot be used.
    InvalidGlobalConfig => MANUAL, "Correct the keys agent and security of the configuration.",
        "the files are rendered again";
    /// The source of adapter packages could not be read.
    AdapterSourceFailed => MANUAL, "Check adapter.source_url and that the service can reach it; the source is retried.",
        "the source is read again";
    /// The source of adapter packages returned an invalid package.
    AdapterInvalid => MANUAL, "Correct the package as the message says; the active adapter stays in effect.",
        "the source is read again";
    /// Users cannot sign in, because their identity provider cannot be used.
    ProviderFailed => MANUAL, "Check the oidc settings and the provider with `agentyard auth test oidc`; users cannot sign in.",
        "the provider is asked again at the next sign-in";
    /// Groups that the identity provider names for a user could not be taken.
    GroupsLeftOut => AUTOMATIC, "Correct what the message names at the identity provider, or oidc.groups_claim; the groups are read at each sign-in.",
        "the groups are read again at the next sign-in";
    /// A user was renamed because the user's entry in the directory was.
    Renamed => AUTOMATIC, "The account is the same; the user signs in with the new name.",
        "";
    /// The directory could not be read.
    DirectoryFailed => MANUAL, "Check the ldap settings and the directory with `agentyard auth test`; the directory is asked again.",
        "the directory is read again";
    /// A synchronisation would remove more than it may without confirmation.
    MassRemoval => MANUAL, "Check the directory and the ldap settings; if the removal is right, run `agentyard auth sync --confirm DIGEST` with the digest of the message.",
        "nothing is removed until it is confirmed, or the directory has the users again";
    /// An object of the same name exists that Agentyard does not own.
    NameConflict => MANUAL, "Rename or remove the foreign object; Agentyard never touches what it does not own. If it belongs to another Agentyard that is in use, give this one an engine of its own.",
        "the name is checked again";
    /// The store does not have the files of a skill.
    SkillMissing => MANUAL, "Upload or install the skill again, or return to a version that is there with `agentyard skill rollback NAME`.",
        "the store is inspected again";
    /// Observed as desired; the skill has no SKILL.md, by which agents find it.
    NoManifest => AUTOMATIC, "Add a SKILL.md to the package and upload it again.", "";
    /// The repository is being cloned.
    Cloning => AUTOMATIC, "Wait until the clone has finished.", "the clone is checked again";
    /// The repository could not be cloned.
    CloneFailed => MANUAL, "Correct what the message names, then run `agentyard skill repo pull NAME`.",
        "nothing is tried until a pull is requested";
    /// The host of the repository has another key than the one that was learned.
    HostKeyChanged => MANUAL, "If the change is legitimate, run `agentyard skill repo save NAME --forget-host-key`.",
        "nothing is tried until a pull is requested";
    /// The user's directory cannot be used as it is.
    HomeConflict => MANUAL, "Inspect the user's directory on the server: it has another owner or is not a directory.",
        "the user's directory is checked again";
    /// The user's directory does not exist yet.
    HomeMissing => AUTOMATIC, "Wait; the user reconciler creates the directory. If this persists, see `agentyard describe user/NAME`.",
        "the user's directory is checked again";
    /// No machine of the engine has room for the container.
    Unschedulable => MANUAL, "Add machines or free their memory and processors, or lower the limits of the container; it starts by itself once there is room.",
        "the engine looks for a machine again";
    /// The user's directory cannot be mounted on the container's machine yet.
    VolumePending => MANUAL, "Check the volume of the data directory and its storage class; the mount is retried.",
        "the engine tries the mount again";
    /// The engine took the container from a machine that was short of memory, disk or processes.
    Evicted => AUTOMATIC, "Wait for the restart; if it happens again, give the machines more room or the containers lower limits.",
        "the container is started again";
    /// The container's machine does not answer, so it is not known whether the agent still runs there.
    NodeLost => MANUAL, "Bring the machine back or remove it from the engine; the agent is then started again. No second one is started before.",
        "the engine is asked again";
    /// The service lacks a right on the engine.
    EngineForbidden => MANUAL, "Give the service the right that the message names; `agentyard doctor` lists all of them.",
        "the call is made again";
    /// A quota of the engine leaves no room for the container.
    EngineQuota => MANUAL, "Raise the quota that the message names, or stop or limit other containers.",
        "the container is started again";
    /// The container repeatedly exits soon after its start.
    CrashLoop => MANUAL, "Read the container's log, correct the image or configuration, then run `agentyard restart container/NAME`.",
        "the container is restarted";
    /// The agent was ready and does not answer any more.
    Unresponsive => AUTOMATIC, "Wait for the restart; read the container's log if it happens again.", "the container is restarted";
    /// The container exited by itself and is about to be restarted.
    Exited => AUTOMATIC, "Wait for the restart, or read the container's log.", "the container is restarted";
    /// The engine failed to start the container.
    StartFailed => AUTOMATIC, "Wait; after three failed starts the container is recreated. `agentyard restart container/NAME` recreates it at once; if that does not help, restart the container engine.",
        "the container is started again";
    /// The replacement did not become ready; the previous container was restored.
    ReplacementFailed => MANUAL, "Read the events (`agentyard describe container/NAME`), then correct the image or settings, or retry with `agentyard restart container/NAME`.",
        "the replacement is retried";
    /// `run_as=image` needs a service that runs as root.
    NeedsRoot => MANUAL, "Run the service as root, or choose an adapter with run_as=service.",
        "the user of the service is checked again";
    /// The rules that keep agents from the host and the networks behind it cannot be made.
    HostOpen => MANUAL, "Run the service as root on the engine's host and install iptables. Or accept it: container.host_access=service starts agents all the same, and open (with container.lan_access=open) ends the warning.",
        "the rules are tried again";
    /// Agents reach addresses that the cluster's network policies close.
    IsolationNotEnforced => MANUAL, "Use a network plug-in that enforces network policies; in the engine's options, name addresses of the cluster in network.closed and its name servers in network.nameServers.",
        "the addresses are tried again";
    /// The engine refused the container's settings.
    InvalidSettings => MANUAL, "Correct the settings named in the message.", "the same settings are tried again";
    /// The user's directory takes more than the quota.
    QuotaExceeded => MANUAL, "Remove files in the user's workspace (the files page works while the agent is stopped), or raise files.quota_mb or files.quota_files until the agent has removed what lies elsewhere in its home.",
        "the directory is measured again";
    /// The user's directory takes nearly as much as the quota allows.
    QuotaNearlyUsed => AUTOMATIC, "Remove files in the user's workspace, or raise files.quota_mb or files.quota_files.", "";
    /// The user's directory takes less than the quota again.
    WithinQuota => AUTOMATIC, "", "";
    /// The storage of the engine or of the data directory is full.
    StorageFull => MANUAL, "Free space on the engine's storage or the data directory.",
        "the step that found no space is retried";
    /// A reconciliation failed for a temporary reason and is retried.
    Retrying => AUTOMATIC, "Wait for the next attempt, or run `agentyard retry KIND/NAME`.", "the failed step is retried";
    /// A reconciliation failed for a reason that a retry does not mend.
    Failed => MANUAL, "Correct what the message names, then run `agentyard retry KIND/NAME`.", "the failed step is retried";
    /// A reconciliation crashed; this is a defect of Agentyard.
    Panicked => AUTOMATIC, "Report the log of this reconciliation; it is retried.", "the failed step is retried";
    /// Five reconciliations in a row changed something for the same generation.
    NoProgress => AUTOMATIC, "Find out what else changes this object; reconciliation continues with a growing delay.",
        "the change is made again";
    /// Being removed.
    Terminating => AUTOMATIC, "Wait; reconciliation continues automatically.", "the removal continues";
    /// This object, its reconciler, or all reconciliation is paused.
    PausedByOperator => MANUAL, "Resume it with `agentyard resume KIND/NAME`, `--reconciler NAME` or `--all`, when you are done.", "nothing is tried until it is resumed";
    /// The event stream is lost; the resync finds changes, later.
    WatchLost => AUTOMATIC, "Check the connection to the engine or database; it is restored automatically.",
        "the event stream is reopened";
    /// The event stream is back.
    WatchRestored => AUTOMATIC, "", "";
    /// A task of the service ended by itself or crashed, and the process with it.
    TaskEnded => AUTOMATIC, "Report the log; the supervisor of the process restarts the service.",
        "the service is restarted by its supervisor";
    /// A file of the user was being read when the service ended twice, and was renamed.
    FileSetAside => AUTOMATIC, "Report the log of the service. The file lies beside its former place, under the name in the message; rename it back to have it read again.", "";
    /// The storage of the data directory or of the database is nearly full.
    StorageLow => AUTOMATIC, "Free space on the storage of the data directory and the database.", "";
    /// The newest scheduled backup has failed, or none was made for too long.
    BackupFailed => AUTOMATIC, "See `agentyard events` for the cause, mend it, and make a backup with `agentyard backup DIR`.",
        "the backup is tried again";
    /// New files of the server's certificate cannot be used; the one before is.
    CertificateRefused => AUTOMATIC, "Correct the files of --tls-cert and --tls-key, as the log says; they are read again when one changes.",
        "the files are read again when one changes";
    /// The database cannot read or write its storage.
    StorageFailed => AUTOMATIC, "Check the storage of the database: the disk, and whether it is mounted read-only.",
        "each change is tried again";
    /// The database cannot be reached.
    DatabaseUnavailable => AUTOMATIC, "Start the database, or restore the connection to it; recovery is automatic.",
        "the connection to the database is retried";
    /// A process does not lead any more; another one may.
    LeaseLost => AUTOMATIC, "Check the database and the connection to it; reconciliation continues automatically.",
        "the lease is requested again";
    /// A reconciler makes no progress although work is queued.
    Stuck => AUTOMATIC, "Report the log; restart the service if it does not recover.",
        "the reconciler continues when it is no longer blocked";
    /// A reconciler that was stuck makes progress again.
    Recovered => AUTOMATIC, "", "";
}

impl Reason {
    /// How to fix it for an object, which is `kind/name`.
    pub fn remedy_for(self, object: &str) -> String {
        let name = object.split_once('/').map_or(object, |(_, name)| name);
        let named = self.remedy().replace("KIND/NAME", object);
        named.replace("/NAME", &format!("/{name}"))
    }

    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// Why, stable for programs.
    pub reason: Reason,
    /// Why, for operators. Never holds a secret.
    pub message: String,
    /// The object that this one waits for, if it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "agent-config/alice")]
    pub waits_for: Option<ObjectRef>,
    /// The generation that was observed.
    pub observed_generation: Generation,
    /// When `status` last changed.
    pub last_transition_at: Timestamp,
    /// How far what is under way is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    pub percent: Option<u8>,
}

impl Condition {
    /// A statement without history: generation and time are filled in by the runtime when it is saved.
    pub fn new(
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason,
            message: message.into(),
            waits_for: None,
            observed_generation: Generation::default(),
            last_transition_at: Timestamp::default(),
            percent: None,
        }
    }

    /// Whether it does not hold until somebody takes action.
    pub fn needs_action(&self) -> bool {
        self.status != ConditionStatus::True && self.reason.needs_action()
    }

    /// `Ready=True`: only ever made from an observation with nothing left to do.
    pub fn ready(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ConditionType::Ready, ConditionStatus::True, reason, message)
    }

    /// `Ready=False`.
    pub fn not_ready(reason: Reason, message: impl Into<String>) -> Self {
        let status = ConditionStatus::False;
        Self::new(ConditionType::Ready, status, reason, message)
    }

    /// `Ready=Unknown`: it could not be observed.
    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        let status = ConditionStatus::Unknown;
        Self::new(ConditionType::Ready, status, reason, message)
    }

    /// Equality without times and generations: whether saving `other` over `self` would say anything new.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.waits_for == other.waits_for
            && self.percent == other.percent
    }
}

/// Lists the warnings among these conditions.
pub fn warnings(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    let is_warning = |c: &&Condition| c.kind.is_warning() && c.status == ConditionStatus::False;
    conditions.iter().filter(is_warning)
}

/// Finds the condition of one type.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// Of an object that nobody observes while it is paused: whether it still is as it should be is not known.
pub fn not_observed(conditions: &mut [Condition]) {
    let ready = |condition: &&mut Condition| {
        condition.kind == ConditionType::Ready && condition.status == ConditionStatus::True
    };
    let Some(ready) = conditions.iter_mut().find(ready) else {
        return;
    };
    let said = match ready.message.as_str() {
        "" => ready.reason.to_string(),
        message => format!("{}, {message}", ready.reason),
    };
    ready.message = format!("not observed while paused; last observed: {said}");
    ready.status = ConditionStatus::Unknown;
    ready.reason = Reason::PausedByOperator;
}

/// Carries times over: a condition keeps its transition time while its status stays the same.
pub fn merge(
    old: &[Condition],
    new: Vec<Condition>,
    generation: Generation,
    now: Timestamp,
) -> Vec<Condition> {
    new.into_iter()
        .map(|mut condition| {
            condition.observed_generation = generation;
            condition.last_transition_at = match find(old, condition.kind) {
                Some(previous) if previous.status == condition.status => {
                    previous.last_transition_at
                }
                _ => now,
            };
            condition
        })
        .collect()
}
