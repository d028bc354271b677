//! Records: every value reads back, and names are bytes.

use super::*;

/// Names in the order of their bytes, among them those that break collations, padding and C strings.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "\0",
        "\0\0",
        "a",
        "A",
        "a ",
        "a\0b",
        "B",
        "b",
        "ä",
        "a\u{308}",
        "Z",
        "zz",
        "ß",
        "ss",
        "日本",
        "\u{7f}",
        "\u{ffff}",
        "\u{10ffff}",
        "🎮",
        "%",
        "_",
        "'; --",
        "\\",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(128));
    names.push("ä".repeat(64));
    names.push(format!("{}é", "x".repeat(126)));
    names.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    names
}

/// Records with a subscore and without one, and removed ones, in any order and side by side.
pub(crate) fn a_record_replaces_all_of_the_one_before(backend: &dyn Backend) {
    let store = open(backend);
    let record = |score, subscore| Some(Record { score, subscore, at: Micros(score) });
    let (plain, second, gone) = (record(5, 0), record(6, -7), None);
    let keys = [key(1, 0, "a"), key(1, 0, "b")];
    for before in [plain, second, gone] {
        for pair in [[plain, plain], [second, second], [plain, second], [plain, gone], [gone, gone]] {
            for wanted in [[before, before], pair] {
                let rows = scores(keys.iter().cloned().zip(wanted).collect());
                // Read before, or not.
                for plan in [plan_of(keys.to_vec()), ReadSet::default()] {
                    run(&*store, &plan, &mut |_| rows.clone()).unwrap();
                    assert_eq!(store.records(&keys).unwrap(), wanted, "after {before:?}");
                }
            }
        }
    }
}

pub(crate) fn extremes_read_back(backend: &dyn Backend) {
    let store = open(backend);
    let numbers = [i64::MIN, i64::MIN + 1, -1, 0, 1, (1 << 53) + 1, i64::MAX - 1, i64::MAX];
    let mut rows = Vec::new();
    for (row, score) in numbers.into_iter().enumerate() {
        let other = numbers[numbers.len() - 1 - row];
        rows.push((key(1, 0, &format!("{row}")), Some(Record { score, subscore: other, at: Micros(score) })));
    }
    let last = i64::MAX.cast_unsigned();
    let edges = [(0, 0), (0, last), (u32::MAX, 0), (u32::MAX, last)];
    rows.extend(edges.map(|(board, window)| (key(board, window, "edge"), Some(record(7)))));
    let changes = scores(rows);
    write(&*store, &changes).unwrap();
    drop(store);
    let store = open(backend);
    let plan = plan_of(changes.scores.iter().map(|(key, _)| key.clone()).collect());
    let wanted: Vec<_> = changes.scores.iter().map(|(_, record)| *record).collect();
    assert_eq!(load(&*store, &plan).scores, wanted);
    let walked: Vec<_> =
        walk(&*store, BoardNo(1), Window(0), 3).into_iter().map(|(_, record)| record.score).collect();
    assert_eq!(walked, numbers);
    for (board, window) in edges {
        assert_eq!(walk(&*store, BoardNo(board), Window(window), 3), [(key(0, 0, "edge").player, record(7))]);
    }
}

pub(crate) fn a_removed_record_is_gone(backend: &dyn Backend) {
    let store = open(backend);
    write(&*store, &scores(["a", "b", "c"].map(|player| (key(1, 0, player), Some(record(1)))).to_vec()))
        .unwrap();
    write(&*store, &scores(vec![(key(1, 0, "b"), None), (key(1, 0, "not there"), None)])).unwrap();
    let left: Vec<_> =
        walk(&*store, BoardNo(1), Window(0), 9).into_iter().map(|(player, _)| player).collect();
    assert_eq!(left, [key(1, 0, "a").player, key(1, 0, "c").player]);
    assert_eq!(load(&*store, &plan_of(vec![key(1, 0, "b")])).scores, [None]);
    write(&*store, &scores(vec![(key(1, 0, "b"), Some(record(2)))])).unwrap();
    assert_eq!(load(&*store, &plan_of(vec![key(1, 0, "b")])).scores, [Some(record(2))]);
}

