//! An Apache Spark for tests, from the folder that `SPARK_HOME` names.

use std::path::{Path, PathBuf};

use super::{Command, has, skip};

/// The master of a cluster with two executors on this machine.
pub const MASTER: &str = "local-cluster[2,1,1024]";
/// Returns the folder of a Spark installation, or skips the test with a message.
pub fn spark(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("SPARK_HOME").map(PathBuf::from);
    match home.filter(|home| home.join("bin/spark-submit").exists()) {
        Some(home) if has("java") && has("python3") => Some(home),
        _ => {
            skip(test, "SPARK_HOME does not name an Apache Spark, or there is no Java or Python");
            None
        }
    }
}

/// Sets the variables that Spark needs. `programs` is the folder of `spark-submit`.
pub fn set_variables(command: &mut Command, home: &Path, programs: &Path) {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1");
    command.env("PYTHONPATH", home.parent().expect("a folder of packages"));
}
