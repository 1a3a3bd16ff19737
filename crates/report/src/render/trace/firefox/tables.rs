//! The tables of a processed profile, as the Firefox Profiler's `src/types/profile.ts` defines them.

use contend_record::doctor::ThreadState;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Data;

/// Version of the format.
const VERSION: u32 = 60;

/// A profile. `T` is the column of threads.
#[derive(Serialize)]
pub struct Profile<'a, T> {
    pub meta: Meta,
    pub libs: [(); 0],
    pub shared: Shared<'a>,
    pub threads: T,
}

/// An array whose elements are made while it is written. The function makes an iterator over them.
pub struct Column<F>(F);

impl<F> Column<F> {
    pub fn new<I: Iterator>(elements: F) -> Self
    where
        F: Fn() -> I,
    {
        Self(elements)
    }
}

impl<F, I> Serialize for Column<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// What holds for the whole profile.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Time between two samples of a thread, in milliseconds.
    pub interval: f64,
    /// Start in milliseconds since 1970.
    pub start_time: f64,
    pub start_time_as_clock_monotonic_nanoseconds_since_boot: u64,
    pub product: String,
    pub arguments: String,
    pub oscpu: String,
    #[serde(rename = "CPUName")]
    pub cpu_name: String,
    #[serde(rename = "logicalCPUs")]
    pub logical_cpus: usize,
    pub extra: Value,
    pub initial_visible_threads: Vec<usize>,
    pub initial_selected_threads: Vec<usize>,
    #[serde(flatten)]
    pub constants: Constants,
}

/// The part of [`Meta`] that is the same for every trace.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Constants {
    preprocessed_profile_version: u32,
    /// Version of Firefox's own format, which does not matter.
    version: u32,
    process_type: u32,
    stackwalk: u32,
    debug: bool,
    symbolicated: bool,
    symbolication_not_supported: bool,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    keep_profile_thread_order: bool,
    imported_from: &'static str,
    sample_units: Value,
    categories: Value,
    marker_schema: Value,
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            preprocessed_profile_version: VERSION,
            version: 30,
            process_type: 0,
            stackwalk: 0,
            debug: false,
            symbolicated: true,
            symbolication_not_supported: true,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
            keep_profile_thread_order: true,
            imported_from: "contend",
            sample_units: json!({ "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" }),
            categories: categories(),
            marker_schema: marker_schema(),
        }
    }
}

/// A category of states, which have one colour and are next to each other in the marker chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    Other,
    Cpu,
    Queue,
    Lock,
    Timer,
    Io,
    Process,
}

/// Names and colours by number of the category. The profiler requires that one is grey.
const CATEGORIES: [(&str, &str); 7] = [
    ("Other", "grey"),
    ("CPU", "green"),
    ("Queue", "orange"),
    ("Lock", "red"),
    ("Timer", "purple"),
    ("I/O", "blue"),
    ("Process", "brown"),
];

impl Category {
    pub fn of(state: ThreadState) -> Self {
        match state {
            ThreadState::Running => Self::Cpu,
            ThreadState::Runnable => Self::Queue,
            ThreadState::Lock | ThreadState::Condition => Self::Lock,
            ThreadState::Sleep => Self::Timer,
            ThreadState::Pipe
            | ThreadState::Socket
            | ThreadState::Poll
            | ThreadState::Terminal
            | ThreadState::Disk
            | ThreadState::PageFault => Self::Io,
            ThreadState::Child | ThreadState::Stopped => Self::Process,
            ThreadState::Other | ThreadState::Unknown => Self::Other,
        }
    }
}

fn categories() -> Value {
    let category =
        |(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    CATEGORIES.map(category).into_iter().collect()
}

/// Returns the schemas of markers, one for each variant of [`Data`].
fn marker_schema() -> Value {
    let display = ["marker-chart", "marker-table"];
    json!([
        {
            "name": "running",
            "description": "The thread is on a CPU.",
            "display": display,
            "chartLabel": "CPU {marker.data.cpu}",
            "tableLabel": "on CPU {marker.data.cpu}",
            "fields": [{ "key": "cpu", "label": "CPU", "format": "integer" }],
        },
        {
            "name": "queued",
            "description": "The thread is ready to run, and waits for a CPU.",
            "display": display,
            "fields": [],
        },
        {
            "name": "working",
            "description": "The thread is at work that it recorded itself.",
            "display": display,
            "chartLabel": "{marker.data.bytes}",
            "tableLabel": "{marker.data.bytes}",
            "fields": [
                { "key": "count", "label": "Number", "format": "integer" },
                { "key": "bytes", "label": "Bytes", "format": "bytes" },
            ],
        },
        {
            "name": "waiting",
            "description": "The thread waits.",
            "display": display,
            "chartLabel": "{marker.data.object} {marker.data.target}",
            "tableLabel": "{marker.data.object} {marker.data.target}",
            "fields": [
                { "key": "object", "label": "For", "format": "unique-string" },
                { "key": "target", "label": "Target", "format": "file-path" },
                { "key": "evidence", "label": "Evidence", "format": "unique-string" },
            ],
        },
        {
            "name": "event",
            "description": "The process executed a program, or the thread got a new name.",
            "display": display,
            "chartLabel": "{marker.data.thread}",
            "tableLabel": "{marker.data.thread}",
            "fields": [{ "key": "thread", "label": "Name", "format": "sanitized-string" }],
        },
        {
            "name": "cause",
            "description": "Why the program did not use all its CPUs, or that it did.",
            "display": display,
            "fields": [],
        },
        {
            "name": "level",
            "description": "Mean number of threads on CPUs.",
            "display": ["marker-table"],
            "tableLabel": "{marker.data.running}",
            "fields": [{ "key": "running", "label": "Running threads", "format": "decimal" }],
            "graphs": [{ "key": "running", "type": "line-filled", "color": "green" }],
        },
    ])
}

/// The tables that all threads share: a stack of one frame for each state.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shared<'a> {
    stack_table: Value,
    frame_table: Value,
    func_table: Value,
    resource_table: Value,
    native_symbols: Value,
    sources: Value,
    string_array: &'a [String],
}

