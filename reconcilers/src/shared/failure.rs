//! Classes of the failures of engine and packet filter.

use engine::{EngineError, FirewallError};
use schema::condition::Reason;

use crate::runtime::{Classify, ErrorClass};

impl Classify for EngineError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Unavailable(_) => (ErrorClass::Transient, Reason::EngineUnavailable),
            Self::Timeout(_) => (ErrorClass::Transient, Reason::Retrying),
            Self::NotFound(_) => (ErrorClass::Conflict, Reason::Retrying),
            Self::NameTaken(_) => (ErrorClass::Conflict, Reason::NameConflict),
            Self::Conflict(_) => (ErrorClass::Conflict, Reason::Retrying),
            Self::Refused(_) | Self::Unsupported(_) => {
                (ErrorClass::Terminal, Reason::InvalidSettings)
            }
            Self::Forbidden(_) => (ErrorClass::Transient, Reason::EngineForbidden),
            Self::QuotaExceeded(_) => (ErrorClass::Transient, Reason::EngineQuota),
            Self::NetworkFull => (ErrorClass::Transient, Reason::NetworkFull),
            Self::StorageFull(_) => (ErrorClass::Transient, Reason::StorageFull),
            Self::PullFailed(_) | Self::PullRefused(_) | Self::RegistryFailed(_) => {
                (ErrorClass::Transient, Reason::ImagePullFailed)
            }
            Self::Internal(_) => (ErrorClass::Transient, Reason::Retrying),
        }
    }
}

impl Classify for FirewallError {
    fn classify(&self) -> (ErrorClass, Reason) {
        (ErrorClass::Transient, Reason::Retrying)
    }
}
