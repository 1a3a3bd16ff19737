//! Lateness of timers, compared with that of a sleeping thread.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use contend_callback::{Context, SpawnError};

use super::{on_worker, print_row, runtime};

static LATENESS_US: Mutex<Vec<f64>> = Mutex::new(Vec::new());

fn spawn(context: &mut Context<'_>, units: u64) -> Result<(), SpawnError> {
    let mut place = 0;
    for _ in 0..units {
        place = (place + 7_919) % units;
        let delay =
            Duration::from_secs(1) + Duration::from_secs(4).mul_f64(place as f64 / units as f64);
        let due = Instant::now() + delay;
        context.spawn_after(delay, move |context| {
            // Negative if the timer fired early.
            let late = match Instant::now().checked_duration_since(due) {
                Some(late) => late.as_secs_f64(),
                None => -due.duration_since(Instant::now()).as_secs_f64(),
            };
            LATENESS_US.lock().unwrap().push(late * 1e6);
            context.end()
        })?;
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is an index")]
fn percentile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

pub fn timers(rounds: usize) {
    let units = 1_000_000;
    let names = ["earliest", "half of them by", "99 of 100 by", "999 of 1000 by"];
    let mut rows: [Vec<f64>; 4] = Default::default();
    let mut sleeps: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        let receptor = runtime(1, Duration::ZERO);
        LATENESS_US.lock().unwrap().reserve(1_000_000);
        on_worker(&receptor, 0, move |context, sender| {
            spawn(context, units).unwrap();
            sender.send(()).unwrap();
            context.end()
        });
        receptor.wait();
        let mut late = std::mem::take(&mut *LATENESS_US.lock().unwrap());
        assert_eq!(late.len() as u64, units);
        late.sort_unstable_by(f64::total_cmp);
        for (row, part) in rows.iter_mut().zip([0.0, 0.5, 0.99, 0.999]) {
            row.push(percentile(&late, part));
        }
        let mut bare = sleep_bare();
        bare.sort_unstable_by(f64::total_cmp);
        for (row, part) in sleeps.iter_mut().zip([0.5, 0.99]) {
            row.push(percentile(&bare, part));
        }
    }
    println!("1,000,000 timers over 4 s on one Worker, late");
    for (name, row) in names.into_iter().zip(&mut rows) {
        print_row(&format!("  {name}"), "µs", row);
    }
    println!("a thread that sleeps 1 ms, timer slack 1 ns, late");
    for (name, row) in ["half of the time by", "99 of 100 times by"].into_iter().zip(&mut sleeps) {
        print_row(&format!("  {name}"), "µs", row);
    }
}

fn sleep_bare() -> Vec<f64> {
    let sleeper = || {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
        let sleep = |_| {
            let begun = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            (begun.elapsed().as_secs_f64() - 1e-3) * 1e6
        };
        (0..1000).map(sleep).collect()
    };
    std::thread::spawn(sleeper).join().unwrap()
}
