"""Reads an export on standard input as other programs do, and prints what they find as JSON.

The argument is the format. Exits with status 3 if a module is missing.
"""

import html.parser
import io
import json
import sys


def csv(text):
    """Returns the columns, their types and the rows, as a data frame has them."""
    import pandas

    frame = pandas.read_csv(io.StringIO(text), float_precision="round_trip")
    cells = frame.astype(object).where(frame.notna(), None)
    return {
        "columns": list(frame.columns),
        "types": [str(kind) for kind in frame.dtypes],
        "rows": cells.values.tolist(),
    }


class Tables(html.parser.HTMLParser):
    """The texts of the cells of all tables, and the names of all elements."""

    def __init__(self):
        super().__init__()
        self.tables, self.elements, self.cell = [], [], None

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
            self.cell = None


def markdown(text):
    import markdown as renderer

    page = renderer.markdown(text, extensions=["tables"])
    tables = Tables()
    tables.feed(page)
    return {"tables": tables.tables, "elements": sorted(set(tables.elements))}


def openmetrics(text):
    """Returns the samples as both formats of Prometheus have them, and the metadata."""
    from prometheus_client.openmetrics import parser as openmetrics_parser
    from prometheus_client import parser as prometheus_parser

    def samples(families):
        return [[one.name, one.labels, float(one.value)] for family in families for one in family.samples]

    families = list(openmetrics_parser.text_string_to_metric_families(text))
    older = list(prometheus_parser.text_string_to_metric_families(text))
    return {
        "families": {one.name: [one.type, one.unit, one.documentation] for one in families},
        "openmetrics": samples(families),
        "prometheus": samples(older),
    }


def main():
    read = {"csv": csv, "markdown": markdown, "openmetrics": openmetrics}[sys.argv[1]]
    text = sys.stdin.buffer.read().decode()
    try:
        found = read(text)
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(3)
    json.dump(found, sys.stdout, default=lambda value: value.item())


main()
