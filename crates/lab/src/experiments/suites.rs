//! The suites.

use contend_record::lab::Chapter;

use crate::engine::plan::DEFAULT_BUDGET_SECONDS;
use crate::engine::suite::Suite;

/// All suites.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "process-thread",
        summary: "what a process and a thread cost: sharing, memory, creation, limit, start-up",
        chapter: Chapter::ProcessThread,
        patterns: &["sharing/*", "units/create", "units/memory", "units/limit", "units/startup"],
        only: &[],
        budget_seconds: DEFAULT_BUDGET_SECONDS,
    },
    Suite {
        name: "pipeline",
        summary: "what pipes cost and bring: a JSON parser in awk, seds, filters, sort, start-up",
        chapter: Chapter::Pipeline,
        patterns: &["pipeline/*"],
        only: &[],
        budget_seconds: 75.0,
    },
    Suite {
        name: "synchronisation",
        summary: "what hand-offs and waiting cost: semaphores, sleeping, ticks, one thread or several",
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
        budget_seconds: 115.0,
    },
    Suite {
        name: "callback",
        summary: "what a unit costs in every runtime: memory, creation, messages; the evaluation of 2018",
        chapter: Chapter::Runtimes,
        patterns: &["runtime/*"],
        only: &[],
        budget_seconds: 600.0,
    },
    Suite {
        name: "shared-memory",
        summary: "what a message and a copy cost: pipes, shared memory and every way between",
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
        budget_seconds: 50.0,
    },
];
