//! A report as one page: tables, verdicts and charts, without external resources.

use super::{RatioVerdict, Report, Table, text};

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.6rem;margin-bottom:.3rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}\
.where{color:#555;font-size:.9rem;margin:0}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}\
th,td{padding:.3rem .7rem;text-align:right;border-bottom:1px solid #ddd}\
th{font-weight:600;color:#444;font-size:.9rem}th:first-child,td:first-child{text-align:left}\
.aim{color:#006b4f;font-weight:600}.floor{color:#7a5c00;font-weight:600}.missed{color:#b00020;font-weight:600}\
svg{max-width:100%;height:auto}.scroll{overflow-x:auto}";

pub(super) fn render(report: &Report) -> String {
    let title = escape(&format!("{}: {}", report.name, report.title));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    for line in report.circumstances() {
        out += &format!("<p class=\"where\">{}</p>\n", escape(&line));
    }
    if !report.ratios.is_empty() {
        let classes = report.ratios.iter().map(|ratio| class(ratio.verdict)).collect();
        out += &render_table(&text::targets(report), classes);
    }
    for table in &report.tables {
        out += &render_table(table, Vec::new());
    }
    for chart in &report.charts {
        out += &format!("<h2>{}</h2>\n<div class=\"scroll\">{}</div>\n", escape(&chart.title), chart.svg());
    }
    if !report.notes.is_empty() {
        let notes: String = report.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        out += &format!("<h2>Notes</h2>\n<ul>{notes}</ul>\n");
    }
    out + "</body></html>\n"
}

/// A table; the class of a row applies to its last cell.
fn render_table(table: &Table, classes: Vec<&str>) -> String {
    let cells = |tag: &str, cells: &[String], class: &str| -> String {
        let last = cells.len() - 1;
        let cell = |(at, cell): (usize, &String)| {
            let class =
                if at == last && !class.is_empty() { format!(" class=\"{class}\"") } else { String::new() };
            format!("<{tag}{class}>{}</{tag}>", escape(cell))
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let mut out = format!("<h2>{}</h2>\n<div class=\"scroll\"><table>\n", escape(&table.title));
    out += &cells("th", &table.columns, "");
    for (at, row) in table.rows.iter().enumerate() {
        out += &cells("td", row, classes.get(at).copied().unwrap_or_default());
    }
    out + "</table></div>\n"
}

const fn class(verdict: RatioVerdict) -> &'static str {
    match verdict {
        RatioVerdict::NoTarget => "",
        RatioVerdict::Missed => "missed",
        RatioVerdict::Floor => "floor",
        RatioVerdict::Aim => "aim",
    }
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            other => out.push(other),
        }
    }
    out
}
