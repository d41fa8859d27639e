//! Connecting by SSH: ssh(1), ssh_config(5).

use std::net::IpAddr;
use std::time::Duration;

use schema::skill_repository::RepositoryUrl;
use secrecy::{ExposeSecret, SecretString};

use super::{Credentials, GitError, Remote};

/// The file with the keys of hosts, in the directory in which `git` and so `ssh` run.
pub(super) const KNOWN_HOSTS: &str = "agentyard-known-hosts";

/// Who logs in: as the address says, else the credentials, else as everywhere.
pub(super) fn user(remote: &Remote) -> Result<&str, GitError> {
    let named = remote
        .credentials
        .as_ref()
        .map(|given| given.username.as_str());
    let user = remote.url.user().or(named.filter(|name| !name.is_empty()));
    let user = user.unwrap_or("git");
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match user.bytes().all(allowed) && !user.starts_with('-') {
        true => Ok(user),
        false => Err(GitError::Credentials(
            "for SSH the user name has characters of A-Z a-z 0-9 . _ - only and does not begin with -",
        )),
    }
}

/// The address with that user.
pub(super) fn address(url: &RepositoryUrl, user: &str) -> String {
    // `user@host:path` always names one.
    if !url.path().starts_with('/') || url.user().is_some() {
        return url.to_string();
    }
    let host = match url.host().contains(':') {
        true => format!("[{}]", url.host()),
        false => url.host().to_owned(),
    };
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    format!("ssh://{user}@{host}{port}{}", url.path())
}

/// The name under which known_hosts has the host (sshd(8)).
pub(super) fn alias(url: &RepositoryUrl) -> String {
    match url.port() {
        Some(port) => format!("[{}]:{port}", url.host()),
        None => url.host().to_owned(),
    }
}

/// The command for `core.sshCommand`, which a shell reads. Nothing is asked, nothing of this server's own configuration,
/// agents and keys is used, and no other address than `address` is connected to. `key` is the path of the private key.
pub(super) fn command(
    remote: &Remote,
    address: IpAddr,
    key: Option<&str>,
    connect: Duration,
    stalled: Duration,
) -> String {
    let checking = match remote.known_hosts {
        Some(_) => "yes",
        None => "accept-new",
    };
    let alive = (stalled.as_secs() / 3).max(1);
    let mut options: Vec<String> = [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "GlobalKnownHostsFile=none",
        "CheckHostIP=no",
        "UpdateHostKeys=no",
        "HashKnownHosts=no",
        "VerifyHostKeyDNS=no",
        "PreferredAuthentications=publickey",
        "ProxyCommand=none",
        "ProxyJump=none",
        "ControlMaster=no",
        "ControlPath=none",
        "PermitLocalCommand=no",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
        "ForwardX11=no",
        "Tunnel=no",
        "RequestTTY=no",
        "CanonicalizeHostname=no",
        "LogLevel=ERROR",
        "ServerAliveCountMax=3",
    ]
    .map(str::to_owned)
    .into();
    options.extend([
        format!("UserKnownHostsFile={KNOWN_HOSTS}"),
        format!("StrictHostKeyChecking={checking}"),
        format!("HostKeyAlias={}", alias(&remote.url)),
        format!("HostName={address}"),
        format!("ConnectTimeout={}", connect.as_secs().max(1)),
        format!("ServerAliveInterval={alive}"),
        // Without one it would try those in the home of the service's user.
        format!("IdentityFile={}", key.unwrap_or("none")),
    ]);
    let options = options.iter().map(|option| format!(" -o '{option}'"));
    format!("ssh -F none{}", options.collect::<String>())
}

/// How the content of a key in OpenSSH's own format begins, in base64, and how it goes on without a passphrase: with the
/// cipher `none` (PROTOCOL.key of OpenSSH).
const OPENSSH: (&str, &str) = ("b3BlbnNzaC1rZXktdjEA", "AAAABG5vbm");

