# Tokens, one a line, into calls of three functions that callbacks.awk defines or a user:
#   awk -f parser.awk -f callbacks.awk
# A call is made as soon as its token is there; an error ends the parser with status 1 after
# calls that were right. What is held is a path, at most as many levels deep as -v depth=N says.
# The path of the whole is "@"; every level adds "." and a name with its quotation marks, or a
# number from 0.

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
        fail(NR ? "the text ends too soon, in " path : "there is no text")
    if (failed)
        exit 1 # else an END of the call-backs has its turn
}

function begin() {
    if (level >= depth)
        fail("more than " depth " levels in " substr(path, 1, 60))
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
    # When all escapes that there are have gone, no backslash may be left.
    if (index(text, "\\"))
        gsub(/\\(["\\\/bfnrt]|u[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f])/, "", text)
    return length(text) > 1 && substr(text, length(text)) == "\"" && !index(text, "\\")
}

function unexpected() {
    if (mark == "!") # the tokenizer has said why
        failed = 1
    else
        fail((want == END_OF_TEXT ? "something after the end: " : "unexpected: ") $0)
    exit 1
}

function fail(message) {
    print "parser: token " NR ": " message > "/dev/stderr"
    failed = 1
    exit 1
}
