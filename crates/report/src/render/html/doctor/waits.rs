//! The waits of threads: their objects, and the holders of locks.

use contend_record::doctor::{DoctorRecord, Thread, ThreadState, ThreadWait};

use super::super::chart::Colour;
use super::super::chart::graph::{self, Edge, Node};
use super::super::frame::Figure;
use super::super::number_of;
use super::super::table::{Cell, Table};
use super::{state_colour, states_legend};
use crate::render::doctor::state_name;
use crate::render::text::printable;
use crate::render::units::{counted, seconds};

/// Largest number of threads in the graph. The table has all of the record.
const MAX_THREADS: usize = 16;
/// Largest number of objects in the graph.
const MAX_OBJECTS: usize = 16;

/// An object that threads wait for: threads of the same process with the same text.
struct Object {
    pid: i32,
    name: String,
    state: ThreadState,
    seconds: f64,
    waiters: u64,
    holder: Option<i32>,
}

/// Returns the graph of threads and the objects of their waits; `None` if no wait is known.
pub(super) fn figure(record: &DoctorRecord) -> Option<Figure> {
    let mut table = Table::new(&["thread", "#id", "waits for", "state", "#time", "held by"]);
    for thread in &record.threads {
        for wait in &thread.waits {
            table.push(vec![
                printable(&thread.name.name).into(),
                Cell::number(thread.name.tid.to_string(), f64::from(thread.name.tid)),
                object_name(wait).into(),
                state_name(wait.state).into(),
                Cell::number(seconds(wait.seconds), wait.seconds),
                wait.holder.map_or_else(String::new, |holder| thread_name(record, holder)).into(),
            ]);
        }
    }
    let threads = longest_waiting(record);
    let objects = objects(&threads);
    if objects.is_empty() {
        return None;
    }
    let left: Vec<Node> = threads.iter().map(|thread| node(record, thread)).collect();
    let right: Vec<Node> = objects.iter().map(|object| object_node(record, object)).collect();
    let edges = edges(record, &threads, &objects);
    let main = &objects[0];
    let alternative = format!(
        "Threads on the left, what they wait for on the right. Longest: {} by {}, {}.",
        main.name,
        counted(main.waiters, "thread"),
        seconds(main.seconds)
    );
    let has = |state: ThreadState| objects.iter().any(|object| object.state == state);
    let mut legend = states_legend(has);
    if edges.iter().any(|edge| edge.is_back) {
        legend.push((Colour(0), "dashed: held by".to_owned()));
    }
    let left_out =
        record.threads.iter().filter(|thread| !thread.waits.is_empty()).count() - threads.len();
    let rest = match left_out {
        0 => String::new(),
        count => format!(" {} more are in the table.", number_of(count, "thread")),
    };
    Some(Figure {
        title: "Who waits for what".to_owned(),
        legend,
        chart: graph::draw(&left, &right, &edges, &alternative),
        table,
        method: format!(
            "The width of a line shows the time. The kind and the object of a wait are from samples, as are the \
             holders of locks.{rest}"
        ),
    })
}

/// Returns the threads with the longest known waits.
fn longest_waiting(record: &DoctorRecord) -> Vec<&Thread> {
    let time = |thread: &Thread| thread.waits.iter().map(|wait| wait.seconds).sum::<f64>();
    let mut threads: Vec<&Thread> =
        record.threads.iter().filter(|thread| !thread.waits.is_empty()).collect();
    threads.sort_by(|a, b| time(b).total_cmp(&time(a)));
    threads.truncate(MAX_THREADS);
    threads
}

/// Returns the objects for which these threads wait, those with the longest waits first.
fn objects(threads: &[&Thread]) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    for thread in threads {
        for wait in &thread.waits {
            let (pid, name) = (thread.name.pid, object_name(wait));
            match objects.iter_mut().find(|object| object.pid == pid && object.name == name) {
                Some(object) => {
                    object.seconds += wait.seconds;
                    object.waiters += 1;
                }
                None => objects.push(Object {
                    pid,
                    name,
                    state: wait.state,
                    seconds: wait.seconds,
                    waiters: 1,
                    holder: wait.holder,
                }),
            }
        }
    }
    objects.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    objects.truncate(MAX_OBJECTS);
    objects
}

