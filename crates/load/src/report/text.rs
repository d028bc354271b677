//! A report for a terminal: aligned columns without colours, so that a file shows the same.

use super::{Report, Table, or_dash};

pub(super) fn render(report: &Report) -> String {
    let mut out = format!("{}: {}\n", report.name, report.title);
    for line in report.circumstances() {
        out += &format!("  {line}\n");
    }
    for table in &report.tables {
        out.push('\n');
        out += &render_table(table);
    }
    if !report.ratios.is_empty() {
        out.push('\n');
        out += &render_table(&targets(report));
    }
    if !report.notes.is_empty() {
        out.push('\n');
    }
    for note in &report.notes {
        out += &format!("- {note}\n");
    }
    out
}

/// The ratios as a table.
pub(super) fn targets(report: &Report) -> Table {
    let mut table = Table::new("Against targets", &["figure", "measured", "floor", "aim", "reached"]);
    for ratio in &report.ratios {
        let target = |value: Option<f64>| or_dash(value, |value| ratio.figure(value));
        table.row(vec![
            ratio.name.clone(),
            ratio.figure(ratio.value),
            target(ratio.floor),
            target(ratio.aim),
            ratio.verdict.words().to_owned(),
        ]);
    }
    table
}

/// The first column is left-aligned, because it names the row; figures are right-aligned.
fn render_table(table: &Table) -> String {
    let width = |at: usize| {
        let cells = table.rows.iter().map(|row| row[at].chars().count());
        cells.chain([table.columns[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let mut line = String::from(" ");
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            line += &if at == 0 { format!(" {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut out = format!("{}\n{}", table.title, line(&table.columns));
    for row in &table.rows {
        out += &line(row);
    }
    out
}
