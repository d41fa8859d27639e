//! A directory of its own: OpenLDAP's `slapd` on loopback, with people and groups.

#![allow(clippy::disallowed_methods)] // It blocks a test that waits for nothing else.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reconcilers::drivers::ldap::{DirectorySettings, GroupSearch, ID_ATTRIBUTES_OF_SERVERS};
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

const SLAPD: &str = "/usr/sbin/slapd";
const SLAPADD: &str = "/usr/sbin/slapadd";
/// Who may read everything.
pub const SERVICE: &str = "cn=service,dc=example,dc=org";

/// Certificates of a directory.
pub struct Certificates {
    /// The authority, in PEM.
    pub authority: String,
    /// The server's, in PEM.
    pub certificate: String,
    /// What belongs to it, in PEM.
    pub key: String,
}

impl Certificates {
    /// For this machine; `expired` says that they were good a while ago.
    pub fn new(expired: bool) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        let authority = parameters.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(parameters, key);
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        if expired {
            parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
            parameters.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &issuer).unwrap().pem();
        Self {
            authority,
            certificate,
            key: key.serialize_pem(),
        }
    }
}

/// A directory; it ends when it is dropped.
pub struct Slapd {
    dir: tempfile::TempDir,
    pub port: u16,
    pub tls_port: u16,
    child: Option<Child>,
}

impl Slapd {
    /// With these people besides those that all directories have. `a|b` is one with two names.
    pub fn new(people: &[&str], certificates: Option<&Certificates>) -> Self {
        Self::limited(people, certificates, "")
    }

    /// With `limits` in its configuration, too.
    pub fn limited(people: &[&str], certificates: Option<&Certificates>, limits: &str) -> Self {
        Self::with(people, certificates, limits, "")
    }

    /// With `more` entries in LDIF, too.
    pub fn with(
        people: &[&str],
        certificates: Option<&Certificates>,
        limits: &str,
        more: &str,
    ) -> Self {
        assert!(
            PathBuf::from(SLAPD).exists(),
            "slapd is not installed; install it with: apt-get install -y slapd"
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        fs::create_dir(dir.path().join("db")).unwrap();
        let mut tls = String::new();
        if let Some(certificates) = certificates {
            for (name, pem) in [
                ("authority.pem", &certificates.authority),
                ("certificate.pem", &certificates.certificate),
                ("key.pem", &certificates.key),
            ] {
                fs::write(dir.path().join(name), pem).unwrap();
            }
            tls = format!(
                "TLSCACertificateFile {path}/authority.pem\nTLSCertificateFile {path}/certificate.pem\n\
                 TLSCertificateKeyFile {path}/key.pem\n"
            );
        }
        let configuration = format!(
            "include /etc/ldap/schema/core.schema\n\
             include /etc/ldap/schema/cosine.schema\n\
             include /etc/ldap/schema/inetorgperson.schema\n\
             include /etc/ldap/schema/nis.schema\n\
             attributetype ( 2.16.840.1.113730.3.8.3.1 NAME 'ipaUniqueID' EQUALITY caseIgnoreMatch \
             SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n\
             modulepath /usr/lib/ldap\nmoduleload back_mdb\nmoduleload dynlist\nmoduleload ppolicy\n\
             allow bind_anon_dn\n{tls}\
             database mdb\nmaxsize 268435456\nsuffix dc=example,dc=org\nrootdn cn=admin,dc=example,dc=org\n\
             rootpw admin\ndirectory {path}/db\nindex objectClass,uid,member eq\n{limits}\n\
             access to attrs=userPassword by anonymous auth by * none\n\
             access to * by dn.exact=\"{SERVICE}\" read by anonymous auth by * none\n\
             overlay dynlist\ndynlist-attrset groupOfURLs memberURL member+memberOf@groupOfNames*\n\
             overlay ppolicy\nppolicy_default cn=policy,dc=example,dc=org\n"
        );
        // dynlist needs the schema of dynamic groups.
        let configuration = configuration.replace(
            "modulepath",
            "include /etc/ldap/schema/dyngroup.schema\nmodulepath",
        );
        fs::write(dir.path().join("slapd.conf"), configuration).unwrap();
        let mut slapd = Self {
            dir,
            port: free_port(),
            tls_port: free_port(),
            child: None,
        };
        slapd.fill(people, more);
        slapd.start();
        slapd
    }

    /// Other people, and no others, from now on.
    pub fn replace(&mut self, people: &[&str], more: &str) {
        self.stop();
        let db = self.dir.path().join("db");
        fs::remove_dir_all(&db).unwrap();
        fs::create_dir(&db).unwrap();
        self.fill(people, more);
        self.start();
    }

    fn fill(&self, people: &[&str], more: &str) {
        let added = Command::new(SLAPADD)
            .args(["-q", "-f"])
            .arg(self.dir.path().join("slapd.conf"))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut added = added.unwrap();
        let mut entries = entries(people);
        entries.push_str(more);
        added
            .stdin
            .take()
            .unwrap()
            .write_all(entries.as_bytes())
            .unwrap();
        let added = added.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&added.stderr).into_owned();
        assert!(added.status.success(), "{said}");
    }

