//! The addresses of the server, without the token:
//!
//! | address | |
//! |---|---|
//! | `/` | the list of saved runs, and the runs that are taking place |
//! | `/run/7` | the page of a saved run |
//! | `/run/7/label` | a form (POST) that sets the label |
//! | `/compare?run=3&run=7` | a comparison |
//! | `/live/1234` | a run that is taking place, by the ID of its process |
//! | `/live/1234/events` | its updates, as server-sent events |
//! | `/serve.css`, … | style sheets, scripts and the icon |

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use contend_report::render::html;
use contend_report::store::{Entry, Store, StoreError};
use tokio::sync::watch;

use crate::guard::{Guard, guard};
use crate::query::{self, PAGE_RUNS, Search};
use crate::{Content, live, pages};

/// Maximum size of a form, in bytes.
const MAX_FORM_BYTES: usize = 16 << 10;

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// Files with their names and types.
const FILES: [(&str, &str, &str); 6] = [
    ("/page.css", CSS, html::STYLE),
    ("/serve.css", CSS, include_str!("assets/serve.css")),
    ("/live.js", JAVASCRIPT, include_str!("assets/live.js")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/uPlot.css", CSS, include_str!("../vendor/uplot/uPlot.min.css")),
    ("/uPlot.js", JAVASCRIPT, include_str!("../vendor/uplot/uPlot.iife.min.js")),
];

/// What requests share.
struct Site {
    content: Content,
    /// Path to the first page, with the token.
    root: String,
    /// Whether the server is to end.
    end: watch::Receiver<bool>,
}

type Shared = State<Arc<Site>>;

/// Returns the service for all requests. `end` becomes true when the server is to end.
pub fn router(content: Content, conditions: Arc<Guard>, end: watch::Receiver<bool>) -> Router {
    let site = Arc::new(Site { content, root: conditions.root(), end });
    let pages = Router::new()
        .route("/", get(list))
        .route("/run/{id}", get(run))
        .route("/run/{id}/label", post(label))
        .route("/compare", get(compare))
        .route("/live/{pid}", get(live_page))
        .route("/live/{pid}/events", get(live_events));
    let file = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    let pages = FILES
        .into_iter()
        .fold(pages, |pages, (path, kind, text)| pages.route(path, file(kind, text)));
    let pages =
        pages.fallback(missing).layer(DefaultBodyLimit::max(MAX_FORM_BYTES)).with_state(site);
    // The guard removes the token from the address, so it must run before the address is looked up.
    Router::new().fallback_service(pages).layer(middleware::from_fn_with_state(conditions, guard))
}

/// A request that has no page, and why.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

/// Calls `make` on another thread, and returns its result or the page of the problem.
async fn respond<T: IntoResponse + Send + 'static>(
    site: Arc<Site>,
    make: impl FnOnce(&Site) -> Result<T, Problem> + Send + 'static,
) -> Response {
    let root = site.root.clone();
    let made = tokio::task::spawn_blocking(move || make(&site)).await;
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made");
    match made.map_err(failed).flatten() {
        Ok(response) => response.into_response(),
        Err(Problem { status, message }) => {
            (status, Html(pages::problem(&root, status.as_u16(), &message))).into_response()
        }
    }
}

async fn missing(State(site): Shared) -> Response {
    respond(site, |_| Err::<(), _>(Problem::missing("there is no such page"))).await
}

async fn list(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    respond(site, move |site| {
        let search = Search::parse(query.as_deref().unwrap_or_default())
            .map_err(|message| Problem::new(StatusCode::BAD_REQUEST, message))?;
        let live = site.content.live.as_deref().map(live::list).unwrap_or_default();
        let found = site.find(&search)?;
        Ok(Html(pages::list(&site.root, &search, &found, &live)))
    })
    .await
}

async fn run(State(site): Shared, Path(id): Path<String>) -> Response {
    respond(site, move |site| {
        let (entry, record) = site.run(number(&id)?)?;
        let page = site.content.pages.run(&entry, &record);
        let bar = pages::run_bar(&site.root, &entry);
        Ok(Html(page.map_or_else(
            |why| pages::without_page(&site.root, &bar, &entry, &why),
            |page| pages::framed(&site.root, &page, &bar),
        )))
    })
    .await
}

async fn label(
    State(site): Shared,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(site, move |site| {
        let id = number(&id)?;
        let body =
            body.map_err(|_| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the label is too long"))?;
        let label = query::label(&body)
            .ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "the form has no label"))?;
        let store = &site.content.store;
        // Opening a store to write would create it.
        let missing =
            if store.exists() { Store::open(store)?.label(&[id], &label)? } else { vec![id] };
        if !missing.is_empty() {
            return Err(no_run(id));
        }
        Ok(Redirect::to(&format!("{}run/{id}", site.root)))
    })
    .await
}

async fn compare(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    respond(site, move |site| {
        let wrong = |message| Problem::new(StatusCode::BAD_REQUEST, message);
        let ids = query::compared(query.as_deref().unwrap_or_default()).map_err(wrong)?;
        let runs = ids.into_iter().map(|id| site.run(id)).collect::<Result<Vec<_>, _>>()?;
        let bar = pages::comparison_bar(&site.root, runs.iter().map(|(entry, _)| entry));
        let page = site.content.pages.comparison(runs).map_err(wrong)?;
        Ok(Html(pages::framed(&site.root, &page, &bar)))
    })
    .await
}

async fn live_page(State(site): Shared, Path(pid): Path<String>) -> Response {
    respond(site, move |site| {
        let (running, _) = site.live(&pid)?;
        Ok(Html(pages::live(&site.root, &running)))
    })
    .await
}

async fn live_events(State(site): Shared, Path(pid): Path<String>) -> Response {
    respond(site, move |site| {
        let (_, tail) = site.live(&pid)?;
        let events = live::events(tail, site.end.clone());
        Ok(Sse::new(events).keep_alive(KeepAlive::default()))
    })
    .await
}

/// The runs that a search has found.
pub struct Found {
    /// Those on the page, newest first.
    pub entries: Vec<Entry>,
    /// Number of all.
    pub count: usize,
    /// Names of the machines of all saved runs.
    pub hosts: Vec<String>,
}

impl Site {
    fn find(&self, search: &Search) -> Result<Found, Problem> {
        let store = &self.content.store;
        if !store.exists() {
            return Ok(Found { entries: Vec::new(), count: 0, hosts: Vec::new() });
        }
        let store = Store::open_to_read(store)?;
        Ok(Found {
            entries: store.list_from(&search.filter, search.skipped(), PAGE_RUNS)?,
            count: store.count(&search.filter)?,
            hosts: store.hosts()?,
        })
    }

    /// Returns a saved run and its record.
    fn run(&self, id: i64) -> Result<(Entry, String), Problem> {
        let store = &self.content.store;
        let found = if store.exists() { Store::open_to_read(store)?.entry(id)? } else { None };
        found.ok_or_else(|| no_run(id))
    }

    /// Returns a run that is taking place.
    fn live(&self, pid: &str) -> Result<(live::Running, live::Tail), Problem> {
        let missing = || Problem::missing("this run has ended, or never existed");
        let pid = pid.parse().map_err(|_| missing())?;
        let folder = self.content.live.as_deref();
        folder.and_then(|folder| live::open(folder, pid)).ok_or_else(missing)
    }
}

fn number(text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| Problem::missing(format!("'{text}' is not the number of a run")))
}

fn no_run(id: i64) -> Problem {
    Problem::missing(format!("there is no saved run {id}"))
}
