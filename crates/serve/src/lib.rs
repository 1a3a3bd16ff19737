//! A web server for one user: saved runs, comparisons of them, labels, and runs that are taking place.
//!
//! ```text
//! browser ──▶ guard ──▶ site ─┬─▶ store (report) ──▶ pages, Pages (the caller's) ──▶ HTML
//!             token,          └─▶ live: files of running programs ──▶ server-sent events
//!             host, origin
//! ```
//!
//! One thread serves all requests. What may take longer, such as reading the store or making a page, runs on a
//! thread of its own, so that it does not delay live updates. Pages work without scripts; only the charts
//! of a run that is taking place need one.
//!
//! The server trusts neither its content nor its clients: see the head of `guard.rs`.

mod connections;
mod guard;
mod live;
mod pages;
mod query;
mod site;
mod token;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use contend_report::store::Entry;
use tokio::sync::watch;

use crate::guard::{Guard, Hosts};
use crate::token::Token;

/// The content of the pages.
pub struct Content {
    /// Path of the store; the file need not exist.
    pub store: PathBuf,
    /// Directory in which running programs publish their progress; `None` if it is unknown.
    pub live: Option<PathBuf>,
    /// Makes pages from records.
    pub pages: Box<dyn Pages>,
}

/// Makes pages from records.
pub trait Pages: Send + Sync {
    /// Returns the page of a saved run, from its record as JSON.
    ///
    /// # Errors
    /// Returns the reason if there is no page.
    fn run(&self, entry: &Entry, record: &str) -> Result<String, String>;

    /// Returns the page that compares saved runs, from their records as JSON. The first one is the baseline.
    ///
    /// # Errors
    /// Returns the reason if they cannot be compared.
    fn comparison(&self, runs: Vec<(Entry, String)>) -> Result<String, String>;
}

/// A server that listens but does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    url: String,
}

impl Server {
    /// Listens at an address. With port 0, the kernel chooses a free one. `machine` is the network name of this machine.
    ///
    /// # Errors
    /// Returns an error if the address is not one of this machine, its port is in use, or the kernel has no
    /// random numbers.
    pub fn bind(address: SocketAddr, machine: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let guard = Guard::new(Token::random()?, Hosts::new(address, machine));
        let host = if address.ip().is_unspecified() {
            format!("{machine}:{}", address.port())
        } else {
            address.to_string()
        };
        let url = format!("http://{host}{}", guard.root());
        Ok(Self { listener, address, guard, url })
    }

    /// Returns the address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the first page, with the token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a page that leads a browser to the first page. In a file that only the user can read, it hides the
    /// token from other users of the machine, who can read the arguments of every process.
    pub fn opening_page(&self) -> String {
        pages::opening(&self.url)
    }

    /// Answers requests until `wait` returns, which is called on this thread. Live views then say that the
    /// server has ended.
    ///
    /// # Errors
    /// Returns an error if the event loop cannot be created.
    pub fn run(self, content: Content, wait: impl FnOnce()) -> io::Result<()> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let context = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        drop(context);
        let (ending, end) = watch::channel(false);
        let app = site::router(content, Arc::new(self.guard), end.clone());
        let server = std::thread::spawn(move || {
            runtime.block_on(connections::answer(listener, app, end));
            // Pages that are still being made are not waited for.
            runtime.shutdown_background();
        });
        wait();
        ending.send_replace(true);
        server.join().map_err(|_| io::Error::other("the server has panicked"))
    }
}
