# What the parser calls. Replace these three to do something else with a text:
# path   where it is, such as @."menu"."popup"."menuitem".0
# mark   { or [ at the beginning, } or ] at the end
# value  as it stands in the text, a string with its quotation marks
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
