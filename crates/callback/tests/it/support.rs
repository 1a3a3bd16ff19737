//! Helpers for the tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::time::{Duration, Instant};

use contend_callback::{Context, Handle, Never, Receptor};

/// Time after which a test that waits for something fails.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// Starts a runtime with `workers` Workers.
pub fn runtime(workers: usize) -> Receptor {
    Receptor::builder().workers(workers).start().expect("threads")
}

/// Runs a closure in a callback on a Worker, and returns its result.
pub fn on_worker<T: Send + 'static>(
    handle: &Handle,
    worker: usize,
    body: impl FnOnce(&mut Context<'_>) -> T + Send + 'static,
) -> T {
    let (sender, result) = mpsc::channel();
    let callback = move |context: &mut Context<'_, Never>| {
        sender.send(body(context)).expect("somebody waits");
        context.end()
    };
    handle.spawn_on(worker, callback).expect("it runs");
    result.recv_timeout(TIMEOUT).expect("it has run")
}

/// A value that counts its drops.
pub struct Guard(pub Arc<AtomicU64>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Blocks until `condition` returns true. Panics after [`TIMEOUT`].
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TIMEOUT, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Silences the messages of panics on threads of runtimes, which these tests cause on purpose.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            if !thread.name().is_some_and(|name| name.starts_with("callback")) {
                before(info);
            }
        }));
    });
}
