//! A control group for a test.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A control group with a limit.
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Creates a group of `controller`, and applies the first `FILE=VALUE` in `settings` whose file
    /// exists.
    ///
    /// # Panics
    /// Panics if no such group can be created.
    pub fn new(controller: &str, settings: &[&str]) -> Self {
        let roots = [format!("/sys/fs/cgroup/{controller}"), "/sys/fs/cgroup".to_owned()];
        let can = |root: &&String| {
            let own = root.ends_with(controller);
            let unified = std::fs::read_to_string(format!("{root}/cgroup.subtree_control"))
                .is_ok_and(|controllers| controllers.contains(controller));
            Path::new(root).join("cgroup.procs").exists() && (own || unified)
        };
        let root = roots.iter().find(can).expect("a cgroup of this kind");
        let folder = PathBuf::from(format!("{root}/contend-it-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a cgroup can be made");
        let pairs = settings.iter().filter_map(|setting| setting.split_once('='));
        let exists = |(file, _): &(&str, &str)| folder.join(file).exists();
        let (file, value) = pairs.clone().find(exists).expect("a setting");
        std::fs::write(folder.join(file), value).expect("a limit can be set");
        Self { folder }
    }

    /// Returns a shell command that moves the shell into the group.
    pub fn join(&self) -> String {
        format!("echo $$ >{}/cgroup.procs", self.folder.display())
    }

    /// Removes the group.
    ///
    /// # Panics
    /// Panics if a process remains in it.
    pub fn remove(self) {
        let removed = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::remove_dir(&self.folder).is_ok()
        });
        assert!(removed, "something is left in the cgroup");
    }
}
