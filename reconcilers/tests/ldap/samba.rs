//! Active Directory, as Samba has it: a domain controller of its own on loopback.
//!
//! Its ports are fixed, so there is one at a time: one test asks it everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reconcilers::drivers::ldap::{
    Directory, DirectoryError, DirectorySettings, GroupSearch, ID_ATTRIBUTES_OF_SERVERS,
    LdapDirectory, Wanted,
};
use secrecy::SecretString;

use super::directory;
use super::server::Certificates;

const SAMBA: &str = "/usr/sbin/samba";
/// Of LDAP, and of LDAP over TLS.
const PORTS: [u16; 2] = [389, 636];
const INSTALL: &str = "apt-get install -y --no-install-recommends samba samba-ad-dc samba-dsdb-modules samba-ad-provision winbind python3-samba";

/// People, groups in groups with a circle, a disabled and a locked account: straight into the database, which is faster than
/// a program for each.
const FILL: &str = r#"
import sys
sys.path.insert(0, '/usr/lib/python3/dist-packages')
import ldb
from samba.samdb import SamDB
from samba.auth import system_session
from samba.param import LoadParm
root = sys.argv[1]
lp = LoadParm()
lp.load(root + '/t/etc/smb.conf')
db = SamDB(url=root + '/t/private/sam.ldb', session_info=system_session(), lp=lp)
base = str(db.domain_dn())
db.create_ou(f'OU=Staff,{base}')
db.transaction_start()
names = ['alice', 'bob', 'carol', 'disabled', 'service'] + [f'ad{n:04d}' for n in range(600)]
for name in names:
    db.newuser(name, f'Pw-{name}-xyz', userou='OU=Staff', setpassword=not name.startswith('ad'))
db.transaction_commit()
def add(group, members):
    message = ldb.Message(ldb.Dn(db, f'CN={group},OU=Staff,{base}'))
    message['member'] = ldb.MessageElement(members, ldb.FLAG_MOD_ADD, 'member')
    db.modify(message)
for group in ['All', 'Inner', 'Outer', 'Round', 'About']:
    db.newgroup(group, groupou='OU=Staff')
dn = lambda name: str(db.search(base, expression=f'(sAMAccountName={name})', attrs=['dn'])[0].dn)
add('All', [dn(name) for name in names])
add('Inner', [dn('alice')])
add('Outer', [f'CN=Inner,OU=Staff,{base}'])
add('Round', [f'CN=About,OU=Staff,{base}', dn('bob')])
add('About', [f'CN=Round,OU=Staff,{base}'])
db.disable_account('(sAMAccountName=disabled)')
"#;

/// Gives an account another name.
const RENAME: &str = r#"
message = ldb.Message(db.search(base, expression=f'(sAMAccountName={sys.argv[2]})', attrs=['dn'])[0].dn)
message['name'] = ldb.MessageElement(sys.argv[3], ldb.FLAG_MOD_REPLACE, 'sAMAccountName')
db.modify(message)
"#;

struct Samba {
    dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Samba {
    fn new() -> Self {
        assert!(
            fs::exists(SAMBA).unwrap(),
            "samba is not installed; install it with: {INSTALL}"
        );
        assert!(
            PORTS
                .iter()
                .all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()),
            "another program listens at port 389 or 636; run the tests in their own network: make run-tests FILTER=…"
        );
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display().to_string();
        fs::create_dir(dir.path().join("run")).unwrap();
        run(Command::new("samba-tool")
            .args([
                "domain",
                "provision",
                "--realm=AD.TEST",
                "--domain=ADT",
                "--server-role=dc",
            ])
            .args([
                "--dns-backend=NONE",
                "--host-name=dc1",
                "--host-ip=127.0.0.1",
            ])
            .args(["--adminpass=Adm1n-Passw0rd", "--use-rfc2307"])
            .arg("--option=interfaces=lo")
            .arg("--option=bind interfaces only=yes")
            .arg("--option=vfs objects=dfs_samba4 acl_xattr xattr_tdb")
            .arg(format!("--targetdir={root}/t")));
        let mut samba = Self { dir, child: None };
        samba.configure("no");
        fs::write(samba.dir.path().join("fill.py"), FILL).unwrap();
        run(Command::new("/usr/bin/python3")
            .arg(samba.dir.path().join("fill.py"))
            .arg(&root));
        samba.start();
        samba
    }

