//! Decides whether a request is answered, before anything else sees it.
//!
//! | attack | check |
//! |---|---|
//! | Another site's page, or another program, sends a request. | Only the user knows the token. |
//! | Another site's name resolves to this server (DNS rebinding). | `Host` must be an address of this server. |
//! | Another site's page sends a form. | `Origin` must be that of `Host`; a form needs it. |
//! | Another site embeds a page, or loads a file. | `frame-ancestors`, `Cross-Origin-Resource-Policy` |
//! | A record contains markup. | Texts are escaped, and the policy permits only known scripts. |
//! | Another site learns the token from a link. | `Referrer-Policy` |
//!
//! No response permits other origins to read it (CORS).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use contend_report::render::html;

use crate::token::Token;

/// Port of a `Host` header that names none.
const DEFAULT_PORT: u16 = 80;

/// The conditions on requests.
pub struct Guard {
    token: Token,
    hosts: Hosts,
    policy: HeaderValue,
}

/// The reason why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request is for another host.
    Host,
    /// A page of another site has sent the request.
    Origin,
    /// The address has no token, or a wrong one.
    Token,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                "contend serve does not answer for this name: use the URL that it has printed, or an IP \
                 address of its machine in it",
            ),
            Self::Origin => (StatusCode::FORBIDDEN, "the request comes from another site"),
            Self::Token => (StatusCode::NOT_FOUND, "use the URL that contend serve has printed"),
        };
        (status, format!("{text}\n")).into_response()
    }
}

impl Guard {
    /// Returns the guard of a server.
    pub fn new(token: Token, hosts: Hosts) -> Self {
        let policy = format!(
            "default-src 'none'; style-src 'self' {}; script-src 'self' {}; connect-src 'self'; \
             img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            html::style_source(),
            html::script_source()
        );
        let nothing = HeaderValue::from_static("default-src 'none'");
        let policy = HeaderValue::from_str(&policy).unwrap_or(nothing);
        Self { token, hosts, policy }
    }

    /// Returns the path to the first page, with the token.
    pub fn root(&self) -> String {
        format!("/{}/", self.token.as_str())
    }

    /// Checks a request, and returns its address without the token.
    ///
    /// # Errors
    /// Returns the reason if the request must not be answered.
    fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Uri, Refusal> {
        let host = single(headers, &header::HOST).ok_or(Refusal::Host)?;
        let is_elsewhere = uri.authority().is_some_and(|authority| authority.as_str() != host);
        if is_elsewhere || !self.hosts.has(host) {
            return Err(Refusal::Host);
        }
        let own = format!("http://{host}");
        let is_own = |origin: &str| origin.eq_ignore_ascii_case(&own);
        let changes_nothing = [Method::GET, Method::HEAD].contains(method);
        let is_from_here = match single(headers, &header::ORIGIN) {
            Some(origin) => is_own(origin),
            None => changes_nothing && !headers.contains_key(header::ORIGIN),
        };
        if !is_from_here {
            return Err(Refusal::Origin);
        }
        let path = uri.path().strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, "")); // the first page
        if !self.token.is(token) {
            return Err(Refusal::Token);
        }
        let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
        format!("/{rest}{query}").parse().map_err(|_| Refusal::Token)
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        let fixed = [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // Not `no-referrer`: the origin of a form would then be null.
            (header::REFERRER_POLICY, "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
    }
}

