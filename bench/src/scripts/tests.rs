use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use fastrand::Rng;

use super::features::{Feature, Syntax, all};
use super::generate::Script;
use super::grammar::{alternatives, expand};
use super::{files, grammar};

const SEED: u64 = 1;

fn locales() -> Vec<String> {
    vec!["C".to_owned(), "C.UTF-8".to_owned()]
}

/// Returns the names of the rules in a template.
fn rules(template: &str) -> impl Iterator<Item = &str> {
    template.split('«').skip(1).filter_map(|part| part.split_once('»')).map(|(rule, _)| rule)
}

fn templates() -> impl Iterator<Item = &'static str> {
    all().flat_map(|feature| feature.fragments).copied()
}

fn accepts(text: &str) -> bool {
    let mut bash = Command::new("bash");
    bash.args(["-n", "-O", "extglob", "-c", text]).stdin(Stdio::null()).stderr(Stdio::null());
    // For an unclosed here-document, bash only prints a warning.
    bash.status().expect("bash starts").success()
}

#[test]
fn every_rule_and_file_that_a_feature_names_is_known() {
    for template in templates() {
        for rule in rules(template) {
            let known = ["command", "locale"].contains(&rule);
            assert!(known || alternatives(rule).is_some(), "{rule} in {template}");
        }
        assert_eq!(template.matches('«').count(), template.matches('»').count(), "{template}");
    }
    for name in all().flat_map(|feature| feature.files) {
        assert!(files::known(name).is_some(), "{name}");
    }
    let names: BTreeSet<&str> = all().map(|feature| feature.name).collect();
    assert_eq!(names.len(), all().count(), "two features have one name");
}

#[test]
fn bash_accepts_every_fragment_without_deliberate_errors() {
    let mut random = Rng::with_seed(SEED);
    for feature in all() {
        for template in feature.fragments {
            let text = expand(template, &locales(), &mut random);
            let expected = feature.syntax == Syntax::Valid;
            assert_eq!(accepts(&text), expected, "{}: {text}", feature.name);
        }
    }
}

#[test]
fn a_number_of_a_seed_is_the_same_script_every_time() {
    let script = |number| Script::new(SEED, number, &locales());
    assert_eq!(script(7), script(7));
    assert_ne!(script(7).text(), script(8).text());
    assert_ne!(script(7).text(), Script::new(SEED + 1, 7, &locales()).text());
}

#[test]
fn every_feature_is_drawn() {
    let drawn: BTreeSet<&str> =
        (0..3000).flat_map(|number| Script::new(SEED, number, &locales()).features()).collect();
    let missing: Vec<&Feature> = all().filter(|feature| !drawn.contains(feature.name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn features_are_drawn_by_weight() {
    let mut random = Rng::with_seed(SEED);
    let mut plain = 0;
    for _ in 0..2000 {
        let feature = grammar::draw(&mut random, |feature| feature.name.starts_with("pipelines/"));
        plain += usize::from(feature.name == "pipelines/plain");
    }
    let total: u32 =
        all().filter(|f| f.name.starts_with("pipelines/")).map(|feature| feature.weight).sum();
    let expected = 2000 * 12 / total as usize;
    assert!((expected / 2..expected * 2).contains(&plain), "{plain} of 2000");
}
