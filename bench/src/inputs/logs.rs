//! Logs: requests to a web server, lines of syslog, and key=value lines of a service.

use std::io::{self, Write as _};

use fastrand::Rng;

use super::Source;
use super::clock::Clock;
use super::zipf::Skewed;

const ADDRESSES: usize = 8000;
const PATHS: usize = 3000;

/// User agents, the most frequent first.
const AGENTS: [&str; 12] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "curl/8.14.1",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "python-requests/2.32.5",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    "Go-http-client/2.0",
    "-",
];

struct Access {
    clock: Clock,
    addresses: Skewed<String>,
    paths: Skewed<String>,
    agents: Skewed<&'static str>,
}

/// Returns a source of a web server's requests in the combined log format.
pub fn access(random: &mut Rng) -> Box<dyn Source> {
    Box::new(Access {
        clock: Clock::default(),
        addresses: Skewed::new((0..ADDRESSES).map(|_| address(random)).collect()),
        paths: Skewed::new((0..PATHS).map(|_| path(random)).collect()),
        agents: Skewed::new(AGENTS.to_vec()),
    })
}

fn address(random: &mut Rng) -> String {
    let [first, second, third, fourth] = std::array::from_fn(|_| random.u8(1..255));
    format!("{first}.{second}.{third}.{fourth}")
}

fn path(random: &mut Rng) -> String {
    let number = random.u16(1..5000);
    match random.u8(0..8) {
        0 => format!("/static/app.{number:x}.js"),
        1 => format!("/static/site.{number:x}.css"),
        2 => format!("/images/{number}.png"),
        3 => format!("/search?q=item+{number}&page={}", number % 9),
        4 => format!("/api/v1/orders/{number}"),
        5 => format!("/blog/2025/{:02}/post-{number}.html", number % 12 + 1),
        6 => "/".to_owned(),
        _ => format!("/products/{number}"),
    }
}

impl Source for Access {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.clock.seconds += u64::from(random.u8(..) < 60);
        let now = self.clock.now();
        let method = if random.u8(..) < 20 { "POST" } else { "GET" };
        let status = status(random);
        let bytes = if status == 304 { 0 } else { random.u32(120..90_000) };
        let referrer = match random.u8(0..4) {
            0 => "https://www.example.org/",
            1 => "https://search.example.com/?q=shop",
            _ => "-",
        };
        writeln!(
            out,
            "{} - {} [{:02}/{}/{}:{} +0000] \"{method} {} HTTP/1.1\" {status} {bytes} \
             \"{referrer}\" \"{}\"",
            self.addresses.draw(random),
            if random.u8(..) < 8 { "alice" } else { "-" },
            now.day,
            now.month_name(),
            now.year,
            now.time(),
            self.paths.draw(random),
            self.agents.draw(random),
        )
    }
}

fn status(random: &mut Rng) -> u16 {
    match random.u16(0..1000) {
        0..840 => 200,
        840..900 => 304,
        900..930 => 301,
        930..980 => 404,
        980..988 => 403,
        988..997 => 500,
        _ => 503,
    }
}

struct Syslog {
    clock: Clock,
    hosts: Skewed<&'static str>,
}

/// Returns a source of lines as syslogd writes them.
pub fn syslog(_: &mut Rng) -> Box<dyn Source> {
    let hosts = vec!["web1", "web2", "db1", "mail", "gate", "build-7"];
    Box::new(Syslog { clock: Clock::default(), hosts: Skewed::new(hosts) })
}

impl Source for Syslog {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.clock.seconds += random.u64(0..3);
        let now = self.clock.now();
        let host = self.hosts.draw(random);
        write!(out, "{} {:>2} {} {host} ", now.month_name(), now.day, now.time())?;
        let process = random.u16(300..32000);
        match random.u8(0..10) {
            0..3 => writeln!(out, "CRON[{process}]: (root) CMD (run-parts /etc/cron.hourly)"),
            3..5 => writeln!(
                out,
                "sshd[{process}]: Failed password for invalid user {} from {} port {} ssh2",
                random.choice(["admin", "oracle", "test", "git"]).unwrap_or("admin"),
                address(random),
                random.u16(1024..)
            ),
            5 => writeln!(
                out,
                "sshd[{process}]: Accepted publickey for deploy from 10.0.{}.{} port {} ssh2",
                random.u8(0..4),
                random.u8(1..255),
                random.u16(1024..)
            ),
            6 => writeln!(
                out,
                "kernel: [{:>9}.{:06}] eth0: link error, resetting adapter",
                self.clock.seconds,
                random.u32(0..1_000_000)
            ),
            7 => writeln!(out, "postfix/smtpd[{process}]: warning: hostname unknown"),
            _ => writeln!(out, "systemd[1]: Started session-{process}.scope - Session {process}."),
        }
    }
}

struct Metrics {
    clock: Clock,
    users: super::zipf::Zipf,
}

/// Returns a source of a service's log lines, which consist of key=value fields.
pub fn metrics(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Metrics { clock: Clock::default(), users: super::zipf::Zipf::new(5000) })
}

impl Source for Metrics {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.clock.seconds += u64::from(random.u8(..) < 100);
        let now = self.clock.now();
        let level = match random.u8(0..100) {
            0..80 => "info",
            80..95 => "debug",
            95..99 => "warn",
            _ => "error",
        };
        let service = random.choice(["api", "api", "cart", "search", "auth"]).unwrap_or("api");
        writeln!(
            out,
            "time={}T{}Z level={level} service={service} user=u{} duration={}ms bytes={} \
             msg=\"request done\"",
            now.date(),
            now.time(),
            self.users.draw(random),
            random.u32(1..40) * random.u32(1..40),
            random.u32(0..65536),
        )
    }
}