impl<'a> Shared<'a> {
    /// Creates the tables. `states` has the indexes of the states' names.
    pub fn new(strings: &'a [String], states: &[usize]) -> Self {
        let length = states.len();
        let numbers: Vec<usize> = (0..length).collect();
        let categories = ThreadState::ALL.map(|state| Category::of(state) as usize);
        let all = |value: Value| vec![value; length];
        Self {
            stack_table: json!({
                "frame": numbers, "prefix": all(Value::Null), "length": length,
            }),
            frame_table: json!({
                "address": all(json!(-1)),
                "inlineDepth": all(json!(0)),
                "category": categories,
                "subcategory": all(json!(0)),
                "func": numbers,
                "nativeSymbol": all(Value::Null),
                "innerWindowID": all(Value::Null),
                "line": all(Value::Null),
                "column": all(Value::Null),
                "length": length,
            }),
            func_table: json!({
                "name": states,
                "isJS": all(json!(false)),
                "relevantForJS": all(json!(false)),
                "resource": all(json!(-1)),
                "source": all(Value::Null),
                "lineNumber": all(Value::Null),
                "columnNumber": all(Value::Null),
                "length": length,
            }),
            resource_table: json!({ "type": [], "lib": [], "name": [], "host": [], "length": 0 }),
            native_symbols: json!({
                "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0,
            }),
            sources: json!({ "id": [], "filename": [], "length": 0 }),
            string_array: strings,
        }
    }
}

/// A thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread<'a> {
    pub name: String,
    #[serde(rename = "isMainThread")]
    pub is_main: bool,
    pub process_name: String,
    pub process_type: &'static str,
    /// Times are in milliseconds since the start.
    pub process_startup_time: f64,
    pub process_shutdown_time: Option<f64>,
    pub register_time: f64,
    pub unregister_time: Option<f64>,
    pub paused_ranges: [(); 0],
    pub pid: String,
    pub tid: String,
    pub samples: Samples,
    pub markers: Markers<'a>,
}

/// The samples of a thread.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Samples {
    /// Index of the stack, which is the number of the state.
    pub stack: Vec<usize>,
    /// Time since the sample before, in milliseconds; that of the first is since the start.
    pub time_deltas: Vec<f64>,
    /// Running time since the sample before, in nanoseconds.
    #[serde(rename = "threadCPUDelta")]
    pub thread_cpu_delta: Vec<u64>,
    pub weight: Option<()>,
    pub weight_type: &'static str,
    pub length: usize,
}

/// A marker.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Index of its name.
    pub name: usize,
    /// Milliseconds since the start.
    pub start: f64,
    /// Milliseconds since the start; `None` for an instant.
    pub end: Option<f64>,
    pub category: Category,
    pub data: Data<'a>,
}

/// The rows of a table of markers.
pub type Rows<'a> = Box<dyn Iterator<Item = Row<'a>> + 'a>;

/// A table of markers. The function makes an iterator over its rows, for each column.
pub struct Markers<'a>(pub Box<dyn Fn() -> Rows<'a> + 'a>);

impl Serialize for Markers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = &self.0;
        let phase = |row: Row<'_>| u8::from(row.end.is_some()); // 0: instant, 1: interval
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("data", &Column::new(|| rows().map(|row| row.data)))?;
        map.serialize_entry("name", &Column::new(|| rows().map(|row| row.name)))?;
        map.serialize_entry("startTime", &Column::new(|| rows().map(|row| row.start)))?;
        map.serialize_entry("endTime", &Column::new(|| rows().map(|row| row.end)))?;
        map.serialize_entry("phase", &Column::new(|| rows().map(phase)))?;
        map.serialize_entry("category", &Column::new(|| rows().map(|row| row.category as usize)))?;
        map.serialize_entry("length", &rows().count())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::doctor::state_name;

    #[test]
    fn each_category_has_its_name() {
        for state in ThreadState::ALL {
            let (name, _) = CATEGORIES[Category::of(state) as usize];
            assert_eq!(name == "Lock", matches!(state_name(state), "lock" | "condition or idle"));
        }
        assert_eq!(CATEGORIES[Category::Process as usize].0, "Process");
    }

    #[test]
    fn each_marker_has_a_schema() {
        let data = [
            Data::Running { cpu: Some(3) },
            Data::Queued,
            Data::Working { count: 3, bytes: Some(700) },
            Data::Waiting { object: Some(1), target: Some("pipe:[7]"), evidence: 0 },
            Data::Event { thread: "worker" },
            Data::Cause,
            Data::Level { running: 1.5 },
        ];
        let schemas = marker_schema();
        let schemas = schemas.as_array().expect("a list");
        assert_eq!(schemas.len(), data.len());
        for (data, schema) in data.into_iter().zip(schemas) {
            let data = serde_json::to_value(data).expect("JSON");
            assert_eq!(data["type"], schema["name"]);
            let keys = data.as_object().expect("an object").keys().filter(|key| *key != "type");
            let fields = schema["fields"].as_array().expect("a list");
            let known: Vec<&str> =
                fields.iter().filter_map(|field| field["key"].as_str()).collect();
            assert!(keys.clone().all(|key| known.contains(&key.as_str())), "{data}");
            assert_eq!(keys.count(), known.len(), "{data}");
        }
    }
}
