//! Source documents with which the chapters of suites compare measurements.

use contend_record::lab::Chapter;

/// A source document of a suite.
pub struct Source {
    /// Short name by which the chapter refers to the document, such as `the article`.
    name: &'static str,
    /// Title in the document's language.
    title: &'static str,
    /// Title in English.
    translation: &'static str,
    /// Author or publisher, and year, as far as the document states them.
    origin: &'static str,
    /// Public URL; `None` if the document has none.
    link: Option<&'static str>,
    /// Hardware and system on which the document's measurements were made.
    hardware: &'static str,
}

/// Returns the document with which a chapter compares the run.
pub fn of(chapter: Chapter) -> &'static Source {
    match chapter {
        Chapter::ProcessThread => &PROCESS_THREAD,
        Chapter::Pipeline => &PIPELINE,
        Chapter::Synchronisation => &SYNCHRONISATION,
        Chapter::Runtimes => &RUNTIMES,
        Chapter::SharedMemory => &SHARED_MEMORY,
    }
}

const PROCESS_THREAD: Source = Source {
    name: "the workshop",
    title: "プロセスとスレッドについての勉強会",
    translation: "Study session on processes and threads",
    origin: "JapanTaxi engineering blog, 2018 (author not named)",
    link: Some("https://github.com/JapanTaxi/mpmt"),
    hardware: "a Mac with macOS 10.12",
};

const PIPELINE: Source = Source {
    name: "the study",
    title: "シェルスクリプトで「パイプライン並列化」をガチでやってみた",
    translation: "Pipeline parallelism in shell scripts, in earnest",
    origin: "article on Qiita, 2021 (author not named)",
    link: None,
    hardware: "a processor with 4 cores and 8 threads",
};

const SYNCHRONISATION: Source = Source {
    name: "the report",
    title: "プロセス間同期テスト結果",
    translation: "Results of inter-process synchronisation tests",
    origin: "test report (author and year not stated)",
    link: None,
    hardware: "PCs with 1, 2 and 4 cores, Windows XP and 7",
};

const RUNTIMES: Source = Source {
    name: "the document",
    title: "ZEAM開発ログ v.0.2.2 Node.js と同じ原理の軽量コールバックスレッドを Elixir に実装してみた (評価編)",
    translation: "ZEAM development log v0.2.2: lightweight callback threads in Elixir, evaluation",
    origin: "zacky1972 on Qiita, 2018",
    link: Some("https://qiita.com/zacky1972/items/1666d3ebaf56ba85fd05"),
    hardware: "a machine that it does not describe",
};

const SHARED_MEMORY: Source = Source {
    name: "the article",
    title: "システムコールを減らすシステムコール:知ってトクするシステムコール(5)",
    translation: "A system call that reduces system calls (system calls worth knowing, part 5)",
    origin: "ITmedia (author and year not stated)",
    link: None,
    hardware: "a FreeBSD machine",
};

impl Source {
    /// Returns sentences that name the document and the hardware of its measurements.
    pub fn citation(&self) -> String {
        let link = self.link.map_or_else(String::new, |link| format!(", {link}"));
        format!(
            "Source ({}): {} (\"{}\"), {}{link}. Its figures are from other hardware: {}.",
            self.name, self.title, self.translation, self.origin, self.hardware
        )
    }
}
