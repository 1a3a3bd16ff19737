//! Accepts connections, and answers their requests.
//!
//! Opening a connection needs no token. So the number of connections is limited, and one that sends no request is
//! closed after [`HEAD_TIMEOUT`].

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// Time that requests have to end once the server is to end.
const GRACE: Duration = Duration::from_secs(2);
/// Time that a client has to send the head of a request, from the start of the connection or the end of the last
/// answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest number of connections. A browser has up to six, and one more for each live view. The usual limit on
/// open files is 1024.
const MAX_CONNECTIONS: u32 = 256;
/// Time before another attempt if no connection can be accepted, because of a lack of descriptors or memory.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Answers requests until the end, and for [`GRACE`] after that if some have not been answered.
pub async fn answer(listener: TcpListener, app: Router, end: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    loop {
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (accepted, ended) = (pin!(accepted), pin!(ended(end.clone())));
        let accepted = match select(accepted, ended).await {
            Either::Left((accepted, _)) => accepted,
            Either::Right(_) => break,
        };
        match accepted {
            (Ok(permit), Ok((stream, _))) => {
                let (app, end) = (app.clone(), end.clone());
                tokio::spawn(async move {
                    answer_one(stream, app, end).await;
                    drop(permit);
                });
            }
            _ => sleep(RETRY_INTERVAL).await,
        }
    }
    drop(listener);
    select(pin!(permits.acquire_many(MAX_CONNECTIONS)), pin!(sleep(GRACE))).await;
}

/// Answers the requests of a connection. At the end, finishes the answer that has begun.
async fn answer_one(stream: TcpStream, app: Router, end: watch::Receiver<bool>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let service = TowerToHyperService::new(app);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    if let Either::Right(_) = select(connection.as_mut(), pin!(ended(end))).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await; // the client may have gone
    }
}

/// Waits until the server is to end.
async fn ended(mut end: watch::Receiver<bool>) {
    let _ = end.wait_for(|&ends| ends).await; // without a sender, it ends, too
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Runs a test in a runtime whose time advances while all tasks wait.
    fn with_virtual_time(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(test);
    }

    async fn server() -> (std::net::SocketAddr, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (ending, end) = watch::channel(false);
        let page = axum::routing::get(|| async { "page" });
        tokio::spawn(answer(listener, Router::new().route("/", page), end));
        (address, ending)
    }

    #[test]
    fn a_connection_without_a_request_is_closed() {
        with_virtual_time(async {
            let (address, _ending) = server().await;
            for start in ["", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                stream.write_all(start.as_bytes()).await.expect("it reads");
                let mut answer = String::new();
                let read = stream.read_to_string(&mut answer).await;
                assert!(read.is_ok(), "closed: {read:?}");
                assert_eq!(answer.ends_with("page"), start.ends_with("\r\n\r\n"), "{answer}");
            }
        });
    }

    #[test]
    fn more_connections_wait_for_others_to_end() {
        with_virtual_time(async {
            let (address, _ending) = server().await;
            let mut idle = Vec::new();
            for _ in 0..MAX_CONNECTIONS + 10 {
                idle.push(TcpStream::connect(address).await.expect("the kernel accepts it"));
            }
            let mut stream = TcpStream::connect(address).await.expect("the kernel accepts it");
            let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await.expect("room in the socket");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.ends_with("page"), "{answer}");
        });
    }
}
