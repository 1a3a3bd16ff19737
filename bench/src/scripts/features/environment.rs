//! Resolution of names: functions, aliases, `hash`, PATH, locales, `eval` and sourced files.

use super::{Feature, feature};

pub(super) const FEATURES: &[Feature] = &[
    feature(
        "environment/functions",
        4,
        &[
            "sort() { command sort -r; }; «source» | sort | «filter»",
            "grep() { echo mine; cat >/dev/null; }; «source» | grep a | tr a b",
            "cat() { tac; }; cat a | «filter»; «source» | cat | «filter»",
            "tr() { sed s/a/X/; }; «source» | tr a b; unset -f tr; «source» | tr a b",
            "sort() { tr a-z A-Z; }; export -f sort; bash -c 'echo x | sort'; echo y | sort",
            "head() { command head -n 1 \"$@\"; }; sort a | head",
            "f() { sort() { cat -n; }; }; f; «source» | sort | «filter»",
            "if true; then uniq() { echo U; }; fi; sort a | uniq",
        ],
    ),
    feature(
        "environment/aliases",
        3,
        &[
            "shopt -s expand_aliases\nalias sort='sort -r'\n«source» | sort | «filter»",
            "shopt -s expand_aliases\nalias g='grep a'\n«source» | g | «filter»",
            "alias tr='echo'; «source» | tr a b",
            "shopt -s expand_aliases\nalias up='tr a-z A-Z | sort'\n«source» | up",
            "shopt -s expand_aliases\nalias cat='tac '\ncat a | «filter»\nunalias cat\ncat a | «filter»",
        ],
    ),
    feature(
        "environment/hash",
        3,
        &[
            "hash -p $PWD/fake/sort sort; «source» | sort | cat",
            "hash -p $PWD/fake/sort sort; sort a",
            "hash -p /nonexistent/tr tr; «source» | tr a b; echo $?",
            "hash sort; PATH=$PWD/fake:$PATH; «source» | sort | «filter»",
            "hash -r; «pipeline»; hash -d cat 2>/dev/null; «pipeline»",
            "enable -n echo; echo x | «filter»",
        ],
    )
    .with_files(&["fake/sort"]),
    feature(
        "environment/path",
        4,
        &[
            "PATH=$PWD/fake:$PATH; «source» | sort | «filter»",
            "PATH=fake:$PATH; «source» | sort | «filter»",
            "export PATH=/nonexistent; sort a | /usr/bin/head -n 1; echo $?",
            "PATH=/nonexistent; «source» | «filter»; echo $?",
            "PATH=; sort a | «filter»; echo $?",
            "unset PATH; sort a | «filter»; echo $?",
            "(PATH=fake:$PATH; «source» | sort); «source» | sort",
            "cd dir; PATH=../fake:$PATH; sort x | «filter»; cd ..; sort a | «filter»",
            "f() { local PATH=fake:$PATH; «source» | sort; }; f; sort a | head -n 1",
            "/usr/bin/sort a | «filter»; command sort a | «filter»; command -p sort a | «filter»",
            "env sort a | «filter»; \\sort a | «filter»; exec -a x sort a | «filter»",
        ],
    )
    .with_files(&["fake/sort", "dir/x"]),
    feature(
        "environment/locale",
        5,
        &[
            "LC_ALL=C; «pipeline»",
            "export LC_ALL=C.UTF-8; «pipeline»",
            "export LC_ALL=C; «source» | sort | «filter»",
            "export LC_ALL=«locale»; «source» | sort | «filter»",
            "LC_ALL=«locale» sort a | «filter»; «source» | LC_ALL=«locale» «filter» | «filter»",
            "unset LC_ALL; LC_COLLATE=«locale» sort input | «filter»",
            "unset LC_ALL; export LANG=«locale» LC_CTYPE=C; «source» | «filter» | sort -f",
            "export LC_ALL=«locale»; tr '[:lower:]' '[:upper:]' <input | «filter»",
            "export LC_ALL=«locale»; grep -ic '[a-z]é*' input; sort -f input | uniq -i | wc -l",
            "export LC_ALL=«locale»; LC_NUMERIC=C; sort -n b | «filter»; awk '{ print $1 * 1.5 }' b | «filter»",
        ],
    ),
    feature(
        "environment/eval",
        4,
        &[
            "eval '«bare»'",
            "c='sort a | head -n 2'; eval \"$c\" | «filter»",
            "eval \"v=1; «bare»\"; echo $v",
            "eval 'f() { sort a | head -n 1; }'; f | «filter»",
            "bash -c '«bare»' | «filter»",
            "echo '«bare»' | bash",
            "sh -c 'sort a | head -n 2' | «filter»",
            "eval eval echo a '|' «filter»",
        ],
    ),
    feature(
        "environment/source",
        4,
        &[
            ". ./lib.sh; filter_a <a | «filter»",
            "source ./lib.sh; echo $from_lib | «filter»",
            ". ./lib.sh >o1; cat o1",
            ". ./pipes.sh | «filter»",
            ". ./pipes.sh <b; echo $?",
            "source <(echo 'sort a | head -n 1')",
            ". ./nofile; echo here $?",
            ". ./pipes.sh x y; echo $# | «filter»",
            "bash ./pipes.sh | «filter»; ./pipes.sh | «filter»",
            "«source» | . ./lib.sh; echo ${from_lib-unset}",
        ],
    )
    .with_files(&["lib.sh", "pipes.sh"]),
    feature(
        "environment/exec",
        2,
        &[
            "exec sort a",
            "(exec sort a) | «filter»; echo $?",
            "«source» | exec «filter» | «filter»",
            "exec nosuchcommand; echo here",
            "«source» | command «filter» | builtin echo x",
            "nice sort a | «filter»; nohup sort a 2>/dev/null | «filter»; timeout 5 sort a | «filter»",
            "exit 3 | «filter»; echo $?; exit 7; «pipeline»",
            "return 3 2>/dev/null; «pipeline»",
            "ulimit -n 64; «pipeline»",
            "env -i /usr/bin/sort a | «filter»; xargs sort <<<a | «filter»",
        ],
    ),
];
