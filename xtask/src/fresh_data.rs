//! Data directories of new database servers: made once, copied by tests.
//!
//! A database server starts quickly, but takes seconds to make its system tables first. So the directories are made with the
//! packages, beside the launchers, and concurrent tests only read them. `root` has no password and may connect from any host;
//! a test's server listens only on the loopback interface.
//!
//! Not here: copying it and starting a server on it (the test kit does both).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process;

/// How a server makes its system tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FreshData {
    /// From the SQL files of the release, as its own install script does.
    MariaDb,
    /// By the server itself.
    MySql,
}

const ROOT: &str = "CREATE USER 'root'@'%' IDENTIFIED BY '';\n\
    GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;\n";

/// MariaDB's, in the order of its own script, without the help texts.
const SYSTEM_TABLES: [&str; 5] = [
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
];

/// The name of the data directory of a program; the test kit has the same.
pub(crate) fn name(program: &str) -> String {
    format!("{program}.data")
}

/// Its path in a folder of launchers.
pub(crate) fn of(folder: &Path, program: &str) -> PathBuf {
    folder.join(name(program))
}

/// Makes it and puts it beside the launchers.
pub(crate) fn make(
    kind: FreshData,
    launcher: &Path,
    tree: &Path,
    scratch: &Path,
    folder: &Path,
) -> Result<()> {
    let program = launcher.file_name().context("the launcher has a name")?.to_string_lossy();
    let (made, place) = (of(scratch, &program), of(folder, &program));
    std::fs::create_dir(&made).with_context(|| format!("make the folder {}", made.display()))?;
    let sql = scratch.join("fresh.sql");
    let mut server = Command::new(launcher);
    // Small logs, because every test copies them.
    server.args(["--no-defaults", "--user=root", "--datadir"]).arg(&made).stdout(Stdio::null());
    match kind {
        FreshData::MariaDb => {
            std::fs::write(&sql, system_tables(&tree.join("usr/share/mysql"))?).context("write the SQL")?;
            let sql = std::fs::File::open(&sql).context("read the SQL")?;
            server.args(["--bootstrap", "--log-warnings=0", "--innodb-log-file-size=4M"]).stdin(sql);
        }
        FreshData::MySql => {
            std::fs::write(&sql, ROOT).context("write the SQL")?;
            server.args(["--initialize-insecure", "--innodb-redo-log-capacity=8M", "--init-file"]);
            server.arg(&sql).stdin(Stdio::null());
        }
    }
    // Their output is long, and only needed for a failure.
    let output = server.stderr(Stdio::piped()).output().with_context(|| format!("start {program}"))?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        anyhow::bail!("`{}` ended with {}", process::line_of(&server), output.status);
    }
    // The id of a server: copies must not share it.
    let own_name = made.join("auto.cnf");
    if own_name.exists() {
        std::fs::remove_file(own_name).context("remove the server's own name")?;
    }
    // Root creates it, and tests of any user copy it.
    process::run(Command::new("chmod").args(["-R", "a+rX"]).arg(&made))?;
    if place.exists() {
        std::fs::rename(&place, scratch.join(format!("{program}.before"))).context("put it aside")?;
    }
    std::fs::rename(&made, &place).context("put the data directory in place")
}

/// The SQL of all system tables of MariaDB, without the lines that name this machine.
fn system_tables(share: &Path) -> Result<String> {
    let mut sql = String::from("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n");
    for name in SYSTEM_TABLES {
        let path = share.join(name);
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        for line in String::from_utf8_lossy(&text).lines().filter(|line| !line.contains("@current_hostname"))
        {
            sql.push_str(line);
            sql.push('\n');
        }
    }
    // The server has not read the new tables of users yet.
    sql.push_str("FLUSH PRIVILEGES;\n");
    sql.push_str(ROOT);
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tables_are_one_file_without_this_machine() {
        let folder = std::env::temp_dir().join(format!("tally-tables-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in SYSTEM_TABLES {
            assert!(system_tables(&folder).unwrap_err().to_string().contains(name));
            std::fs::write(folder.join(name), format!("-- {name}\nINSERT @current_hostname;\n")).unwrap();
        }
        let sql = system_tables(&folder).unwrap();
        let places: Vec<usize> =
            SYSTEM_TABLES.iter().map(|name| sql.find(&format!("\n-- {name}\n")).unwrap()).collect();
        assert!(places.is_sorted() && sql.ends_with(ROOT) && !sql.contains("hostname"), "{sql}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
