//! Arguments of `contend serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;

use super::lab::StoreArgs;

/// Show saved and running measurements in a browser.
///
/// Prints the URL, and serves until Ctrl-C. The pages list the saved runs with a search, show the page of
/// each, compare some, and set labels. Runs with --publish are shown while they take place.
///
/// Only programs on this machine can connect, and only with the URL, which contains a new random token
/// each time: keep it to yourself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Listen on this port of 127.0.0.1 [default: a free one].
    #[arg(long, value_name = "PORT", value_parser = port, conflicts_with = "listen")]
    pub port: Option<u16>,

    /// Listen at this address instead of 127.0.0.1.
    ///
    /// A number, such as 192.0.2.7:8000 or `[::1]:8000`; 0.0.0.0 is every address of this machine, and
    /// without a port, a free one is used. Beyond this machine, everyone with the URL sees the command
    /// lines, file names and host names of all saved runs, and can change labels. Nothing is encrypted.
    /// `ssh -L 8000:127.0.0.1:8000 HOST` reaches a server on another machine safely.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// Open the page in the browser, with xdg-open.
    #[arg(long)]
    pub open: bool,

    #[command(flatten)]
    pub store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  contend serve --open
  contend serve --port 8000 --store runs.db
  contend pipe --publish 'sort words.txt | uniq -c'   Shown while it runs";

impl ServeArgs {
    /// Returns the address at which to listen.
    pub fn address(&self) -> SocketAddr {
        let local = (Ipv4Addr::LOCALHOST, self.port.unwrap_or(0)).into();
        self.listen.unwrap_or(local)
    }
}

/// Parses a port. An address gets an error of its own.
fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) => Ok(port),
        Err(_) if address(text).is_ok() => Err(format!(
            "expected a port of 127.0.0.1; `--listen {text}` listens at another address"
        )),
        Err(_) => Err("expected a port from 0 to 65535".to_owned()),
    }
}

/// Parses an address with or without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let alone = || text.trim_matches(['[', ']']).parse::<IpAddr>();
    with_port.or_else(|_| alone().map(|address| (address, 0).into())).map_err(|_| {
        "expected an address with a port, such as 192.0.2.7:8000 or [::1]:8000".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers_with_an_optional_port() {
        let parsed = |text| address(text).map(|address| address.to_string());
        assert_eq!(parsed("192.0.2.7:8000"), Ok("192.0.2.7:8000".to_owned()));
        assert_eq!(parsed("0.0.0.0"), Ok("0.0.0.0:0".to_owned()));
        assert_eq!(parsed("::1"), Ok("[::1]:0".to_owned()));
        assert_eq!(parsed("[::1]:80"), Ok("[::1]:80".to_owned()));
        assert!(["board:80", "8000", "", "1.2.3.4:x"].iter().all(|text| parsed(text).is_err()));
    }

    #[test]
    fn an_address_as_a_port_needs_another_option() {
        assert_eq!(port("8000"), Ok(8000));
        let error = port("0.0.0.0:8000").expect_err("an address");
        assert!(error.contains("`--listen 0.0.0.0:8000` listens at another address"), "{error}");
        assert!(port("65536").is_err_and(|error| error.contains("from 0 to 65535")));
    }
}
