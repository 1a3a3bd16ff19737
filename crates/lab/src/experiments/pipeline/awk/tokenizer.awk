# Splits JSON into tokens, one a line: { } [ ] : , strings with their quotation marks, numbers,
# literals. The parser checks their order.
#
# Records end at quotation marks, so that JSON on a single line streams: memory is bounded by the
# longest text without one. No awk tells whether the last record ended with a quotation mark, and
# some drop NUL bytes silently. The input is therefore read through tr, with a newline appended.
#   -v direct=1   reads the input directly; it must not contain NUL and must end with a newline
#   -v joined=1   reads the output of join.awk: one record a line, strings complete
# After an error, the last line starts with "!", which is not a token, so that no parser mistakes
# the tokens before it for a complete document. The exit status is then 1.

BEGIN {
    nul = sprintf("%c", 0) # empty if this awk cannot store NUL
    RS = joined ? "\n" : "\""
    if (!direct && !joined) {
        guarded = "tr '\\000' '\\001'; echo"
        while ((guarded | getline) > 0)
            piece()
        close(guarded)
        exit
    }
}

{ piece() }

END {
    if (!failed && after_string)
        fail("the input ends in a string, or without a newline")
    exit failed
}

function piece() {
    if (nul != "" && index($0, nul))
        fail("a NUL byte")
    if (inside)
        string()
    else {
        cut($0)
        inside = 1
        after_string = 0
    }
}

# A part of a string: its remainder, unless its quotation mark is escaped.
function string() {
    if ($0 ~ /[\001-\037]/)
        fail("a control character in a string")
    if (!open)
        printf "\""
    after_string = 1
    if (!joined && substr($0, length($0)) == "\\" && match($0, /\\+$/) && RLENGTH % 2) {
        printf "%s\"", $0
        open = 1
        return
    }
    print $0 "\""
    open = inside = 0
}

# The text between two strings. White space separates tokens.
function cut(text) {
    gsub(/[][{}:,]/, "\n&\n", text)
    gsub(/[ \t\r\n]+/, "\n", text)
    sub(/^\n/, "", text)
    sub(/\n$/, "", text)
    if (text != "")
        print text
}

function fail(message) {
    print (open ? "\n!" : "!") message
    print "tokenizer: " message > "/dev/stderr"
    failed = 1
    exit 1
}
