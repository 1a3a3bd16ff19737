//! Traps and signals.

use super::{Feature, feature};

pub(super) const FEATURES: &[Feature] = &[
    feature(
        "traps/exit",
        4,
        &[
            "trap 'echo bye' EXIT; «pipeline»",
            "trap 'echo bye $?' EXIT; «source» | grep nothing-there",
            "trap '«bare»' EXIT; «pipeline»; exit 3",
            "(trap 'echo sub' EXIT; «pipeline»); echo out",
            "trap 'rm -f o1' EXIT; «pipeline» >o1; cat o1 | «filter»",
            "{ trap 'echo grp' EXIT; «filter»; } <a | «filter»",
            "trap 'cat | tr a b' EXIT; exec <a",
        ],
    ),
    feature(
        "traps/err",
        3,
        &[
            "trap 'echo err $?' ERR; «source» | grep nothing-there; echo here",
            "trap 'echo err $LINENO' ERR\n«pipeline»\nsort nofile | grep x\necho here",
            "set -E; trap 'echo err' ERR; f() { «source» | false; }; f",
            "set -o pipefail; trap 'echo err' ERR; false | «filter»; echo here",
        ],
    ),
    feature(
        "traps/debug",
        2,
        &[
            "trap 'echo D' DEBUG; «pipeline»",
            "trap 'echo \"$BASH_COMMAND\" >>o1' DEBUG; «source» | «filter»; trap - DEBUG; cat o1",
            "f() { «pipeline»; }; trap 'echo R' RETURN; f",
        ],
    ),
    feature(
        "traps/pipe",
        3,
        &[
            "trap '' PIPE; yes | head -n 2 | «filter»",
            "trap 'echo pipe >&2' PIPE; «source» | head -n 1; echo $?",
            "(trap '' PIPE; seq 100000 | head -n 1); echo $?",
            "trap '' PIPE; (seq 100000; echo \"end $?\" >&2) 2>o1 | tr 0-9 a-j | head -n 1; sleep 0.1; wc -l <o1",
        ],
    ),
    feature(
        "traps/int",
        3,
        &[
            "trap 'echo int' INT; kill -INT $$; «pipeline»",
            "trap '' INT; kill -INT $$; «pipeline»",
            "trap 'echo usr | tr u U' USR1; kill -USR1 $$; «pipeline»",
            "trap 'echo term; exit 3' TERM; «pipeline»; kill $$; echo no",
            "(kill -INT $BASHPID; echo no); echo $?; «pipeline»",
            "«source» | («filter»; kill -TERM $BASHPID); echo $?",
            "trap 'echo chld >/dev/null' CHLD; «pipeline»",
        ],
    ),
];
