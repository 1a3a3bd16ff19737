//! Names of parameters that reports look up: the lab's cases and the reports take them from here.

/// What the kernel is told of how a mapping is used.
pub const ADVICE: &str = "advice";
/// Which awk.
pub const AWK: &str = "awk";
/// How many bytes are moved at a time.
pub const BLOCK: &str = "block";
/// The length of a message or of a file, in bytes.
pub const BYTES: &str = "bytes";
/// Whether what is read is in memory already.
pub const CACHE: &str = "cache";
/// What is started.
pub const COMMAND: &str = "command";
/// How many connections there are.
pub const CONNECTIONS: &str = "connections";
/// How many copies run at the same time.
pub const COPIES: &str = "copies";
/// Which program filters.
pub const FILTER: &str = "filter";
/// In which form something is done.
pub const FORM: &str = "form";
/// The number of the CPU on which the one partner runs.
pub const FROM: &str = "from";
/// The kind of unit of concurrency.
pub const KIND: &str = "kind";
/// How one partner tells the other, or sends to it.
pub const MECHANISM: &str = "mechanism";
/// How many messages there are.
pub const MESSAGES: &str = "messages";
/// The model of a server.
pub const MODEL: &str = "model";
/// How many units there are.
pub const N: &str = "n";
/// Where in a pipeline something stands.
pub const ORDER: &str = "order";
/// Memory that the creator has touched, in MiB.
pub const PARENT_MIB: &str = "parent_mib";
/// Whether partners are processes or threads.
pub const PARTNERS: &str = "partners";
/// On which kind of file system a file is.
pub const PLACE: &str = "place";
/// On which CPUs partners run.
pub const PLACEMENT: &str = "placement";
/// How many processes work.
pub const PROCESSES: &str = "processes";
/// Whether a slow stage follows.
pub const SLOW: &str = "slow";
/// Which stage is in the middle of a pipeline.
pub const STAGE: &str = "stage";
/// How many threads work in each process.
pub const THREADS: &str = "threads";
/// The tick at whose multiples sleeps end, in microseconds; 0 for none.
pub const TICK_US: &str = "tick_us";
/// The number of the CPU on which the other partner runs.
pub const TO: &str = "to";
/// In how many commands the tokenizer is.
pub const TOKENIZER: &str = "tokenizer";
/// How many turns a sample has; where figures are scaled, from how many.
pub const TURNS: &str = "turns";
/// The kind of unit of a runtime.
pub const UNIT: &str = "unit";
/// By which way a file is copied.
pub const WAY: &str = "way";