    /// Starts it, and waits until it answers.
    pub fn start(&mut self) {
        let (plain, tls) = (self.port, self.tls_port);
        let child = Command::new(SLAPD)
            .args(["-d", "0", "-h"])
            .arg(format!("ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{tls}"))
            .arg("-f")
            .arg(self.dir.path().join("slapd.conf"))
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", plain)).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(300),
                "slapd does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gives the entry of a person another RDN, and so another name (modrdn).
    pub fn rename(&self, name: &str, to: &str) {
        let bind = element(
            0x60,
            &[
                &[2, 1, 3],
                &element(4, &[b"cn=admin,dc=example,dc=org"]),
                &element(0x80, &[b"admin"]),
            ],
        );
        let entry = format!("uid={name},ou=people,dc=example,dc=org");
        let rename = element(
            0x6c,
            &[
                &element(4, &[entry.as_bytes()]),
                &element(4, &[format!("uid={to}").as_bytes()]),
                &[1, 1, 0xff],
            ],
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        for (number, request) in [(1, bind), (2, rename)] {
            let message = element(0x30, &[&[2, 1, number], &request]);
            stream.write_all(&message).unwrap();
            let mut answer = [0; 256];
            let length = stream.read(&mut answer).unwrap();
            // A result begins with its code: ENUMERATED, one byte.
            assert_eq!(answer[7..10], [0x0a, 1, 0], "{:?}", &answer[..length]);
        }
    }

    /// Ends it at once.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// How it is asked.
    pub fn settings(&self) -> DirectorySettings {
        DirectorySettings {
            url: format!("ldap://127.0.0.1:{}", self.port).parse().unwrap(),
            start_tls: false,
            ca_certificate: None,
            bind_dn: SERVICE.to_owned(),
            bind_password: SecretString::from("service"),
            base_dn: "ou=people,dc=example,dc=org".to_owned(),
            filter: "(&(objectClass=inetOrgPerson)(uid={{username}}))".to_owned(),
            username_attribute: "uid".to_owned(),
            id_attributes: ID_ATTRIBUTES_OF_SERVERS.map(str::to_owned).to_vec(),
            groups: GroupSearch::MemberOf { base_dn: None },
            timeout: Duration::from_secs(1),
            page_size: 500.try_into().unwrap(),
            max_message: 16 * 1024 * 1024,
        }
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// The password of everybody is their name, backwards.
pub fn password(name: &str) -> SecretString {
    SecretString::from(name.chars().rev().collect::<String>())
}

fn entries(people: &[&str]) -> String {
    use secrecy::ExposeSecret;
    let mut text = "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n\
         dn: cn=service,dc=example,dc=org\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n\
         cn: service\nuserPassword: service\n\n\
         dn: cn=policy,dc=example,dc=org\nobjectClass: organizationalRole\nobjectClass: pwdPolicy\ncn: policy\n\
         pwdAttribute: userPassword\npwdLockout: TRUE\n\n\
         dn: ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: people\n\n\
         dn: ou=groups,dc=example,dc=org\nobjectClass: organizationalUnit\nou: groups\n\n\
         dn: cn=eng,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: eng\n\
         member: uid=alice,ou=people,dc=example,dc=org\n\n"
        .to_owned();
    let all = ["alice", "bob", "locked"].iter().chain(people);
    for (number, name) in all.enumerate() {
        // The name is no part of the DN where it would have to be escaped there.
        let rdn = match name.chars().all(|c| c.is_ascii_alphanumeric()) {
            true => format!("uid={name}"),
            false => format!("cn=odd{number}"),
        };
        let (name, second) = name.split_once('|').unwrap_or((name, ""));
        let second = match second {
            "" => String::new(),
            second => format!("uid: {second}\n"),
        };
        let password = password(name);
        let password = password.expose_secret();
        write!(
            text,
            "dn: {rdn},ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: {name}\n{second}cn: odd{number}\nsn: x\n\
             userPassword: {password}\nentryUUID: {}\n",
            uuid(name)
        )
        .unwrap();
        if name == "locked" {
            text.push_str("pwdAccountLockedTime: 000001010000Z\n");
        }
        text.push('\n');
    }
    text
}

/// The identity of an entry, which stays when all entries are replaced.
pub fn uuid(name: &str) -> String {
    let digest = hex::encode(Sha256::digest(name));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &digest[part]).join("-")
}

/// An element of BER with less than 128 bytes.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 128, "{length}");
    [&[tag, length], content.as_slice()].concat()
}

/// So many groups in LDIF, `g0` and on, each with its share of so many people, who are `user0` and on.
pub fn groups(groups: usize, people: usize) -> String {
    let mut text = String::new();
    for group in 0..groups {
        writeln!(
            text,
            "dn: cn=g{group},ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: g{group}"
        )
        .unwrap();
        for member in (group..people).step_by(groups) {
            writeln!(text, "member: uid=user{member},ou=people,dc=example,dc=org").unwrap();
        }
        text.push('\n');
    }
    text
}

/// Entries that are elsewhere.
pub const ELSEWHERE: &str = "dn: ou=elsewhere,ou=people,dc=example,dc=org\nobjectClass: referral\n\
     objectClass: extensibleObject\nou: elsewhere\nref: ldap://127.0.0.1:1/ou=elsewhere,dc=example,dc=org\n\n";

/// Passes connections on to a directory, counts them and what is searched over them, and can let them go silent.
pub struct Relay {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    accepted: AtomicUsize,
    /// Requests for a search, unless they are encrypted.
    searches: AtomicUsize,
    /// Connections up to this number pass nothing on any more.
    silent: AtomicUsize,
    /// How often something was sent over those.
    swallowed: AtomicUsize,
}

impl Relay {
    pub fn new(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let shared = Arc::new(Shared::default());
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            shared: Arc::clone(&shared),
        };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst) + 1;
                let client = client.unwrap();
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let ways = [
                    (&client, &server, Some(Requests::default())),
                    (&server, &client, None),
                ];
                for (from, to, requests) in ways {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || pass_on(from, to, number, requests, &shared));
                }
            }
        });
        relay
    }

    /// How many connections there were.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many searches were asked for: each page of a long answer is one of its own.
    pub fn searches(&self) -> usize {
        self.shared.searches.load(Ordering::SeqCst)
    }

    /// How often something was sent over connections that are silent.
    pub fn swallowed(&self) -> usize {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    /// All connections that there are say nothing any more, and stay open.
    pub fn silence(&self) {
        let now = self.accepted();
        self.shared.silent.store(now, Ordering::SeqCst);
    }
}

fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    number: usize,
    mut requests: Option<Requests>,
    shared: &Shared,
) {
    let mut buffer = [0; 4096];
    while let Ok(length) = from.read(&mut buffer) {
        if length > 0 && number <= shared.silent.load(Ordering::SeqCst) {
            shared.swallowed.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        // Counted before it arrives, so whoever has an answer finds its request counted.
        if let Some(requests) = &mut requests {
            let searches = requests.searches(&buffer[..length]);
            shared.searches.fetch_add(searches, Ordering::SeqCst);
        }
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            let _ = to.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// What a client has sent of a message that is not complete yet.
#[derive(Default)]
struct Requests(Vec<u8>);

impl Requests {
    /// How many messages end with these bytes that ask for a search (RFC 4511 §4.1.1, §4.5.1).
    fn searches(&mut self, bytes: &[u8]) -> usize {
        const SEARCH: u8 = 0x63;
        self.0.extend_from_slice(bytes);
        let mut searches = 0;
        while let Some((start, end)) = content(&self.0).filter(|(_, end)| *end <= self.0.len()) {
            // The number of the message comes first.
            let (_, number) = content(&self.0[start..end]).unwrap();
            searches += usize::from(self.0[start + number] == SEARCH);
            self.0.drain(..end);
        }
        searches
    }
}

/// Where the content of a value begins and ends (X.690 §8.1), once its length is there.
fn content(value: &[u8]) -> Option<(usize, usize)> {
    let first = usize::from(*value.get(1)?);
    let digits = first.saturating_sub(0x80);
    let length = value.get(2..2 + digits)?;
    let length = match digits {
        0 => first,
        _ => length
            .iter()
            .fold(0, |length, digit| (length << 8) | usize::from(*digit)),
    };
    Some((2 + digits, 2 + digits + length))
}
