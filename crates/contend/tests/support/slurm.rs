//! A Slurm cluster of two nodes on this machine, for tests.

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use super::{Child, Command, has, is_root, skip, text, wait_until};

/// Longest time for which a cluster runs.
const LIFETIME: Duration = Duration::from_hours(4);
/// The programs of a cluster.
const PROGRAMS: &[&str] =
    &["munged", "sbatch", "scancel", "sinfo", "slurmctld", "slurmd", "squeue"];

/// A running cluster. Its daemons listen on the loopback interface only, and are ended when it is dropped.
pub struct Slurm {
    folder: TempDir,
    nodes: Vec<Child>,
    /// The daemon for authentication and the controller. They must end after the nodes.
    _others: [Child; 2],
}

impl Slurm {
    /// Starts a cluster, or skips the test with a message.
    pub fn start(test: &str) -> Option<Self> {
        if let Some(missing) = PROGRAMS.iter().find(|program| !has(program)) {
            skip(test, &format!("there is no {missing}"));
            return None;
        }
        if !is_root() {
            skip(test, "a node of Slurm needs root to start tasks");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("own folder");
        fs::write(path.join("slurm.conf"), configuration(path)).expect("room");
        for name in ["state", "spool.n1", "spool.n2"] {
            fs::create_dir(path.join(name)).expect("room");
        }
        let key = path.join("munge.key");
        let random = fs::File::open("/dev/urandom").expect("a device");
        let mut bytes = Vec::new();
        random.take(64).read_to_end(&mut bytes).expect("random bytes");
        fs::write(&key, bytes).expect("room");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("own file");
        let option = |name: &str, file: &str| format!("--{name}={}", path.join(file).display());
        let munge = daemon(
            path,
            "munged",
            &[
                "--foreground",
                "--force",
                &option("key-file", "munge.key"),
                &option("socket", "munge.socket"),
                &option("pid-file", "munge.pid"),
                &option("log-file", "munge.log"),
                &option("seed-file", "munge.seed"),
            ],
        );
        wait_until("munged listens", || path.join("munge.socket").exists());
        let controller = daemon(path, "slurmctld", &["-D"]);
        let nodes = ["n1", "n2"].map(|node| daemon(path, "slurmd", &["-D", "-N", node])).into();
        let slurm = Self { folder, nodes, _others: [munge, controller] };
        wait_until("both nodes are idle", || {
            let found = slurm.command("sinfo").args(["--noheader", "--format=%T %D"]).output();
            found.is_ok_and(|output| text(&output.stdout).trim() == "idle 2")
        });
        Some(slurm)
    }

    /// Returns the path of the configuration, which the programs of Slurm read from the variable `SLURM_CONF`.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// Returns a command for a program of Slurm.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the tasks that have not ended.
    pub fn tasks(&self) -> String {
        let output = self.command("squeue").arg("--noheader").output().expect("squeue starts");
        text(&output.stdout)
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Tasks are no children of this process.
        let ended = self.command("scancel").arg("--user=root").output();
        if ended.is_ok() && !std::thread::panicking() {
            wait_until("no task is left", || self.tasks().is_empty());
        }
        self.nodes.clear();
    }
}

/// Starts a daemon that stays in the foreground.
fn daemon(folder: &Path, name: &str, arguments: &[&str]) -> Child {
    let last = arguments.last().filter(|word| !word.starts_with('-')).unwrap_or(&"");
    let log = File::create(folder.join(format!("{name}.{last}.out"))).expect("room");
    let mut command = Command::new(name);
    command.deadline(LIFETIME);
    command.args(arguments).env("SLURM_CONF", folder.join("slurm.conf")).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
    command.spawn().expect("it starts")
}

/// Returns the configuration of a cluster with two nodes of one CPU each.
fn configuration(folder: &Path) -> String {
    // Listening on all of them at the same time makes the ports differ.
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    let [controller, one, two] =
        listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port());
    let folder = folder.display();
    format!(
        "ClusterName=test\n\
         SlurmctldHost=localhost(127.0.0.1)\n\
         SlurmctldPort={controller}\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/munge\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
         AuthInfo=socket={folder}/munge.socket\n\
         StateSaveLocation={folder}/state\n\
         SlurmdSpoolDir={folder}/spool.%n\n\
         SlurmctldPidFile={folder}/slurmctld.pid\n\
         SlurmdPidFile={folder}/slurmd.%n.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\n\
         SlurmdLogFile={folder}/slurmd.%n.log\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         SwitchType=switch/none\n\
         MpiDefault=none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\n\
         SchedulerType=sched/builtin\n\
         SchedulerParameters=batch_sched_delay=0\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU\n\
         ReturnToService=2\n\
         KillWait=2\n\
         SlurmdTimeout=60\n\
         NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={one} CPUs=1 State=UNKNOWN\n\
         NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={two} CPUs=1 State=UNKNOWN\n\
         PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP\n"
    )
}
