//! The suites: the experiments that each report chapter compares with a source document.

use contend_record::lab::Chapter;

use crate::engine::suite::Suite;

/// All suites, in the order of lists.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "process-thread",
        summary: "cost of a process and of a thread: sharing, memory, creation, switching, limits, start-up",
        chapter: Chapter::ProcessThread,
        patterns: &[
            "sharing/*",
            "units/create",
            "units/memory",
            "units/limit",
            "units/startup",
            "handoff/mechanisms",
        ],
        only: &[],
        // On one CPU, every hand-off contains a context switch.
        set: &[
            ("mechanism", "futex"),
            ("mechanism", "pipe"),
            ("partners", "process"),
            ("partners", "thread"),
            ("placement", "same-cpu"),
        ],
        decisive: &[
            ("units/create", "kind", "fork"),
            ("units/create", "kind", "thread"),
            ("units/create", "n", "100"),
            ("handoff/mechanisms", "placement", "same-cpu"),
        ],
        budget_seconds: 55.0,
    },
    Suite {
        name: "pipeline",
        summary: "cost and benefit of pipes: a JSON parser in awk, sed, filters, sort, start-up",
        chapter: Chapter::Pipeline,
        patterns: &["pipeline/*"],
        only: &[],
        set: &[],
        decisive: &[],
        budget_seconds: 75.0,
    },
    Suite {
        name: "synchronisation",
        summary: "cost of hand-offs and of waiting: semaphores, sleeping, timer ticks, one or more threads",
        chapter: Chapter::Synchronisation,
        patterns: &[
            "handoff/mechanisms",
            "handoff/0*",
            "handoff/1*",
            "handoff/2*",
            "handoff/3",
            "handoff/4*",
            "handoff/8",
            "handoff/9",
            "saturation/compute",
        ],
        only: &[("*", "tick_us", "0"), ("*", "tick_us", "15625"), ("*", "partners", "process")],
        set: &[],
        decisive: &[
            ("handoff/0", "placement", "free"),
            ("handoff/1a+", "placement", "free"),
            ("handoff/2", "placement", "free"),
            ("handoff/4", "placement", "free"),
        ],
        budget_seconds: 115.0,
    },
    Suite {
        name: "callback",
        summary: "cost of a task in each runtime: memory, creation, messages; the evaluation of 2018",
        chapter: Chapter::Runtimes,
        patterns: &["runtime/*"],
        only: &[],
        set: &[],
        decisive: &[],
        budget_seconds: 600.0,
    },
    Suite {
        name: "shared-memory",
        summary: "cost of a message and of a copy: pipes, shared memory and the mechanisms between",
        chapter: Chapter::SharedMemory,
        patterns: &[
            "engine/cache-line",
            "engine/futex",
            "engine/handed-copy",
            "ipc/one-byte",
            "ipc/one-way",
            "ipc/round-trip",
            "copy/file",
        ],
        only: &[
            ("ipc/*", "partners", "process"),
            ("ipc/round-trip", "bytes", "1"),
            ("ipc/round-trip", "placement", "same-cpu"),
            ("ipc/round-trip", "placement", "two-cpus"),
            ("ipc/round-trip", "placement", "two-awake"),
            ("ipc/one-way", "placement", "two-cpus"),
            ("copy/file", "advice", "none"),
            ("copy/file", "advice", ""),
            ("copy/file", "cache", "warm"),
            ("copy/file", "place", "tmpfs"),
        ],
        set: &[],
        decisive: &[],
        budget_seconds: 50.0,
    },
];
