//! Names of parameters that both the lab's experiments and the reports use.

/// Advice to the kernel on how a mapping is used.
pub const ADVICE: &str = "advice";
/// Implementation of awk.
pub const AWK: &str = "awk";
/// Bytes that are moved at a time.
pub const BLOCK: &str = "block";
/// Length of a message or of a file, in bytes.
pub const BYTES: &str = "bytes";
/// Whether the data to read is in memory already.
pub const CACHE: &str = "cache";
/// Command that is started.
pub const COMMAND: &str = "command";
/// Number of connections.
pub const CONNECTIONS: &str = "connections";
/// Number of copies that run at the same time.
pub const COPIES: &str = "copies";
/// Program that filters.
pub const FILTER: &str = "filter";
/// Variant of an operation.
pub const FORM: &str = "form";
/// Number of the CPU on which the first partner runs.
pub const FROM: &str = "from";
/// Whether connections stay open between requests.
pub const KEEP_ALIVE: &str = "keep_alive";
/// Kind of unit of concurrency.
pub const KIND: &str = "kind";
/// How a partner signals the other, or sends to it.
pub const MECHANISM: &str = "mechanism";
/// Number of messages.
pub const MESSAGES: &str = "messages";
/// Concurrency model of a server.
pub const MODEL: &str = "model";
/// Number of units.
pub const N: &str = "n";
/// Position of a stage in a pipeline.
pub const ORDER: &str = "order";
/// Memory that the creating process has touched, in MiB.
pub const PARENT_MIB: &str = "parent_mib";
/// Whether partners are processes or threads.
pub const PARTNERS: &str = "partners";
/// Kind of file system that a file is on.
pub const PLACE: &str = "place";
/// CPUs on which partners run.
pub const PLACEMENT: &str = "placement";
/// Number of processes that work.
pub const PROCESSES: &str = "processes";
/// Web server that another project makes.
pub const PROGRAM: &str = "program";
/// Whether a slow stage follows.
pub const SLOW: &str = "slow";
/// Stage in the middle of a pipeline.
pub const STAGE: &str = "stage";
/// Number of threads that work in each process.
pub const THREADS: &str = "threads";
/// Period of the tick at whose multiples sleeps end, in microseconds; 0 for none.
pub const TICK_US: &str = "tick_us";
/// Number of the CPU on which the second partner runs.
pub const TO: &str = "to";
/// Number of commands that make up the tokenizer.
pub const TOKENIZER: &str = "tokenizer";
/// Number of turns in a sample; if figures are scaled, the number from which they are.
pub const TURNS: &str = "turns";
/// Kind of unit of a runtime.
pub const UNIT: &str = "unit";
/// Method by which a file is copied.
pub const WAY: &str = "way";
