use engine::EngineError;
use kube::core::Status;

use crate::failure::{from_client, from_status};

fn kind(error: &EngineError) -> &'static str {
    match error {
        EngineError::Unavailable(_) => "unavailable",
        EngineError::Timeout(_) => "timeout",
        EngineError::NotFound(_) => "not found",
        EngineError::NameTaken(_) => "taken",
        EngineError::Conflict(_) => "conflict",
        EngineError::Refused(_) => "refused",
        EngineError::Forbidden(_) => "forbidden",
        EngineError::QuotaExceeded(_) => "quota",
        EngineError::StorageFull(_) => "full",
        EngineError::Internal(_) => "internal",
        _ => "other",
    }
}

#[rstest::rstest]
#[case(
    403,
    "Forbidden",
    "pods \"agent-u1\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3",
    "quota"
)]
#[case(
    403,
    "Forbidden",
    "pods \"agent-u1\" is forbidden: failed quota: mem: must specify limits.memory for: agent",
    "quota"
)]
#[case(
    403,
    "Forbidden",
    "pods is forbidden: User \"system:serviceaccount:a:b\" cannot create resource \"pods\" in API group \"\" in the namespace \"a\"",
    "forbidden"
)]
#[case(
    403,
    "Forbidden",
    "pods \"agent-u1\" is forbidden: unable to create new content in namespace a because it is being terminated",
    "forbidden"
)]
#[case(
    403,
    "Forbidden",
    "pods \"agent-u1\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
    "refused"
)]
#[case(
    403,
    "Forbidden",
    "pods \"agent-u1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
    "refused"
)]
#[case(
    400,
    "BadRequest",
    "admission webhook \"w\" denied the request: no",
    "refused"
)]
#[case(
    422,
    "Invalid",
    "Pod \"agent-u1\" is invalid: spec.containers[0].image: Required value",
    "refused"
)]
#[case(404, "NotFound", "pods \"agent-u1\" not found", "not found")]
#[case(409, "AlreadyExists", "pods \"agent-u1\" already exists", "taken")]
#[case(409, "Conflict", "the object has been modified", "conflict")]
#[case(
    409,
    "Conflict",
    "Precondition failed: UID in precondition: a, UID in object meta: b",
    "conflict"
)]
#[case(410, "Expired", "too old resource version", "conflict")]
#[case(401, "Unauthorized", "Unauthorized", "unavailable")]
#[case(429, "TooManyRequests", "slow down", "internal")]
#[case(
    500,
    "InternalError",
    "failed calling webhook \"w\": connection refused",
    "internal"
)]
#[case(500, "", "etcdserver: mvcc: database space exceeded", "full")]
#[case(503, "ServiceUnavailable", "apiserver is shutting down", "unavailable")]
#[case(504, "Timeout", "etcdserver: request timed out", "internal")]
fn answer_is_told_by_code_and_words(
    #[case] code: u16,
    #[case] reason: &str,
    #[case] message: &str,
    #[case] expected: &str,
) {
    let status = Status {
        code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Status::default()
    };
    let error = from_status(&status);
    assert_eq!(kind(&error), expected, "{error:?}");
    assert_eq!(
        kind(&from_client(kube::Error::Api(Box::new(status)))),
        expected
    );
}

#[test]
fn lost_connection_is_no_answer() {
    let service = kube::Error::Service("connection refused".into());
    assert_eq!(kind(&from_client(service)), "unavailable");
    let broken = serde_json::from_str::<u8>("").unwrap_err();
    assert_eq!(
        kind(&from_client(kube::Error::SerdeError(broken))),
        "unavailable"
    );
    let strange = serde_json::from_str::<u8>("{}").unwrap_err();
    assert_eq!(
        kind(&from_client(kube::Error::SerdeError(strange))),
        "internal"
    );
}

#[test]
fn long_answer_is_cut() {
    let status = Status {
        code: 422,
        message: "ä".repeat(5000),
        ..Status::default()
    };
    let EngineError::Refused(text) = from_status(&status) else {
        panic!("refused");
    };
    assert_eq!(text.len(), 1000);
}
