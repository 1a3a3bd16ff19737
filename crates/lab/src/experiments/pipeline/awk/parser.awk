# Parses tokens, one a line, and calls three functions, from callbacks.awk or a user's file:
#   awk -f parser.awk -f callbacks.awk
# Each function is called as soon as its token is read. On an error, the parser exits with status 1;
# the calls before it were correct. Memory is bounded by the path, whose depth -v depth=N limits.
# The path of the root is "@"; every level adds "." and a name with its quotation marks, or an
# index from 0.

BEGIN {
    depth = depth ? depth : 1000
    VALUE = 1; FIRST = 2; NAME = 3; FIRST_NAME = 4; COLON = 5; COMMA = 6; END_OF_TEXT = 7
    want = VALUE
    path = "@"
    level = 0
}

{
    mark = substr($0, 1, 1)
    if (mark == "\"") {
        if (!is_string($0))
            fail("not a string: " $0)
        if (want <= FIRST) {
            json_value(path, $0, "string")
            done()
        } else if (want <= FIRST_NAME) {
            path = outer[level] "." $0
            want = COLON
        } else
            unexpected()
    } else if (mark == ":") {
        if (want != COLON || $0 != ":")
            unexpected()
        want = VALUE
    } else if (mark == ",") {
        if (want != COMMA || $0 != ",")
            unexpected()
        if (kind[level] == "{")
            want = NAME
        else {
            path = outer[level] "." (++item[level])
            want = VALUE
        }
    } else if (mark == "{" || mark == "[") {
        if (want > FIRST || $0 != mark)
            unexpected()
        begin()
    } else if (mark == "}" || mark == "]") {
        if ($0 != mark || !may_end())
            unexpected()
        path = outer[level]
        json_end(path, $0)
        level--
        done()
    } else {
        if (want > FIRST)
            unexpected()
        if ($0 ~ /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$/)
            json_value(path, $0, "number")
        else if ($0 == "true" || $0 == "false" || $0 == "null")
            json_value(path, $0, "literal")
        else
            unexpected()
        done()
    }
}

END {
    if (!failed && want != END_OF_TEXT)
        fail(NR ? "unexpected end of input in " path : "the input is empty")
    if (failed)
        exit 1 # otherwise an END block of the callbacks would run
}

function begin() {
    if (level >= depth)
        fail("nested deeper than " depth " levels: " substr(path, 1, 60))
    json_begin(path, mark)
    outer[++level] = path
    kind[level] = mark
    if (mark == "[") {
        item[level] = 0
        path = path ".0"
        want = FIRST
    } else
        want = FIRST_NAME
}

function done() {
    want = level ? COMMA : END_OF_TEXT
}

function may_end() {
    if (mark == "}")
        return kind[level] == "{" && (want == COMMA || want == FIRST_NAME)
    return kind[level] == "[" && (want == COMMA || want == FIRST)
}

function is_string(text) {
    # After all valid escapes are removed, no backslash may remain.
    if (index(text, "\\"))
        gsub(/\\(["\\\/bfnrt]|u[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f])/, "", text)
    return length(text) > 1 && substr(text, length(text)) == "\"" && !index(text, "\\")
}

function unexpected() {
    if (mark == "!") # the tokenizer has printed the error
        failed = 1
    else
        fail((want == END_OF_TEXT ? "trailing data: " : "unexpected: ") $0)
    exit 1
}

function fail(message) {
    print "parser: token " NR ": " message > "/dev/stderr"
    failed = 1
    exit 1
}
