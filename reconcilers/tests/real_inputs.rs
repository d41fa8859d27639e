//! The table of real inputs of directories and identity providers: `docs/architecture/real-inputs.md`.

#[path = "../../tests/support/real_inputs.rs"]
mod table;

use std::path::Path;

use reconcilers::drivers::ldap::{Directory, DirectorySettings, GroupSearch, Listing};
use reconcilers::drivers::oidc::{IdentityProvider, ProviderError};
use schema::live::ProvidedIdentity;
use serde_json::{Value, json};

use self::table::{Outcome, Row, check, row};
use crate::ldap::server::{Slapd, password};
use crate::oidc::odd::with_claims;
use crate::oidc::provider::{Op, header, ok};
use crate::{ldap, oidc};

fn warned(warnings: Vec<String>) -> Outcome {
    match warnings.is_empty() {
        true => Outcome::Taken,
        false => Outcome::Warned(warnings),
    }
}

/// Odd entries: two names, a photo and a certificate, members in other case and with spaces, an RDN of two attributes.
const ENTRIES: &str = "dn: cn=Two Names,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: two.names\nuid: tnames\n\
    cn: Two Names\nsn: n\n\n\
    dn: uid=photo,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: photo\ncn: p\nsn: p\njpegPhoto:: /9j/4A==\n\
    description:: w7w=\n\n\
    dn: cn=case,ou=groups,dc=example,dc=org\nobjectClass: posixGroup\ncn: case\ngidNumber: 7\nmemberUid: ALICE\n\n\
    dn: cn=space,ou=groups,dc=example,dc=org\nobjectClass: posixGroup\ncn: space\ngidNumber: 8\nmemberUid:: YWxpY2Ug\n\n";

fn groups_of(listing: &Listing, name: &str) -> Option<Vec<String>> {
    let person = listing.people.iter().find(|person| person.name == name)?;
    Some(person.groups.clone()?.into_iter().collect())
}

fn is_in(groups: Option<Vec<String>>, expected: &[&str]) -> Outcome {
    match groups {
        Some(groups)
            if expected
                .iter()
                .all(|name| groups.contains(&(*name).to_owned())) =>
        {
            Outcome::Taken
        }
        other => Outcome::Refused(format!("{other:?}")),
    }
}

async fn rows_of_directories() -> Vec<Row> {
    const ENTRY: &str = "entries of a directory";
    const MEMBERS: &str = "members of a group";
    let slapd = Slapd::with(&[], None, "", ENTRIES);
    let settings = DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "dc=example,dc=org".to_owned(),
            filter: "(&(objectClass=posixGroup)(cn={{groupname}}))".to_owned(),
            member_attribute: "memberUid".to_owned(),
        },
        ..slapd.settings()
    };
    let directory = ldap::directory();
    let listing = directory.list(&settings).await.unwrap();
    let alice = directory
        .sign_in(&settings, "alice", &password("alice"))
        .await
        .unwrap()
        .unwrap();
    let signed_in = alice.groups.map(|groups| groups.into_iter().collect());
    let left_out: Vec<String> = listing
        .left_out
        .iter()
        .map(|left| format!("{}: {}", left.dn, left.reason))
        .collect();
    let refused = Outcome::Refused(left_out.join("; "));
    let both = ["case", "space"];
    let readers = [
        is_in(signed_in, &both),
        is_in(groups_of(&listing, "alice"), &both),
    ];
    vec![
        row(
            1,
            ENTRY,
            "a photo and other attributes that nothing reads",
            is_in(groups_of(&listing, "photo"), &[]),
            &[],
        ),
        row(
            2,
            ENTRY,
            "an entry with two names",
            warned(left_out.clone()),
            &["Two Names"],
        ),
        row(
            3,
            MEMBERS,
            "`memberUid: ALICE` for alice",
            is_in(groups_of(&listing, "alice"), &["case"]),
            &[],
        ),
        row(
            3,
            MEMBERS,
            "`memberUid` with a space at its end",
            is_in(groups_of(&listing, "alice"), &["space"]),
            &[],
        ),
        row(
            4,
            ENTRY,
            "an entry with two names",
            warned(left_out),
            &["2 values of uid"],
        ),
        row(
            5,
            ENTRY,
            "an entry with two names",
            refused,
            &["two.names", "leave one of them"],
        ),
        row(
            6,
            MEMBERS,
            "members in another case and with spaces, at sign-in and in the synchronisation",
            Outcome::Same(readers.into()),
            &[],
        ),
    ]
}

