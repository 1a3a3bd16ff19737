# JSON into tokens, one a line: { } [ ] : , strings with their quotation marks, numbers, literals.
# Whether they are in an order that JSON knows is the parser's affair.
#
# Read in pieces that end at a quotation mark, a text on one line streams: what is held is the
# longest piece without one. No awk tells whether the last piece had its mark, and some lose NUL
# bytes without a word. Therefore the text comes through tr, with a newline after it. With
#   -v direct=1   it is read without help: it must be free of NUL and end with a newline;
#   -v joined=1   it is what join.awk writes: a piece a line, strings whole.
# After an error the last line begins with "!", which is no token: no parser can take what came
# before for a whole. The status is then 1.

BEGIN {
    nul = sprintf("%c", 0) # empty where an awk cannot hold it
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
        fail("the text ends in a string, or has no newline after it")
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

# A part of a string: the whole rest of it, unless its quotation mark is escaped.
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

# What is between two strings. White space parts words, but is nothing by itself.
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
