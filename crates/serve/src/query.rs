//! Queries and forms: the search of the list, runs to compare, and labels.

use contend_record::{doctor, lab, pipe, run, versus};
use contend_report::store::Filter;

/// Number of runs on a page of the list.
pub const PAGE_RUNS: usize = 50;

/// Largest number of runs in a comparison.
const MAX_COMPARED: usize = 20;

/// Kinds of runs by which the list can be filtered, with the schemas of their records.
pub const KINDS: [(&str, &str); 5] = [
    ("pipe", pipe::SCHEMA),
    ("versus", versus::SCHEMA),
    ("run", run::SCHEMA),
    ("doctor", doctor::SCHEMA),
    ("lab", lab::SCHEMA),
];

/// A search in the list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Conditions on the runs.
    pub filter: Filter,
    /// Number of the page, from 1 for the newest runs.
    pub page: usize,
}

impl Search {
    /// Reads a search from a query such as `command=sort&page=2`. Ignores unknown names, and empty values, as
    /// forms send them.
    ///
    /// # Errors
    /// Returns a message if a value is wrong.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut search = Self { filter: Filter::default(), page: 1 };
        let filter = &mut search.filter;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if value.is_empty() {
                continue;
            }
            let value = value.into_owned();
            match name.as_ref() {
                "command" => filter.title = Some(value),
                "host" => filter.host = Some(value),
                "label" => filter.label = Some(value),
                "since" => filter.since = Some(date(value)?),
                "until" => filter.until = Some(date(value)?),
                "kind" => {
                    let kind = KINDS.iter().find(|(name, _)| *name == value);
                    let (_, schema) = kind.ok_or_else(|| format!("no kind of run '{value}'"))?;
                    filter.schema = Some((*schema).to_owned());
                }
                "page" => {
                    let number = value.parse().ok().filter(|&number| number > 0);
                    search.page = number.ok_or_else(|| format!("no page '{value}'"))?;
                }
                _ => {}
            }
        }
        Ok(search)
    }

    /// Returns the query of another page of the same search.
    pub fn query_of_page(&self, page: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.fields() {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        query.finish()
    }

    /// Returns the name of the kind of runs that are searched for; empty for all.
    pub fn kind(&self) -> &'static str {
        let kind = |schema: &String| KINDS.iter().find(|(_, known)| known == schema);
        self.filter.schema.as_ref().and_then(kind).map_or("", |(name, _)| name)
    }

    fn fields(&self) -> [(&'static str, Option<&str>); 6] {
        let Filter { title, host, label, since, until, .. } = &self.filter;
        let kind = Some(self.kind()).filter(|kind| !kind.is_empty());
        [
            ("command", title.as_deref()),
            ("kind", kind),
            ("host", host.as_deref()),
            ("label", label.as_deref()),
            ("since", since.as_deref()),
            ("until", until.as_deref()),
        ]
    }

    /// Returns the number of runs on newer pages.
    pub fn skipped(&self) -> usize {
        (self.page - 1).saturating_mul(PAGE_RUNS)
    }
}

/// Checks a date as browsers send it, such as `2026-01-31`.
fn date(text: String) -> Result<String, String> {
    let fits = |(found, form): (u8, u8)| match form {
        b'0' => found.is_ascii_digit(),
        form => found == form,
    };
    let is_date = text.len() == 10 && text.bytes().zip(*b"0000-00-00").all(fits);
    if is_date { Ok(text) } else { Err(format!("'{text}' is not a date such as 2026-01-31")) }
}

/// Returns the numbers of the runs to compare from a query such as `run=3&run=7`, in ascending order, each
/// once.
///
/// # Errors
/// Returns a message if a number is wrong, or there are fewer than two or too many.
pub fn compared(query: &str) -> Result<Vec<i64>, String> {
    let mut runs = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name == "run" {
            let number = value.trim().parse().ok().filter(|&number: &i64| number > 0);
            runs.push(number.ok_or_else(|| format!("'{value}' is not the number of a run"))?);
        }
    }
    runs.sort_unstable();
    runs.dedup();
    match runs.len() {
        0 | 1 => Err("select at least two runs to compare".to_owned()),
        2..=MAX_COMPARED => Ok(runs),
        _ => Err(format!("at most {MAX_COMPARED} runs can be compared at once")),
    }
}

/// Returns the label in the body of a form; `None` if the form has no label.
pub fn label(body: &[u8]) -> Option<String> {
    let mut fields = form_urlencoded::parse(body);
    fields.find(|(name, _)| name == "label").map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_survives_its_query() {
        let query = "command=sort+-u+%26+%3C&kind=pipe&host=h&label=&since=2026-01-02&page=3&x=y";
        let search = Search::parse(query).expect("a search");
        assert_eq!(search.filter.title.as_deref(), Some("sort -u & <"));
        assert_eq!(search.filter.schema.as_deref(), Some("contend.pipe/1"));
        assert_eq!((search.filter.label.as_deref(), search.page), (None, 3));
        assert_eq!((search.kind(), search.skipped()), ("pipe", 2 * PAGE_RUNS));
        let again = Search::parse(&search.query_of_page(3)).expect("a search");
        assert_eq!(again, search);
        assert!(!search.query_of_page(1).contains("page"));
        assert_eq!(Search::parse("").expect("a search").filter, Filter::default());
    }

    #[test]
    fn wrong_values_are_named() {
        assert_eq!(Search::parse("kind=pip"), Err("no kind of run 'pip'".to_owned()));
        for page in ["0", "-1", "x", "99999999999999999999"] {
            assert_eq!(Search::parse(&format!("page={page}")), Err(format!("no page '{page}'")));
        }
        for date in ["2026-01", "2026-01-0x", "2026-01-02T03", "<b>"] {
            assert!(Search::parse(&format!("since={date}")).is_err_and(|e| e.contains("a date")));
        }
        let far = Search::parse("page=18446744073709551615").expect("a number");
        assert_eq!(far.skipped(), usize::MAX);
    }

    #[test]
    fn runs_to_compare_are_distinct() {
        assert_eq!(compared("run=7&run=3&run=7&x=1"), Ok(vec![3, 7]));
        assert!(compared("run=7&run=7").is_err() && compared("").is_err());
        assert_eq!(compared("run=1&run=x"), Err("'x' is not the number of a run".to_owned()));
        let many: Vec<_> = (1..=MAX_COMPARED + 1).map(|run| format!("run={run}")).collect();
        assert!(compared(&many.join("&")).is_err());
    }

    #[test]
    fn a_label_may_be_empty() {
        assert_eq!(label(b"label=+a%3Cb+"), Some("a<b".to_owned()));
        assert_eq!(label(b"label="), Some(String::new()));
        assert_eq!(label(b"name=x"), None);
    }
}
