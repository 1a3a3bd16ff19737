# The functions that the parser calls. Replace these three to process JSON differently:
# path   of the value, such as @."menu"."popup"."menuitem".0
# mark   { or [ in json_begin, } or ] in json_end
# value  as in the input; strings include their quotation marks
# type   "string", "number" or "literal" (true, false, null)

function json_begin(path, mark) {
    print path " <=> " mark
}

function json_value(path, value, type) {
    print path ": " value
}

function json_end(path, mark) {
    print path " <=> " mark
}
