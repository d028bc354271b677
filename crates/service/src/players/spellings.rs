//! Names that begin with what was typed, in letters of any case, from a source that lists names by their first bytes.
//!
//! Such a source is a range of a primary key, and one read has one spelling. A spelling of the first letters that few names have is read
//! whole. Only one that many have is divided by its next letter. So there is a read for each spelling that is there, and not for each
//! that could be.
//!
//! Not here: where the names are (`search`).

use crate::failure::Failure;

/// What was typed: the spellings of each letter.
pub(super) struct Spellings(Vec<Vec<String>>);

impl Spellings {
    /// As it is typed, in small letters and in capitals.
    pub(super) fn of(typed: &str) -> Self {
        let letter = |letter: char| {
            let (small, capital) = (letter.to_lowercase().collect(), letter.to_uppercase().collect());
            let mut all = vec![letter.to_string(), small, capital];
            all.sort_unstable();
            all.dedup();
            all
        };
        Self(typed.chars().map(letter).collect())
    }

    /// Passes rows whose names begin so; returns whether there are no others.
    ///
    /// `read` lists at most so many rows whose names begin with a text; its last argument says that nothing more was typed. `None`
    /// says that it cannot look for this text. At most `limit` rows of a spelling are passed, and one more. `reads` are left for it
    /// and what comes after it.
    pub(super) fn each<T>(
        &self,
        limit: usize,
        reads: &mut usize,
        mut read: impl FnMut(&str, usize, bool) -> Result<Option<Vec<T>>, Failure>,
        name: impl Fn(&T) -> &str,
        mut found: impl FnMut(T),
    ) -> Result<bool, Failure> {
        let mut complete = true;
        let mut many = vec![String::new()];
        for (at, letter) in self.0.iter().enumerate() {
            let is_whole = at + 1 == self.0.len();
            for before in std::mem::take(&mut many) {
                for spelling in letter {
                    let Some(left) = reads.checked_sub(1) else { return Ok(false) };
                    *reads = left;
                    let text = format!("{before}{spelling}");
                    match read(&text, limit + 1, is_whole)? {
                        Some(rows) if is_whole || rows.len() <= limit => {
                            complete &= rows.len() <= limit;
                            rows.into_iter().filter(|row| begins(&self.0, name(row))).for_each(&mut found);
                        }
                        None if is_whole => {}
                        _ => many.push(text),
                    }
                }
            }
        }
        Ok(complete)
    }
}

fn begins(letters: &[Vec<String>], name: &str) -> bool {
    let Some((letter, rest)) = letters.split_first() else { return true };
    letter.iter().any(|spelling| name.strip_prefix(&**spelling).is_some_and(|name| begins(rest, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found among sorted names, whether there are no others, and how many reads it took.
    fn find(names: &[String], typed: &str, limit: usize, reads_max: usize) -> (Vec<String>, bool, usize) {
        let (mut found, mut reads) = (Vec::new(), reads_max);
        let read = |text: &str, most: usize, _| {
            let begin = names.iter().filter(|name| name.starts_with(text));
            Ok(Some(begin.take(most).cloned().collect()))
        };
        let each =
            Spellings::of(typed).each(limit, &mut reads, read, |name: &String| name, |name| found.push(name));
        let complete = each.unwrap();
        found.sort();
        (found, complete, reads_max - reads)
    }

    fn named(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        names.sort();
        names
    }

    #[test]
    fn letters_of_any_case_are_found() {
        let names = named(&[
            "McGinn",
            "MCGINN",
            "mcginn",
            "Mcg",
            "xXSlayerXx",
            "Straße",
            "STRASSE",
            "Émile",
            "김민수",
        ]);
        for (typed, wanted) in [
            ("mcginn", &["MCGINN", "McGinn", "mcginn"][..]),
            ("MCG", &["MCGINN", "McGinn", "Mcg", "mcginn"]),
            ("XXSLAYERXX", &["xXSlayerXx"]),
            ("strasse", &["STRASSE"]),
            ("straße", &["STRASSE", "Straße"]),
            ("éM", &["Émile"]),
            ("김", &["김민수"]),
            ("ginn", &[]),
        ] {
            let found = find(&names, typed, 20, 100);
            assert_eq!((&found.0[..], found.1), (&named(wanted)[..], true), "{typed}");
        }
    }

    #[test]
    fn only_spellings_of_many_names_are_divided() {
        let mut names: Vec<String> = (0..1_000).map(|number| format!("Maria{number}")).collect();
        names.extend(named(&["MAX", "maX9", "mallory"]));
        names.sort();
        // Two spellings of each letter, after `M`, `Ma`, `Mar` and `Mari` alone; one of each digit. One row more tells of others.
        let (found, complete, reads) = find(&names, "maria77", 5, 100);
        assert_eq!((found.len(), complete, reads), (6, false, 2 + 4 * 2 + 1 + 1));
        assert_eq!(find(&names, "max", 5, 100), (named(&["MAX", "maX9"]), true, 2 + 2 + 2));
        assert!(!find(&names, "mar", 5, 100).1, "there are more");
    }

    #[test]
    fn reads_have_a_bound() {
        let name = |bits: u32| (0..6).map(|at| if bits >> at & 1 == 1 { 'A' } else { 'a' }).collect();
        let mut names: Vec<String> = (0..64).map(name).collect();
        names.sort();
        assert_eq!(find(&names, "aaaaaa", 0, 10_000).0.len(), 64);
        let (found, complete, reads) = find(&names, "aaaaaa", 0, 50);
        assert!(found.len() < 64 && !complete && reads == 50, "{found:?}");
    }
}