fn identity(found: Result<ProvidedIdentity, ProviderError>) -> Outcome {
    match found {
        Ok(found) => warned([found.left_out, found.renamed].concat()),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

async fn rows_of_providers() -> Vec<Row> {
    const CLAIMS: &str = "claims of a provider";
    const TOKEN: &str = "token answer of a provider";
    const DISCOVERY: &str = "description of a provider";
    let op = Op::new().await;
    let (driver, settings) = (oidc::driver(), op.settings());
    let claims =
        async |claims: Value| identity(with_claims(&driver, &op, &settings, &claims).await);
    let unused = json!({"preferred_username": "ann", "locale": 7, "address": [], "email_verified": "yes", "groups": []});
    let mixed = json!({"preferred_username": "ann", "groups": ["dev", {"id": 7}]});
    let path = json!({"preferred_username": "ann", "groups": ["/engineering/platform"]});
    let overage = json!({"preferred_username": "ann", "_claim_names": {"groups": "src1"}});
    let mut rows = vec![
        row(
            1,
            CLAIMS,
            "unused claims of any form",
            claims(unused).await,
            &[],
        ),
        row(
            2,
            CLAIMS,
            "an object among the groups",
            claims(mixed).await,
            &["groups"],
        ),
        row(
            3,
            CLAIMS,
            "`/engineering/platform` as a group (Keycloak)",
            claims(path).await,
            &["engineering:platform"],
        ),
        row(
            4,
            CLAIMS,
            "too many groups for the token (Microsoft Entra ID)",
            claims(overage).await,
            &["stay as they are"],
        ),
    ];
    for (rule, form, change) in [
        (1, "`\"scope\": [\"openid\"]`", json!({"scope": ["openid"]})),
        (
            3,
            "`\"expires_in\": \"3599\"`",
            json!({"expires_in": "3599"}),
        ),
    ] {
        let (_, pending) = driver.begin(&settings, false).await.unwrap();
        let token = op.key.token(&header(), &op.claims(&pending.nonce));
        let mut body = json!({"access_token": "at", "token_type": "Bearer", "id_token": token});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        op.tell(|says| says.token = ok(&body));
        let found = driver.finish(&settings, &pending, &oidc::returned()).await;
        rows.push(row(rule, TOKEN, form, identity(found), &[]));
    }
    op.tell(|says| says.discovery = Some(ok(&json!({"issuer": op.issuer()}))));
    let fresh = oidc::driver();
    // The provider has another port each time.
    let shown = |text: String| text.replace(&op.issuer(), "https://id.example");
    let used = shown(fresh.begin(&settings, false).await.unwrap_err().to_string());
    let tested = shown(fresh.check(&settings).await.remove(0).detail);
    let lacking = "no addresses in it";
    let parts = &["jwks_uri is missing", "have it added at the provider"];
    rows.push(row(
        5,
        DISCOVERY,
        lacking,
        Outcome::Refused(used.clone()),
        parts,
    ));
    let both = [Outcome::Refused(used), Outcome::Refused(tested)];
    rows.push(row(
        6,
        DISCOVERY,
        "no addresses in it, at sign-in and in the test of the settings",
        Outcome::Same(both.into()),
        &[],
    ));
    rows
}

#[tokio::test]
async fn readers_of_directories_and_providers_keep_the_rules() {
    let mut rows = rows_of_directories().await;
    rows.extend(rows_of_providers().await);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    check(&root, "reconcilers", &rows);
}
