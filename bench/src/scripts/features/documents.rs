//! Here-documents and here-strings.

use super::{Feature, feature};

pub(super) const FEATURES: &[Feature] = &[
    feature(
        "documents/unquoted",
        4,
        &[
            "v=word; «filter» <<E | «pipe»\n$v one\n$(echo two)\n\\$v `echo three`\nE",
            "«filter» <<E\na\nb\n  c $((1 + 2))\nE",
            "cat <<E | «pipe»\n${nope-default} a\nb\nE",
            "«filter» <<E >o1\nz\ny\nE\ncat o1",
            "«filter» <<E | «filter»\nE",
            "«source» | «filter» <<E | «pipe»\nin the document\nE",
            "sort <<E | sort - a | «filter»\nb\nE",
            "«filter» <<E | «pipe»\nback\\\nslash\nE",
            "«filter» <<E && «filter» <<F\nb\na\nE\nc\nF",
            "«filter» <<E | sort - <(«filter» <<F\nq\nF\n)\nb\na\nE",
            "sort <<E | «filter»\n$(«source» | «filter»)\nE",
        ],
    ),
    feature(
        "documents/quoted",
        4,
        &[
            "«filter» <<'E' | «pipe»\n$v `x` \\ $(y)\nb\nE",
            "«filter» <<\"E\" | «pipe»\n${nope?}\nE",
            "«filter» <<\\E | «filter»\n$v\nE",
            "{ «filter» | «filter»; } <<'E'\nb \\\na\nE",
            "while read -r l; do echo \"$l\" | «filter»; done <<'E'\n1 \\x\n2 $y\nE",
        ],
    ),
    feature(
        "documents/tabs",
        2,
        &[
            "«filter» <<-E | «pipe»\n\t\tone\n\ttwo\n\tE",
            "if true; then\n\t«filter» <<-'E' | «pipe»\n\t$one\n\t\ttwo\n\tE\nfi",
        ],
    ),
    feature(
        "documents/several",
        3,
        &[
            "sort <<A <<B | «filter»\n1\nA\n2\nB",
            "sort <<A | sort - /dev/fd/3 3<<B\n1\nA\n2\nB",
            "cat /dev/fd/3 <<A 3<<B | «pipe»\n1\nA\n2\nB",
            "sort <<A <b | «filter»\n1\nA",
            "sort <b <<A | «filter»\n1\nA",
            "f() { «filter» <<A | «filter»\n$1\nA\n}; f x; f y",
        ],
    ),
    feature(
        "documents/strings",
        5,
        &[
            "«filter» <<<«word» | «pipe»",
            "«filter» <<<\"b\na\" | «pipe»",
            "v='b  a'; «filter» <<<$v | «pipe»",
            "v='b  a'; «filter» <<<\"$v\" | «pipe»",
            "«filter» <<<\"$(«pipeline»)\" | «filter»",
            "«filter» <<<'' | «filter»",
            "«filter» <<<$nope | wc -c",
            "«filter» <<<$'a\\tb\\nc' | «pipe»",
            "«filter» <<<* | «filter»",
            "«filter» <<<{a,b} | «filter»",
            "read -r l <<<\"x y\"; echo \"$l\" | «filter»",
            "«source» | «filter» <<<over | «filter»",
            "<<<x «filter» | «filter»",
        ],
    ),
];