fn edges(record: &DoctorRecord, threads: &[&Thread], objects: &[Object]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (left, thread) in threads.iter().enumerate() {
        for wait in &thread.waits {
            let name = object_name(wait);
            let found = objects
                .iter()
                .position(|object| object.pid == thread.name.pid && object.name == name);
            edges.extend(found.map(|right| Edge {
                left,
                right,
                weight: wait.seconds,
                colour: state_colour(wait.state),
                is_back: false,
                text: format!(
                    "{} waits for {name} ({}): {}",
                    thread_name(record, thread.name.tid),
                    state_name(wait.state),
                    seconds(wait.seconds)
                ),
            }));
        }
    }
    for (right, object) in objects.iter().enumerate() {
        let Some(holder) = object.holder else { continue };
        let found = threads.iter().position(|thread| thread.name.tid == holder);
        edges.extend(found.map(|left| Edge {
            left,
            right,
            weight: 0.0,
            colour: Colour(0),
            is_back: true,
            text: format!("{} is held by {}", object.name, thread_name(record, holder)),
        }));
    }
    edges
}

fn node(record: &DoctorRecord, thread: &Thread) -> Node {
    let waits: Vec<String> = thread
        .waits
        .iter()
        .map(|wait| format!("{} {}", object_name(wait), seconds(wait.seconds)))
        .collect();
    let name = thread_name(record, thread.name.tid);
    Node { text: format!("{name} waits for {}", waits.join(", ")), label: name }
}

fn object_node(record: &DoctorRecord, object: &Object) -> Node {
    let holder = object.holder.map(|holder| format!(", held by {}", thread_name(record, holder)));
    Node {
        label: object.name.clone(),
        text: format!(
            "{}: {} by {}{}",
            object.name,
            seconds(object.seconds),
            counted(object.waiters, "thread"),
            holder.unwrap_or_default()
        ),
    }
}

fn object_name(wait: &ThreadWait) -> String {
    wait.object.as_deref().map_or_else(|| state_name(wait.state).to_owned(), printable)
}

fn thread_name(record: &DoctorRecord, tid: i32) -> String {
    match record.threads.iter().find(|thread| thread.name.tid == tid) {
        Some(thread) => format!("{} ({tid})", printable(&thread.name.name)),
        None => format!("thread {tid}"),
    }
}

#[cfg(test)]
mod tests {
    use contend_record::doctor::ThreadName;

    use super::*;

    fn thread(tid: i32, object: &str, time: f64, holder: Option<i32>) -> Thread {
        Thread {
            name: ThreadName { pid: 1, tid, name: format!("worker{tid}"), function: None },
            observed_seconds: 1.0,
            state_seconds: [].into(),
            slices: 1,
            waits: vec![ThreadWait {
                state: ThreadState::Lock,
                object: Some(object.to_owned()),
                seconds: time,
                holder,
            }],
        }
    }

    #[test]
    fn threads_that_wait_for_the_same_lock_share_a_node() {
        let threads = vec![
            thread(1, "lock 0x1", 0.5, Some(3)),
            thread(2, "lock 0x1", 0.25, Some(3)),
            thread(3, "lock 0x2", 0.1, None),
        ];
        let record = DoctorRecord { threads, ..DoctorRecord::default() };
        let chosen = longest_waiting(&record);
        let objects = objects(&chosen);
        assert_eq!(objects.len(), 2);
        assert_eq!((objects[0].waiters, objects[0].holder), (2, Some(3)));
        let edges = edges(&record, &chosen, &objects);
        let back: Vec<_> = edges.iter().filter(|edge| edge.is_back).collect();
        assert_eq!((edges.len(), back.len()), (4, 1));
        assert_eq!(back[0].text, "lock 0x1 is held by worker3 (3)");
        assert!(figure(&record).is_some());
    }

    #[test]
    fn without_known_waits_there_is_no_graph() {
        assert!(figure(&DoctorRecord::default()).is_none());
    }
}
