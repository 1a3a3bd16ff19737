//! Jobs in the background, coprocesses and waiting for them.

use super::{Feature, feature};

pub(super) const FEATURES: &[Feature] = &[
    feature(
        "background/wait",
        6,
        &[
            "«pipeline» >o1 & wait; cat o1",
            "«pipeline» >o1 & wait $!; echo $?; cat o1",
            "«pipeline» >o1 &\n«pipeline» >o2 &\nwait; cat o1 o2",
            "«pipeline» & wait",
            "for i in 1 2 3; do «source» | «filter» >o$i & done; wait; cat o1 o2 o3",
            "«pipeline» >o1 & p=$!; «pipeline»; wait $p; echo $?; cat o1",
            "{ «pipeline»; } >o1 & wait; cat o1",
            "(«pipeline») >o1 & wait; cat o1",
            "«source» | (exit 5) & wait $!; echo $?",
            "f() { «pipeline»; }; f >o1 & wait; cat o1",
            "«pipeline» >o1 & wait -n; echo $?",
            "(«pipeline» >o1 & wait); cat o1",
            "«source» | «filter» | sort -o o1 & jobs -p | wc -l; wait; cat o1",
        ],
    ),
    feature(
        "background/stdin",
        5,
        &[
            "«filter» | «filter» & wait",
            "«filter» | «pipe» & wait",
            "cat | «filter» >o1 & wait; cat o1",
            "«filter» & wait",
            "«filter» <&0 | «filter» & wait",
            "{ «filter» | «filter»; } & wait",
            "(«filter» | «filter») & wait",
            "f() { «filter» | «filter»; }; f & wait",
            "«filter» <a | «filter» & wait",
            "{ cat & wait; } | «filter»",
        ],
    ),
    feature(
        "background/lists",
        2,
        &[
            "«pipeline» >o1 && «pipeline» >o2 & wait; cat o1 o2",
            "«pipeline» >o1 & «pipeline»; wait; wc -c o1",
            "sleep 0.05 && «pipeline» & wait",
            "«pipeline» >o1 & disown; sleep 0.2; cat o1",
        ],
    ),
    feature(
        "background/kill",
        2,
        &[
            "(sleep 5 | «filter») & sleep 0.05; kill $!; wait $! 2>/dev/null; echo $?",
            "sleep 5 & kill $!; wait $! 2>/dev/null; echo $?; «pipeline»",
            "yes | tr y n >/dev/null & sleep 0.05; kill $! ; wait $! 2>/dev/null; echo $?",
            "(trap 'echo term; exit 3' TERM; «pipeline» >/dev/null; kill $BASHPID; echo no); echo $?",
        ],
    ),
    feature(
        "background/coproc",
        3,
        &[
            "coproc «filter»; exec 3>&${COPROC[1]}-; «source» >&3; exec 3>&-; cat <&${COPROC[0]} | «filter»",
            "coproc C { «filter» | «filter»; }; exec 4<&${C[0]}; eval \"exec ${C[1]}>&-\"; cat <&4; wait",
            "coproc cat; echo x >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo \"$l\" | «filter»; eval \"exec ${COPROC[1]}>&-\"; wait",
        ],
    ),
];