/// Passes on a request that passes the checks, and adds the headers of every response.
pub async fn guard(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let admitted = guard.admit(request.method(), request.uri(), request.headers());
    let mut response = match admitted {
        Ok(uri) => {
            *request.uri_mut() = uri;
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    guard.add_headers(response.headers_mut());
    response
}

/// Returns the value of a header that occurs once; `None` for other numbers, and if it is not ASCII.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The addresses of a server as a browser may write them.
#[derive(Debug)]
pub struct Hosts {
    address: SocketAddr,
    /// Network name of the machine.
    name: String,
}

impl Hosts {
    /// Returns the addresses of a server that listens at `address`, on the machine with the given network
    /// name.
    pub fn new(address: SocketAddr, name: &str) -> Self {
        Self { address, name: name.to_owned() }
    }

    /// Returns whether `host`, such as `localhost:8000`, is an address of the server. Beyond this machine,
    /// those are its name and every number: a site with such a name cannot exist.
    pub fn has(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else { return false };
        let is_own_name = name.eq_ignore_ascii_case("localhost")
            || match address(name) {
                Some(address) if self.address.ip().is_loopback() => address == self.address.ip(),
                Some(_) => true,
                None => !self.address.ip().is_loopback() && name.eq_ignore_ascii_case(&self.name),
            };
        port == self.address.port() && is_own_name
    }
}

/// Splits a host into a name or an address, and a port.
fn split(host: &str) -> Option<(&str, u16)> {
    let end = host.rfind(']').unwrap_or(0);
    match host[end..].rfind(':') {
        Some(colon) => Some((&host[..end + colon], host[end + colon + 1..].parse().ok()?)),
        None => Some((host, DEFAULT_PORT)),
    }
}

/// Returns the address that a host consists of: IPv4, or IPv6 in brackets.
fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str) -> Hosts {
        Hosts::new(address.parse().expect("an address"), "board")
    }

    #[test]
    fn only_addresses_of_the_server_are_its_hosts() {
        let local = hosts("127.0.0.1:8000");
        for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000"] {
            assert!(local.has(host), "{host}");
        }
        for host in [
            "",
            ":8000",
            "127.0.0.1",
            "localhost",
            "localhost:8001",
            "127.0.0.2:8000",
            "board:8000",
            "evil.example:8000",
            "localhost.evil.example:8000",
            "[::1]:8000",
            "127.0.0.1:8000:8000",
            "127.1:8000",
            "localhost:+8000x",
            "127.0.0.1:8000@evil",
            "0:8000",
            "[127.0.0.1]:8000",
        ] {
            assert!(!local.has(host), "{host}");
        }
        assert!(hosts("[::1]:8000").has("[::1]:8000") && !hosts("[::1]:8000").has("[::2]:8000"));
        assert!(hosts("127.0.0.1:80").has("localhost"));
        let open = hosts("0.0.0.0:8000");
        assert!(["192.0.2.7:8000", "[2001:db8::7]:8000", "Board:8000"].iter().all(|h| open.has(h)));
        assert!(["evil.example:8000", "board.evil.example:8000"].iter().all(|h| !open.has(h)));
    }

    fn guard() -> Guard {
        Guard::new(Token::random().expect("random numbers"), hosts("127.0.0.1:8000"))
    }

    /// Returns the answer to a request for `path`, in which `TOKEN` stands for the token.
    fn admitted(method: &Method, path: &str, given: &[(&str, &str)]) -> Result<String, Refusal> {
        let guard = guard();
        let uri = path.replace("TOKEN", guard.token.as_str()).parse().expect("an address");
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        guard.admit(method, &uri, &headers).map(|uri| uri.to_string())
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8000");

    #[test]
    fn requests_need_the_token_and_lose_it() {
        let get = |path: &str| admitted(&Method::GET, path, &[HOST]);
        assert_eq!(get("/TOKEN/"), Ok("/".to_owned()));
        assert_eq!(get("/TOKEN/run/7?x=%2F"), Ok("/run/7?x=%2F".to_owned()));
        assert_eq!(get("/TOKEN"), Ok("/".to_owned()));
        for path in ["/", "/run/7", "/TOKEN0/", "//TOKEN/", "/x/TOKEN/", "/?TOKEN/"] {
            assert_eq!(get(path), Err(Refusal::Token), "{path}");
        }
    }

    #[test]
    fn requests_for_other_hosts_are_refused() {
        let get = |path: &str, headers: &[_]| admitted(&Method::GET, path, headers);
        assert_eq!(get("/TOKEN/", &[]), Err(Refusal::Host));
        assert_eq!(get("/TOKEN/", &[("host", "evil.example:8000")]), Err(Refusal::Host));
        assert_eq!(get("/TOKEN/", &[HOST, HOST]), Err(Refusal::Host));
        assert_eq!(get("http://evil.example/TOKEN/", &[HOST]), Err(Refusal::Host));
    }

    #[test]
    fn forms_of_other_origins_are_refused() {
        let own = ("origin", "http://127.0.0.1:8000");
        let post = |headers: &[_]| admitted(&Method::POST, "/TOKEN/run/7/label", headers);
        assert_eq!(post(&[HOST, own]), Ok("/run/7/label".to_owned()));
        assert_eq!(post(&[HOST]), Err(Refusal::Origin), "an origin is needed");
        for origin in [
            "null",
            "",
            "http://evil.example",
            "https://127.0.0.1:8000",
            "http://127.0.0.1:80001",
            "http://127.0.0.1",
            "http://localhost:8000",
        ] {
            assert_eq!(post(&[HOST, ("origin", origin)]), Err(Refusal::Origin), "{origin}");
        }
        assert_eq!(post(&[HOST, own, ("origin", "null")]), Err(Refusal::Origin));
        let get = |headers: &[_]| admitted(&Method::GET, "/TOKEN/", headers);
        assert_eq!(get(&[HOST, ("origin", "http://evil.example")]), Err(Refusal::Origin));
        assert_eq!(get(&[HOST, own]), Ok("/".to_owned()));
    }
}
