//! Exemptions from the project's rules: which rule, which file or folder, and why.
//!
//! One list, so that every review shows its length. An entry without effect is itself a violation.
//!
//! Not here: exemptions from compiler lints; those are at the item, with `reason = "…"`.

use super::Violation;

/// One exemption; a path that ends in `/` covers the folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exemption {
    pub(super) rule: &'static str,
    pub(super) path: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "read by people, and by the test that demands it"))]
    pub(super) reason: &'static str,
}

pub(super) const EXEMPTIONS: &[Exemption] = &[];

impl Exemption {
    pub(super) fn covers(&self, violation: &Violation) -> bool {
        let folder = self.path.ends_with('/') && violation.path.starts_with(self.path);
        self.rule == violation.rule && (folder || self.path == violation.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exemption_names_a_rule_and_a_reason() {
        for exemption in EXEMPTIONS {
            assert!(super::super::RULES.iter().any(|(name, _)| *name == exemption.rule), "{exemption:?}");
            assert!(exemption.reason.len() > 10, "{exemption:?}");
        }
    }

    #[test]
    fn a_folder_covers_what_is_below_it() {
        let exemption = Exemption { rule: "head", path: "a/b/", reason: "" };
        assert!(exemption.covers(&Violation::new("head", "a/b/c/d.rs", 0, "")));
        assert!(!exemption.covers(&Violation::new("head", "a/bc.rs", 0, "")));
        assert!(!exemption.covers(&Violation::new("length", "a/b/c.rs", 0, "")));
    }
}
