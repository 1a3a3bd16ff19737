//! Expected durations of cases with servers.

use std::time::Duration;

use contend_record::parameters::Parameters;

use super::requests::load;
use super::setup::{Server, Setup};
use super::{CONNECTIONS, oha};
use crate::engine::cost::Cost;

/// Expected times of a server before it is under load.
struct ServerCost {
    server: &'static str,
    /// Time until the server accepts connections, in milliseconds.
    start: u64,
    /// Time that each connection takes until its first response, in microseconds.
    connection: u64,
}

/// Servers whose times differ from [`DEFAULT_SERVER`]. Each of Puma's 5 threads waits 200 ms for
/// the next request on a connection before it serves another one.
const SERVERS: [ServerCost; 5] = [
    ServerCost { server: "puma", start: 400, connection: 40_000 },
    ServerCost { server: "unicorn", start: 200, connection: 50 },
    ServerCost { server: "gunicorn", start: 450, connection: 50 },
    ServerCost { server: "node", start: 100, connection: 100 },
    ServerCost { server: "process-per-connection", start: 30, connection: 300 },
];
const DEFAULT_SERVER: ServerCost = ServerCost { server: "", start: 30, connection: 100 };

/// Expected time until all connections without a response have been given up, in milliseconds.
/// These are the connections beyond the size of a pool.
const GIVE_UP_MS: u64 = 2000;
/// Time to read memory until it is stable, in milliseconds.
const SETTLE_MS: u64 = 500;

/// Returns the cost of a case of `server/hello` or `server/wait`.
pub fn requests(parameters: &Parameters) -> Cost {
    let loads = if oha::is_installed() { 3 } else { 2 };
    with_connections(parameters, load(parameters) * loads)
}

/// Returns the cost of a case of `server/idle`.
pub fn idle(parameters: &Parameters) -> Cost {
    with_connections(parameters, Duration::from_millis(3 * SETTLE_MS))
}

/// Returns the cost of a case in which a sample takes the time `then` after all connections have a
/// response.
fn with_connections(parameters: &Parameters, then: Duration) -> Cost {
    let connections = parameters.number(CONNECTIONS.name).unwrap_or(0);
    let server = Setup::of(parameters).ok().map(|setup| setup.server);
    let name = server.map_or("", Server::name);
    let known = SERVERS.iter().find(|known| known.server == name).unwrap_or(&DEFAULT_SERVER);
    let is_full =
        server.and_then(Server::pool_size).is_some_and(|pool_size| pool_size < connections);
    let give_up = Duration::from_millis(if is_full { GIVE_UP_MS } else { 0 });
    let connect = Duration::from_micros(known.connection.saturating_mul(connections));
    let sample = Duration::from_millis(known.start) + connect + give_up + then;
    Cost { sample, ..Cost::of_millis(50, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(parameters: &Parameters) -> f64 {
        requests(parameters).sample.as_secs_f64()
    }

    #[test]
    fn a_sample_takes_longer_with_connections_and_load() {
        let model = Parameters::new().with("model", "tokio");
        let few = seconds(&model.clone().with("connections", 10_u64));
        assert!((4.0..4.5).contains(&few), "{few}");
        let short = model.clone().with("connections", 10_u64).with("load_ms", 250_u64);
        assert!(seconds(&short) < 1.0);
        assert!(seconds(&model.with("connections", 10_000_u64)) > few + 0.9);
    }

    #[test]
    fn a_full_pool_takes_until_its_clients_give_up() {
        let pool = Parameters::new().with("model", "thread-pool");
        let [free, full] = [10_u64, 1000].map(|n| seconds(&pool.clone().with("connections", n)));
        assert!(full > free + 1.9, "{free} {full}");
    }
}
