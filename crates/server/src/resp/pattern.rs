//! Patterns of `KEYS`, `SCAN`, `ZSCAN` and `CONFIG GET`: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a literal character.
//!
//! A pattern may have half a MiB, and it is compared with each byte of up to 100,000 names while a ranking is locked. So it
//! is parsed once: a character class of any length becomes a set of bytes. A name shorter than the minimum is not compared.

pub(super) struct Pattern {
    elements: Vec<Element>,
    /// The minimum number of bytes of a matching name.
    least: usize,
}

enum Element {
    /// Any bytes, or none.
    Star,
    /// One byte of these, a bit each.
    One([u64; 4]),
}

/// More than any name has bytes, so the rest of such a pattern does not matter.
const ELEMENTS_MAX: usize = 512;

impl Pattern {
    pub(super) fn new(mut text: &[u8]) -> Self {
        let (mut elements, mut least) = (Vec::new(), 0);
        while !text.is_empty() && least < ELEMENTS_MAX {
            if text[0] != b'*' {
                let (set, length) = one(text);
                elements.push(Element::One(set));
                (least, text) = (least + 1, &text[length..]);
                continue;
            }
            if !matches!(elements.last(), Some(Element::Star)) {
                elements.push(Element::Star);
            }
            text = &text[1..];
        }
        Self { elements, least }
    }

    /// Whether a name matches.
    pub(super) fn fits(&self, name: &[u8]) -> bool {
        if name.len() < self.least {
            return false;
        }
        let (mut p, mut n) = (0, 0);
        // The element after the last `*`, and where its match begins. On a mismatch the `*` takes one more byte.
        let mut star: Option<(usize, usize)> = None;
        loop {
            let fits = match self.elements.get(p) {
                Some(Element::Star) => {
                    star = Some((p + 1, n));
                    p += 1;
                    continue;
                }
                None if n == name.len() => return true,
                None => false,
                Some(Element::One(set)) => name.get(n).is_some_and(|byte| has(set, *byte)),
            };
            match star {
                _ if fits => (p, n) = (p + 1, n + 1),
                Some((after, from)) if from < name.len() => {
                    (p, n) = (after, from + 1);
                    star = Some((after, from + 1));
                }
                _ => return false,
            }
        }
    }
}

fn has(set: &[u64; 4], byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}

/// The bytes that the first element matches, and its length.
fn one(pattern: &[u8]) -> ([u64; 4], usize) {
    let mut set = [0; 4];
    let mut add = |byte: u8| set[usize::from(byte >> 6)] |= 1_u64 << (byte & 63);
    let length = match pattern {
        [b'?', ..] => return ([u64::MAX; 4], 1),
        [b'\\', escaped, ..] => {
            add(*escaped);
            2
        }
        [b'[', ..] => {
            let negated = pattern.get(1) == Some(&b'^');
            let mut at = if negated { 2 } else { 1 };
            loop {
                match &pattern[at..] {
                    [] => break,
                    [b']', ..] => {
                        at += 1;
                        break;
                    }
                    [b'\\', escaped, ..] => {
                        add(*escaped);
                        at += 2;
                    }
                    [from, b'-', to, ..] => {
                        (*from.min(to)..=*from.max(to)).for_each(&mut add);
                        at += 3;
                    }
                    [single, ..] => {
                        add(*single);
                        at += 1;
                    }
                }
            }
            if negated {
                set = set.map(|word: u64| !word);
            }
            at
        }
        [single, ..] => {
            add(*single);
            1
        }
        [] => 0,
    };
    (set, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_redis() {
        let rows: [(&str, &str, bool); 18] = [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            ("[abc", "a", true),
            (r"[\]]", "]", true),
            ("[^", "a", true),
            ("*a*b*", "xxaxxbxx", true),
            ("**a**", "a", true),
            ("", "a", false),
        ];
        for (pattern, name, fits) in rows {
            assert_eq!(Pattern::new(pattern.as_bytes()).fits(name.as_bytes()), fits, "{pattern} {name}");
        }
        assert!(!Pattern::new("a*".repeat(50).as_bytes()).fits("a".repeat(49).as_bytes()));
    }

    #[test]
    fn the_length_of_a_pattern_is_no_work_for_each_name() {
        let class = [b"*[".as_slice(), &b"x".repeat(512 << 10), b"]y"].concat();
        let pattern = Pattern::new(&class);
        assert_eq!(pattern.elements.len(), 3);
        let names = [b"x".repeat(128), b"x".repeat(127).into_iter().chain([b'y']).collect()];
        assert_eq!(names.map(|name| pattern.fits(&name)), [false, true]);

        let stars = b"*?".repeat(256 << 10);
        let pattern = Pattern::new(&stars);
        assert!(pattern.elements.len() <= 2 * ELEMENTS_MAX && pattern.least > 128);
        assert!(!pattern.fits(&b"x".repeat(128)));
    }
}