pub(crate) fn windows_and_boards_do_not_mix(backend: &dyn Backend) {
    let store = open(backend);
    let places = [(1, 0), (1, 1), (1, 10), (2, 0), (10, 1), (11, 0)];
    let rows = places.iter().enumerate();
    let rows =
        rows.map(|(row, (board, window))| (key(*board, *window, "ann"), Some(record(row as i64)))).collect();
    write(&*store, &scores(rows)).unwrap();
    write(&*store, &scores(vec![(key(1, 1, "ann"), None)])).unwrap();
    for (row, (board, window)) in places.into_iter().enumerate() {
        let found = walk(&*store, BoardNo(board), Window(window), 5);
        let wanted = if row == 1 { vec![] } else { vec![(key(1, 0, "ann").player, record(row as i64))] };
        assert_eq!(found, wanted, "board {board}, window {window}");
    }
}

pub(crate) fn a_walk_goes_by_bytes(backend: &dyn Backend) {
    let store = open(backend);
    let names = names();
    let rows = names.iter().rev().map(|name| (key(1, 0, name), Some(record(1)))).collect();
    write(&*store, &scores(rows)).unwrap();
    let walked = walk(&*store, BoardNo(1), Window(0), 1000);
    let walked: Vec<&str> = walked.iter().map(|(player, _)| player.as_str()).collect();
    assert_eq!(walked, names);
}

pub(crate) fn a_walk_goes_page_by_page(backend: &dyn Backend) {
    let store = open(backend);
    let names = names();
    let rows = names.iter().map(|name| (key(2, 5, name), Some(record(name.len() as i64)))).collect();
    write(&*store, &scores(rows)).unwrap();
    for page in 1..=names.len() + 1 {
        let walked = walk(&*store, BoardNo(2), Window(5), page);
        assert_eq!(walked.len(), names.len(), "pages of {page}");
        assert!(
            walked.iter().zip(&names).all(|((player, _), name)| player.as_str() == name),
            "pages of {page}"
        );
    }
    // From a missing name, and from the last.
    let count = |after: &str, limit| {
        let after = PlayerId::new(after).unwrap();
        store.scan_scores(BoardNo(2), Window(5), Some(&after), limit, &mut |_, _| {}).unwrap()
    };
    let after_y = names.iter().filter(|name| name.as_str() > "y").count();
    assert_eq!(count("y", 1000), after_y);
    assert_eq!(count("\u{10ffff}\u{10ffff}", 1000), 0);
    assert_eq!(count("a", 0), 0);
}

pub(crate) fn names_are_compared_as_bytes(backend: &dyn Backend) {
    let store = open(backend);
    let names = names();
    // One at a time: a store that takes two of them for one would replace.
    for (row, name) in names.iter().enumerate() {
        write(&*store, &scores(vec![(key(1, 0, name), Some(record(row as i64)))])).unwrap();
    }
    let loaded = load(&*store, &plan_of(names.iter().map(|name| key(1, 0, name)).collect())).scores;
    let wanted: Vec<_> = (0..names.len()).map(|row| Some(record(row as i64))).collect();
    assert_eq!(loaded, wanted);
}

pub(crate) fn counting_counts_one_part(backend: &dyn Backend) {
    let store = open(backend);
    let rows =
        (0..300).map(|row| (key(1, u64::from(row % 3 == 0), &format!("{row}")), Some(record(row)))).collect();
    write(&*store, &scores(rows)).unwrap();
    // May be an estimate from above.
    let (all_time, period) =
        (store.count_scores(BoardNo(1), Window(0)), store.count_scores(BoardNo(1), Window(1)));
    assert!(all_time.unwrap() >= 200);
    assert!(period.unwrap() >= 100);
    assert_eq!(store.count_scores(BoardNo(2), Window(0)).unwrap(), 0);
}
