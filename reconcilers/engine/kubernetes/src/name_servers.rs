//! The name servers of the service's own machine or Pod.

use std::net::IpAddr;

use tokio::io::AsyncReadExt;

const FILE: &str = "/etc/resolv.conf";
/// Most bytes of it that are read.
const LONGEST: u64 = 64 << 10;

/// Reads them; none, where the file cannot be read.
pub(crate) async fn read_servers() -> Vec<IpAddr> {
    let mut text = String::new();
    if let Ok(file) = tokio::fs::File::open(FILE).await
        && let Err(error) = file.take(LONGEST).read_to_string(&mut text).await
    {
        tracing::warn!(%error, "{FILE} cannot be read");
    }
    parse_servers(&text)
}

/// Those that Pods can reach, too.
fn parse_servers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok())?
    });
    lines.filter(|ip: &IpAddr| !ip.is_loopback()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_name_servers_are_those_that_pods_reach() {
        let text = "# a\nsearch x\nnameserver 10.96.0.10\nnameserver 127.0.0.53\nnameserver fd00::a # b\nnameserver x\n";
        let expected: [IpAddr; 2] = ["10.96.0.10".parse().unwrap(), "fd00::a".parse().unwrap()];
        assert_eq!(parse_servers(text), expected);
    }
}
