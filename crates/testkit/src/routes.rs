//! The server's list of routes, read from its source: tests that walk "every endpoint" cannot forget a new one.

const SOURCE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/src/http/routes.rs"));

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Such as `GET`.
    pub method: String,
    /// Its path with parameters in braces.
    pub path: String,
    /// `Read`, `Write` or `Administer`.
    pub right: String,
    /// The scope that it needs, if `right` is `Write`, `Audit` or `Play`, such as `MoneyMint`.
    pub scope: Option<String>,
}

/// Every operation that needs a permission.
pub fn all() -> Vec<Route> {
    let routes: Vec<Route> = SOURCE.lines().filter_map(read).collect();
    assert!(routes.len() >= 17, "the list of routes has another form now: {routes:?}");
    assert_eq!(routes.len(), SOURCE.matches("    route!(").count(), "a route was not read");
    routes
}

fn read(line: &str) -> Option<Route> {
    let rest = line.trim().strip_prefix("route!(\"")?;
    let (method, rest) = rest.split_once('"')?;
    let (path, rest) = rest.split_once('"')?.1.split_once('"')?;
    let (right, scope) = match rest.split_whitespace().next()? {
        right @ ("Open" | "Observe" | "Read" | "Own" | "Administer") => (right, None),
        "Play" => ("Play", Some("ContestsManage")),
        // The role server does not have it.
        "AuditRead" => ("Audit", Some("AuditRead")),
        scope => ("Write", Some(scope)),
    };
    let (method, path, right) = (method.to_owned(), path.to_owned(), right.to_owned());
    Some(Route { method, path, right, scope: scope.map(str::to_owned) })
}

impl Route {
    /// The path with its parameters replaced.
    pub fn path_with(&self, values: &[(&str, &str)]) -> String {
        let filled = values
            .iter()
            .fold(self.path.clone(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
        assert!(!filled.contains('{'), "no value for a parameter of {filled}");
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_read_with_their_rights() {
        let all = all();
        let has = |method: &str, path: &str, right: &str, scope: Option<&str>| {
            let mut same = all.iter().filter(|route| route.method == method && route.path == path);
            same.any(|route| route.right == right && route.scope.as_deref() == scope)
        };
        assert!(has("DELETE", "/v1/keys/{key}", "Administer", None));
        assert!(has("POST", "/v1/leaderboards/{board}/scores", "Write", Some("ScoresWrite")));
        assert!(has("POST", "/v1/contests/{contest}/open", "Play", Some("ContestsManage")));
        assert!(has("GET", "/metrics", "Observe", None));
    }
}
