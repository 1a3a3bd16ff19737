//! Names of parameters that both the lab's experiments and the reports use.

/// Advice to the kernel on mappings of a file, such as `sequential`.
pub const ADVICE: &str = "advice";
/// Implementation of awk, by name, such as `mawk`.
pub const AWK: &str = "awk";
/// Length of a block that is moved at a time, in bytes.
pub const BLOCK: &str = "block";
/// Length of a message or of a file, in bytes.
pub const BYTES: &str = "bytes";
/// State of the page cache before a copy: `warm` if it contains the source, or `cold`.
pub const CACHE: &str = "cache";
/// Command that is started, by the experiment's name for it.
pub const COMMAND: &str = "command";
/// Number of connections to a server.
pub const CONNECTIONS: &str = "connections";
/// Number of copies of a pipeline or program that run at the same time.
pub const COPIES: &str = "copies";
/// Kind of the file system that holds the files: `disk` or `tmpfs`.
pub const FILE_SYSTEM: &str = "place";
/// Program that filters the lines of a pipeline: `grep` or `sed`.
pub const FILTER: &str = "filter";
/// Variant of what is measured; the values depend on the experiment.
pub const FORM: &str = "form";
/// Number of the CPU on which the first partner runs.
pub const FROM: &str = "from";
/// Whether a connection stays open for several requests.
pub const KEEP_ALIVE: &str = "keep_alive";
/// Kind of the units of concurrency, such as threads.
pub const KIND: &str = "kind";
/// Mechanism by which one partner hands its turn to the other, or sends messages to it.
pub const MECHANISM: &str = "mechanism";
/// Number of messages in a sample.
pub const MESSAGES: &str = "messages";
/// Method by which a file is copied.
pub const METHOD: &str = "way";
/// Concurrency model of contend's own server.
pub const MODEL: &str = "model";
/// Number of units of concurrency.
pub const N: &str = "n";
/// Position of the filter in a pipeline: `early` or `late`.
pub const ORDER: &str = "order";
/// Memory that the creating process has touched, in MiB.
pub const PARENT_MIB: &str = "parent_mib";
/// Whether partners are processes or threads.
pub const PARTNERS: &str = "partners";
/// Rule that determines the CPUs on which the partners run.
pub const PLACEMENT: &str = "placement";
/// Number of processes that do the work.
pub const PROCESSES: &str = "processes";
/// Web server of another project, by its name.
pub const PROGRAM: &str = "program";
/// Whether a slow stage follows the measured ones in the pipeline.
pub const SLOW: &str = "slow";
/// Command of the middle stage of a pipeline, which may hold back lines.
pub const STAGE: &str = "stage";
/// Number of threads that do the work in each process.
pub const THREADS: &str = "threads";
/// Period, in microseconds, of the tick with which the ends of sleeps are aligned; 0 without a
/// tick.
pub const TICK_US: &str = "tick_us";
/// Number of the CPU on which the second partner runs.
pub const TO: &str = "to";
/// Number of commands that the tokenizer consists of: `one` or `four`.
pub const TOKENIZER: &str = "tokenizer";
/// Number of turns that ran in a sample, even if the figures are scaled to another number of turns.
pub const TURNS: &str = "turns";
/// Kind of the units of concurrency in a language runtime.
pub const UNIT: &str = "unit";
