//! Streams: named pipes, slow and endless sources, odd sizes.

use super::{Feature, feature};

pub(super) const FEATURES: &[Feature] = &[
    feature(
        "streams/fifo-in",
        4,
        &[
            "mkfifo p; «source» >p & «filter» <p | «pipe»; wait",
            "mkfifo p; «source» >p & «filter» p | «pipe»; wait",
            "mkfifo p; («source» | «filter») >p & cat p | «pipe»; wait",
            "mkfifo p; «source» >p & sort p a | «filter»; wait",
            "mkfifo p; «source» >p & «filter» <p >o1; wait; cat o1",
            "mkfifo p q; «source» >p & «source» >q & sort p q | «filter»; wait",
        ],
    ),
    feature(
        "streams/fifo-out",
        4,
        &[
            "mkfifo p; «filter» <p >o1 & «pipeline» >p; wait; cat o1",
            "mkfifo p; «source» | tee p | «filter» >o1 & wc -c <p; wait; cat o1",
            "mkfifo p; «filter» p | «filter» >o1 & «source» | «filter» >p; wait; cat o1",
            "mkfifo p q; «filter» <p >q & «source» >p & «filter» <q; wait",
            "mkfifo fa fb; tr a b <fa >fb & exec 3>fa 4<fb; echo a >&3; exec 3>&-; cat <&4; wait",
            "mkfifo fa fb; sort <fa | tr a b >fb & exec 3>fa; echo a >&3; exec 3>&-; «filter» <fb; wait",
        ],
    ),
    feature(
        "streams/reply",
        3,
        &[
            "mkfifo p; exec 3<>p; (echo 1; read -r x <&3; echo $x) | grep --line-buffered . | while read -r l; do echo \"$l\"; echo reply >&3; done | head -n 2",
            "coproc sed -u s/l/L/; echo l >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l; eval \"exec ${COPROC[1]}>&-\"; wait",
            "mkfifo p; exec 3<>p; (echo 1; read -r x <&3; echo 2) | sed -u s/1/one/ | while read -r l; do echo $l; echo r >&3; done",
            "mkfifo p; exec 3<>p; (echo 1; read -r x <&3; echo 2) | xargs -n1 echo | while read -r l; do echo $l; echo r >&3; done",
            "mkfifo p; exec 3<>p; (echo 1; read -r x <&3; echo 2) | stdbuf -oL tr 1 a | while read -r l; do echo $l; echo r >&3; done",
            "mkfifo p; exec 3<>p; (echo 1; read -r x <&3; echo 2) | cat | while read -r l; do echo $l; echo r >&3; done",
        ],
    ),
    feature(
        "streams/slow",
        4,
        &[
            "«slow» | «pipe»",
            "«slow» | «filter» | «pipe»",
            "«slow» | «filter» | while read -r l; do echo \"<$l>\"; done",
            "{ «slow»; «source»; } | «pipe»",
            "«slow» | head -n 2 | «filter»",
            "«slow» >o1 & «pipeline»; wait; «filter» <o1",
            "«slow» | grep -m 1 . | «filter»",
        ],
    ),
    feature(
        "streams/endless",
        5,
        &[
            "«endless» | head -n 3 | «filter»",
            "«endless» | «flow» | head -n 3",
            "«endless» | «flow» | «flow» | head -n 5 | «filter»",
            "«endless» | «flow» | sed 3q",
            "«endless» | «flow» | grep -m 2 ''",
            "«endless» | «flow» | head -c 100 | wc -c",
            "«endless» | «flow» | { read -r l; echo \"$l\"; }",
            "«endless» | «flow» | awk 'NR == 3 { print; exit }'",
            "tr y n < <(yes) | head -n 2",
            "«endless» | «flow» | head -n 1; echo $?",
            "set -o pipefail; «endless» | «flow» | head -n 1; echo $?",
            "(trap '' PIPE; yes 2>/dev/null | head -n 100000 | «flow» | head -n 1)",
            "tr '\\0' '\\n' </dev/zero | head -c 10 | wc -c",
            "tr '\\0' a </dev/zero | head -c 20; echo",
            "cat /dev/zero | tr '\\0' a | head -c 10; echo",
            "(while printf 'aaaaaaaaaa%0.s' 1 2 3 4 5 6 7; do :; done) 2>/dev/null | tr a b | head -c 20; echo",
            "«endless» | «flow» | true",
        ],
    ),
    feature(
        "streams/big",
        3,
        &[
            "«bigs» | «pipe» | tail -n 3",
            "«filter» <big | «pipe» | tail -n 3",
            "«filter» big | «pipe» | head -n 2",
            "cat big big | «filter» | «pipe» | wc",
            "«filter» <big >o1; wc <o1; cksum o1",
            "sort big | uniq -c | sort -rn | head -n 3",
            "«bigs» | «filter» | sort | «pipe» | cksum",
            "{ head -c 1000; «filter» | cksum; } <big | tail -n 2",
            "(«filter» | cksum) <big; «filter» <big | head -n 1",
        ],
    )
    .with_files(&["big"]),
    feature(
        "streams/odd",
        6,
        &[
            "«filter» <«odd» | «pipe»",
            "«filter» «odd» | «pipe»",
            "cat «odd» «odd» | «filter» | «pipe»",
            "sort «odd» a | «filter»",
            "cat «odd» | «filter» | «pipe»",
            "for f in «odd» «odd»; do «filter» <$f | «filter»; done",
            "«filter» <«odd» | «filter» >o1; wc -c o1; cat o1",
            "printf x | «pipe»; printf '' | «pipe»; printf '\\n\\n' | «pipe»",
        ],
    )
    .with_files(&["nonl", "nul", "bad", "crlf", "blanks", "newlines", "meta"]),
];
