use super::*;

const SEED: u64 = 1;

fn bytes(file: &str, size: u64, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let written = find(file).expect("it is in the table").write(size, seed, &mut out);
    assert_eq!(written.expect("a vector takes all"), out.len() as u64, "{file}");
    out
}

fn text(file: &str, size: u64) -> String {
    String::from_utf8(bytes(file, size, SEED)).expect("all inputs are UTF-8")
}

/// Checks that inputs stay the same: a changed input would invalidate every measurement with it.
#[test]
fn the_bytes_of_a_seed_never_change() {
    let found: Vec<String> = TABLE
        .iter()
        .map(|input| {
            let bytes = bytes(input.file, 100_000, SEED);
            format!("{} {} {:016x}", input.file, bytes.len(), fingerprint(&bytes))
        })
        .collect();
    assert_eq!(found, COMMITTED, "{found:#?}");
}

const COMMITTED: [&str; 17] = [
    "text.txt 99961 1be2ddf4368f871c",
    "world.txt 99935 f5ecdcab3386c998",
    "access.log 99968 cc2867c68f4d9e72",
    "syslog 99968 97f9ffcf7caa74c5",
    "metrics.log 99990 ca574a0629148a87",
    "orders.csv 99988 28f2e0bd02bec926",
    "orders.tsv 99959 bb83826b6557cc81",
    "passwd 99983 8696d0c52e441198",
    "events.jsonl 99978 e2afee00a9c2bfb0",
    "events.json 99996 ccd75cb49b099032",
    "data.b64 99946 ec9ad98006e7afba",
    "numbers.txt 99992 35b1193eec9d8007",
    "people.tsv 100000 16b63b6290ad05ca",
    "games.pgn 99914 5ad4eda007a0c0dc",
    "mail.mbox 99942 d5f8c397b45af412",
    "weather.txt 99900 3390d2b019818c96",
    "words.txt 99997 d175881d9469dec9",
];

#[test]
fn another_seed_gives_other_bytes_and_the_same_seed_the_same() {
    for input in &TABLE {
        assert_eq!(bytes(input.file, 10_000, 7), bytes(input.file, 10_000, 7), "{}", input.file);
        assert_ne!(bytes(input.file, 10_000, 7), bytes(input.file, 10_000, 8), "{}", input.file);
    }
}

#[test]
fn a_file_has_nearly_the_requested_size_and_whole_records() {
    for input in &TABLE {
        let bytes = bytes(input.file, 50_000, SEED);
        assert!((49_000..=50_000).contains(&bytes.len()), "{}: {}", input.file, bytes.len());
        assert_eq!(bytes.last(), Some(&b'\n'), "{}", input.file);
    }
}

#[test]
fn a_shorter_file_of_lines_is_a_prefix_of_a_longer_one() {
    for input in TABLE.iter().filter(|input| input.file != "events.json") {
        let (short, long) = (bytes(input.file, 5000, SEED), bytes(input.file, 20_000, SEED));
        assert!(long.starts_with(&short), "{}", input.file);
    }
}

#[test]
fn an_input_shorter_than_a_record_is_empty() {
    for input in &TABLE {
        assert!(bytes(input.file, 1, SEED).is_empty(), "{}", input.file);
    }
}

#[test]
fn words_are_skewed_and_mixed_in_case() {
    let text = text("text.txt", 200_000);
    let count = |word| text.split_whitespace().filter(|&other| other == word).count();
    assert!(count("the") > 2 * count("with") && count("with") > 0);
    assert!(text.lines().any(|line| line.starts_with(char::is_uppercase)));
    assert!(text.lines().any(str::is_empty), "paragraphs");
    assert!(text.is_ascii() && text.lines().all(|line| line.len() < 100));
}

#[test]
fn the_text_of_the_world_has_letters_of_two_three_and_four_bytes() {
    let text = text("world.txt", 50_000);
    for length in 1..=4 {
        assert!(text.chars().any(|letter| letter.len_utf8() == length), "{length}");
    }
    assert!(text.contains('\u{301}'), "a combining accent");
}

#[test]
fn requests_are_in_combined_format() {
    let text = text("access.log", 500_000);
    for line in text.lines() {
        assert_eq!(line.matches('"').count(), 6, "{line}");
        let status = line.split(' ').nth(8).and_then(|field| field.parse::<u16>().ok());
        assert!(status.is_some_and(|status| (200..600).contains(&status)), "{line}");
    }
    let with = |status: &str| text.matches(&format!("\" {status} ")).count();
    assert!(with("200") > 10 * with("404") && with("404") > with("500"));
}

#[test]
fn tables_have_the_documented_number_of_fields() {
    let quoted = text("orders.csv", 100_000);
    assert!(quoted.contains("\"Monitor 27\"\"\"") && quoted.contains("\"Keyboard, wireless\""));
    for line in text("orders.tsv", 100_000).lines() {
        assert_eq!(line.split('\t').count(), 7, "{line}");
    }
    for line in text("passwd", 100_000).lines().filter(|line| !line.starts_with('#')) {
        assert_eq!(line.split(':').count(), 7, "{line}");
    }
    assert!(text("passwd", 100_000).lines().any(|line| line.starts_with('#')));
}

#[test]
fn events_are_json_in_both_forms() {
    let lines = text("events.jsonl", 100_000);
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(events.iter().any(|event| event["note"] == "said \"hello\""));
    let array: Vec<serde_json::Value> =
        serde_json::from_str(&text("events.json", 100_000)).expect("an array");
    assert!(array.len() > 300 && array.iter().all(|event| event["user"]["id"].is_u64()));
    assert_eq!(text("events.json", 100_000).lines().count(), 1);
}

#[test]
fn every_line_of_other_files_has_the_same_format() {
    assert!(text("numbers.txt", 50_000).lines().all(|line| line.parse::<i64>().is_ok()));
    assert!(text("data.b64", 50_000).lines().all(|line| line.len() == 76));
    assert!(text("syslog", 50_000).lines().all(|line| line.starts_with("Jan ")));
    assert!(text("metrics.log", 50_000).lines().all(|line| line.matches('=').count() == 7));
}

#[test]
fn temperatures_are_in_their_columns() {
    for line in text("weather.txt", 50_000).lines() {
        assert!(line[15..19].parse::<u16>().is_ok_and(|year| year >= 2015), "{line}");
        let tenths = line[87..92].parse::<i32>().expect(line);
        assert!(tenths == 9999 || (-150..=330).contains(&tenths), "{line}");
    }
}

#[test]
fn words_are_sorted_and_distinct() {
    let text = text("words.txt", 200_000);
    let words: Vec<&str> = text.lines().collect();
    assert!(words.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn repeated_blocks_are_whole_and_start_like_the_file() {
    const SIZE: u64 = 125_000_000;
    let input = find("people.tsv").expect("it is in the table");
    let mut out = Vec::new();
    folder::repeated(input, SIZE, SEED, &mut out).expect("a vector takes all");
    assert!(out.len() as u64 <= SIZE && out.len() as u64 > SIZE - 10_000_000);
    assert!(out.starts_with(&bytes("people.tsv", 100_000, SEED)) && out.ends_with(b"\n"));
}