    /// `strong` says whether nobody may bind with a password over a connection that is not encrypted.
    fn configure(&self, strong: &str) {
        let root = self.dir.path().display();
        let settings = format!(
            "[global]\nnetbios name = DC1\nworkgroup = ADT\nrealm = AD.TEST\n\
             server role = active directory domain controller\nserver services = ldap\ninterfaces = lo\n\
             bind interfaces only = yes\ndisable netbios = yes\nldap server require strong auth = {strong}\n\
             private dir = {root}/t/private\nstate directory = {root}/t/state\n\
             cache directory = {root}/t/cache\nlock directory = {root}/t\nbinddns dir = {root}/t/bind-dns\n\
             pid directory = {root}/run\nncalrpc dir = {root}/run/ncalrpc\nlog file = {root}/samba.log\n"
        );
        fs::write(self.dir.path().join("t/etc/smb.conf"), settings).unwrap();
    }

    /// Starts it, and waits until it answers. Where it has no certificates it makes some, which takes seconds.
    fn start(&mut self) {
        let child = Command::new(SAMBA)
            .args(["--foreground", "--model=single", "-s"])
            .arg(self.dir.path().join("t/etc/smb.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let begin = Instant::now();
        for port in PORTS {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                let log = fs::read_to_string(self.dir.path().join("samba.log"));
                assert!(begin.elapsed() < Duration::from_secs(300), "{log:?}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Gives an account another name; it must not run.
    fn rename(&self, name: &str, to: &str) {
        let (head, _) = FILL.split_once("db.create_ou").unwrap();
        let script = self.dir.path().join("rename.py");
        fs::write(&script, format!("{head}{}", RENAME.trim_start())).unwrap();
        let root = self.dir.path();
        run(Command::new("/usr/bin/python3")
            .arg(script)
            .arg(root)
            .args([name, to]));
    }

    /// The authority that it has made for itself, in PEM.
    fn own_authority(&self) -> String {
        fs::read_to_string(self.dir.path().join("t/private/tls/ca.pem")).unwrap()
    }

    /// As it is unless somebody lowers it: no password over a connection that is not encrypted. With these certificates.
    fn restart_strict(&mut self, certificates: &Certificates) {
        self.stop();
        self.rename("ad0004", "ad-married");
        self.configure("yes");
        let tls = self.dir.path().join("t/private/tls");
        for (name, pem) in [
            ("ca.pem", &certificates.authority),
            ("cert.pem", &certificates.certificate),
            ("key.pem", &certificates.key),
        ] {
            fs::write(tls.join(name), pem).unwrap();
        }
        // It takes no key that others could read.
        fs::set_permissions(tls.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
        self.start();
    }
}

impl Drop for Samba {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn settings() -> DirectorySettings {
    DirectorySettings {
        url: "ldap://127.0.0.1".parse().unwrap(),
        start_tls: false,
        ca_certificate: None,
        // Not a DN: Active Directory takes a name with its domain, too.
        bind_dn: "service@ad.test".to_owned(),
        bind_password: SecretString::from("Pw-service-xyz"),
        // The top, where referrals are.
        base_dn: "DC=ad,DC=test".to_owned(),
        filter: "(&(objectCategory=person)(objectClass=user)(sAMAccountName={{username}})(memberOf=CN=All,OU=Staff,DC=ad,DC=test))".to_owned(),
        username_attribute: "sAMAccountName".to_owned(),
        id_attributes: ID_ATTRIBUTES_OF_SERVERS.map(str::to_owned).to_vec(),
        groups: GroupSearch::MemberOf { base_dn: None },
        timeout: Duration::from_secs(10),
        page_size: 100.try_into().unwrap(),
        max_message: 16 * 1024 * 1024,
    }
}

fn groups(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn by_groups() -> DirectorySettings {
    DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "OU=Staff,DC=ad,DC=test".to_owned(),
            filter: "(&(objectClass=group)(cn={{groupname}}))".to_owned(),
            member_attribute: "member".to_owned(),
        },
        ..settings()
    }
}

/// Over LDAPS, and by StartTLS, with this authority.
fn encrypted(authority: Option<&str>) -> [DirectorySettings; 2] {
    let settings = DirectorySettings {
        ca_certificate: authority.map(str::to_owned),
        ..settings()
    };
    let ldaps = DirectorySettings {
        url: "ldaps://127.0.0.1".parse().unwrap(),
        ..settings.clone()
    };
    let start_tls = DirectorySettings {
        start_tls: true,
        ..settings
    };
    [ldaps, start_tls]
}

#[tokio::test]
async fn people_and_groups_of_active_directory_are_found_and_let_in() {
    let mut samba = tokio::task::spawn_blocking(Samba::new).await.unwrap();
    let directory = directory();
    for settings in [settings(), by_groups()] {
        everybody_is_found_and_let_in(&directory, &settings).await;
    }
    // The certificate that it makes by itself has its name as CN only, which proves nothing (RFC 9525 §2): trust in the
    // authority that it makes does not help.
    let own = samba.own_authority();
    for settings in encrypted(Some(&own)) {
        assert_not_trusted(&directory, &settings, "not valid for").await;
    }

    let before = identities(&directory, &settings()).await;
    assert!(before["ad0004"].starts_with("objectguid:"), "{before:?}");
    let certificates = Certificates::new(false);
    let authority = certificates.authority.clone();
    let _samba = tokio::task::spawn_blocking(move || {
        samba.restart_strict(&certificates);
        samba
    })
    .await
    .unwrap();
    for settings in encrypted(Some(&authority)) {
        everybody_is_found_and_let_in(&directory, &settings).await;
        let after = identities(&directory, &settings).await;
        assert_eq!(after["ad-married"], before["ad0004"]);
        assert_eq!(after["alice"], before["alice"]);
    }
    for other in [None, Some(own.as_str())] {
        for settings in encrypted(other) {
            assert_not_trusted(&directory, &settings, "UnknownIssuer").await;
        }
    }
    // Without encryption it refuses a password even if it is right.
    let plain = directory.list(&settings()).await;
    assert!(
        matches!(plain, Err(DirectoryError::Unencrypted(_))),
        "{plain:?}"
    );
}

/// What identifies each entry, by its name.
async fn identities(
    directory: &LdapDirectory,
    settings: &DirectorySettings,
) -> BTreeMap<String, String> {
    let people = directory.list(settings).await.unwrap().people;
    let identities = people.into_iter().map(|it| (it.name, it.identity.unwrap()));
    let identities: BTreeMap<_, _> = identities.collect();
    let different: BTreeSet<_> = identities.values().collect();
    assert_eq!(different.len(), identities.len());
    identities
}

async fn assert_not_trusted(directory: &LdapDirectory, settings: &DirectorySettings, why: &str) {
    let password = SecretString::from("Pw-alice-xyz");
    let signed_in = directory.sign_in(settings, "alice", &password).await;
    let listed = directory.list(settings).await.map(|_| None);
    assert_eq!(signed_in, listed);
    let Err(DirectoryError::Certificate(said)) = listed else {
        panic!("{listed:?}")
    };
    assert!(said.contains(why), "{said}");
}

async fn everybody_is_found_and_let_in(directory: &LdapDirectory, settings: &DirectorySettings) {
    let expected = BTreeMap::from([
        ("alice", groups(&["All", "Inner", "Outer"])),
        ("bob", groups(&["All", "Round", "About"])),
        ("carol", groups(&["All"])),
    ]);
    for (name, groups) in &expected {
        let password = SecretString::from(format!("Pw-{name}-xyz"));
        let person = directory
            .sign_in(settings, name, &password)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (person.name.as_str(), person.groups.as_ref()),
            (*name, Some(groups))
        );
    }
    for (name, password) in [
        ("alice", "wrong"),
        ("alice", ""),
        ("disabled", "Pw-disabled-xyz"),
        ("nobody", "x"),
        ("Administrator", "Adm1n-Passw0rd"),
    ] {
        let found = directory.sign_in(settings, name, &password.into()).await;
        assert_eq!(found, Ok(None), "{name}");
    }
    let listing = directory.list(settings).await.unwrap();
    assert_eq!(listing.people.len(), 605);
    let found = listing
        .people
        .iter()
        .filter(|it| expected.contains_key(it.name.as_str()));
    let found = found.map(|it| (it.name.as_str(), it.groups.clone().unwrap()));
    assert_eq!(BTreeMap::from_iter(found), expected);
    let all = listing.groups.unwrap();
    assert!(
        all.is_superset(&groups(&["About", "All", "Inner", "Outer", "Round"])),
        "{all:?}"
    );
    let wanted = Wanted {
        user: Some("alice".to_owned()),
        group: Some("Inner".to_owned()),
        ..Wanted::default()
    };
    for wanted in [&Wanted::default(), &wanted] {
        let check = directory.check(settings, wanted).await;
        assert!(check.steps.iter().all(|step| step.ok), "{check:?}");
    }
    let check = directory.check(settings, &wanted).await;
    assert_eq!(check.groups[0].member_count, 1);
}
