# The third of four commands that together do the same as tokenizer.awk alone:
#   tr '\000\n' '\001\r' | tr '"' '\n' | awk -f join.awk | awk -v joined=1 -f tokenizer.awk
# The first replaces newlines, so that the second can put the text between two quotation marks on
# a line of its own. A carriage return is white space as a newline is, and as invalid in a string;
# \001 is invalid everywhere. This command joins strings that were split at an escaped quotation
# mark. The input must end with a newline, because a quotation mark in its last byte is not seen.
# To be sure, use: { cat FILE; echo; } | tr ...

inside && substr($0, length($0)) == "\\" && match($0, /\\+$/) && RLENGTH % 2 {
    printf "%s\"", $0
    next
}

{
    print
    inside = !inside
}
