//! Names of parameters that both the lab's experiments and the reports use.

/// Advice to the kernel on how a mapping is used.
pub const ADVICE: &str = "advice";
/// Implementation of awk.
pub const AWK: &str = "awk";
/// Length of a block that is moved at a time, in bytes.
pub const BLOCK: &str = "block";
/// Length of a message or of a file, in bytes.
pub const BYTES: &str = "bytes";
/// Whether the data to read is already in memory.
pub const CACHE: &str = "cache";
/// Command to start.
pub const COMMAND: &str = "command";
/// Number of connections.
pub const CONNECTIONS: &str = "connections";
/// Number of copies that run at the same time.
pub const COPIES: &str = "copies";
/// Kind of the file system that holds a file.
pub const FILE_SYSTEM: &str = "place";
/// Filter program.
pub const FILTER: &str = "filter";
/// Variant of an operation.
pub const FORM: &str = "form";
/// Number of the CPU on which the first partner runs.
pub const FROM: &str = "from";
/// Whether connections stay open between requests.
pub const KEEP_ALIVE: &str = "keep_alive";
/// Kind of unit of concurrency.
pub const KIND: &str = "kind";
/// Mechanism by which a partner signals the other, or sends to it.
pub const MECHANISM: &str = "mechanism";
/// Number of messages.
pub const MESSAGES: &str = "messages";
/// Method by which a file is copied.
pub const METHOD: &str = "way";
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
/// CPUs on which partners run.
pub const PLACEMENT: &str = "placement";
/// Number of worker processes.
pub const PROCESSES: &str = "processes";
/// Web server of another project.
pub const PROGRAM: &str = "program";
/// Whether a slow stage follows.
pub const SLOW: &str = "slow";
/// Middle stage of a pipeline.
pub const STAGE: &str = "stage";
/// Number of worker threads in each process.
pub const THREADS: &str = "threads";
/// Period of the tick with which the ends of sleeps are aligned, in microseconds; 0 for none.
pub const TICK_US: &str = "tick_us";
/// Number of the CPU on which the second partner runs.
pub const TO: &str = "to";
/// Number of commands in the tokenizer.
pub const TOKENIZER: &str = "tokenizer";
/// Number of turns in a sample. If measurements are scaled, this is the number that they were taken
/// with.
pub const TURNS: &str = "turns";
/// Kind of unit of a runtime.
pub const UNIT: &str = "unit";
