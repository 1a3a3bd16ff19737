# The third of the four commands that are a tokenizer as tokenizer.awk is one:
#   tr '\000\n' '\001\r' | tr '"' '\n' | awk -f join.awk | awk -v joined=1 -f tokenizer.awk
# The first takes newlines out of the way of the second, which makes a line of what stands between
# two quotation marks. A carriage return is white space just as a newline, and just as wrong in
# a string; \001 is wrong everywhere. This one puts strings together again that were parted
# at an escaped mark. The text must end with a newline: a mark that is its last byte is not seen.
# Where that is not certain: { cat FILE; echo; } | tr ...

inside && substr($0, length($0)) == "\\" && match($0, /\\+$/) && RLENGTH % 2 {
    printf "%s\"", $0
    next
}

{
    print
    inside = !inside
}
