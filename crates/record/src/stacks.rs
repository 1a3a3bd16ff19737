//! Stacks that samples have found, for flame graphs.

/// A stack of a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// ID of the thread.
    pub tid: i32,
    /// Names of the functions, outermost first. The name of a file in brackets stands for an unknown
    /// function in it, and `[unknown]` for one that is in no file.
    pub frames: Vec<String>,
    /// Share of the thread's samples that found this stack.
    pub share: f64,
}