/// Whether a key can't be read without a passphrase, of which the program says nothing when it may not ask.
fn has_passphrase(key: &str) -> bool {
    let content = key.lines().nth(1).unwrap_or_default();
    let own = content.strip_prefix(OPENSSH.0);
    own.is_some_and(|rest| !rest.starts_with(OPENSSH.1)) || key.contains("ENCRYPTED")
}

/// The private key as the program reads it.
pub(super) fn private_key(credentials: &Credentials) -> Result<SecretString, GitError> {
    let text = credentials.secret.expose_secret().replace("\r\n", "\n");
    if !text.trim_start().starts_with("-----BEGIN ") {
        return Err(GitError::Credentials(
            "for SSH the secret is a private key, which begins with -----BEGIN",
        ));
    }
    if has_passphrase(text.trim()) {
        return Err(GitError::Credentials(
            "the private key has a passphrase; give one without, made for this repository alone",
        ));
    }
    // Without its last line end the program does not know it.
    Ok(format!("{}\n", text.trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, username: Option<&str>) -> Remote {
        Remote {
            url: url.parse().unwrap(),
            reference: "main".parse().unwrap(),
            ref_type: schema::skill_repository::RefType::Branch,
            credentials: username.map(|username| Credentials {
                username: username.to_owned(),
                secret: "x".into(),
            }),
            known_hosts: None,
            allow_private: false,
        }
    }

    #[test]
    fn the_user_is_that_of_the_address_then_that_of_the_credentials() {
        for (url, username, expected) in [
            ("git@a.example:p", Some("alice"), "git@a.example:p"),
            (
                "ssh://bob@a.example/p",
                Some("alice"),
                "ssh://bob@a.example/p",
            ),
            (
                "ssh://a.example:2222/p",
                Some("alice"),
                "ssh://alice@a.example:2222/p",
            ),
            ("ssh://[::1]/p", Some(""), "ssh://git@[::1]/p"),
            ("ssh://a.example/p", None, "ssh://git@a.example/p"),
        ] {
            let remote = remote(url, username);
            let user = user(&remote).unwrap();
            assert_eq!(address(&remote.url, user), expected);
        }
        for bad in ["-oProxyCommand=touch", "a b", "a'b", "$(id)"] {
            let remote = remote("ssh://a.example/p", Some(bad));
            assert!(
                matches!(user(&remote), Err(GitError::Credentials(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn l28_the_command_goes_to_the_checked_address_and_knows_the_host_by_its_name() {
        let mut remote = remote("ssh://git@a.example:2222/p", None);
        let text = |remote: &Remote| {
            let (second, key) = (Duration::from_secs(1), Some("/proc/1/fd/2"));
            command(remote, "1.2.3.4".parse().unwrap(), key, second, second)
        };
        let first = text(&remote);
        for part in [
            "ssh -F none ",
            "'HostName=1.2.3.4'",
            "'HostKeyAlias=[a.example]:2222'",
            "'StrictHostKeyChecking=accept-new'",
            "'IdentityFile=/proc/1/fd/2'",
            "'ProxyCommand=none'",
        ] {
            assert!(first.contains(part), "{first}");
        }
        remote.known_hosts = Some(String::new());
        assert!(text(&remote).contains("'StrictHostKeyChecking=yes'"));
    }

    #[test]
    fn keys_are_given_as_the_program_reads_them() {
        let key = |secret: &str| {
            let (username, secret) = (String::new(), secret.into());
            private_key(&Credentials { username, secret }).map(|key| key.expose_secret().to_owned())
        };
        assert_eq!(
            key("-----BEGIN X\r\na\r\n-----END X").unwrap(),
            "-----BEGIN X\na\n-----END X\n"
        );
        for bad in [
            "hunter2",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHI\n",
        ] {
            assert!(matches!(key(bad), Err(GitError::Credentials(_))), "{bad}");
        }
        let good =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n";
        assert_eq!(key(good).unwrap(), good);
    }
}
