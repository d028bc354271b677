//! The figures as tables, ratios and charts. Not here: measuring.

use super::cells::Figures;
use super::classes::Class;
use super::commands::BenchCommand;
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

/// One cell: its commands, and the figures of both.
pub(super) struct Cell {
    pub(super) kind: BenchCommand,
    pub(super) pipeline: u64,
    pub(super) redis: Figures,
    pub(super) tally: Figures,
}

/// Adds the figures of a class.
pub(super) fn show(report: &mut Report, class: &Class, cells: &[Cell]) {
    let title = format!("{}: Redis with {}, tally {}", class.name, class.redis_is, class.durability);
    let columns = [
        "command",
        "P",
        "Redis/s",
        "tally/s",
        "tally / Redis",
        "Redis p50 ms",
        "p99",
        "tally p50 ms",
        "p99",
        "Redis CPU µs",
        "tally CPU µs",
    ];
    let mut table = Table::new(&title, &columns);
    for cell in cells {
        let (name, pipeline) = (cell.kind.name(), cell.pipeline);
        let ratio = cell.tally.rate() / cell.redis.rate();
        let latency = |one: &Figures, percent| number(one.latencies.percentile_ms(percent));
        let cpu = |one: &Figures| one.cpu_us().map_or_else(|| "unknown".to_owned(), number);
        table.row(vec![
            name.to_owned(),
            pipeline.to_string(),
            number(cell.redis.rate()),
            number(cell.tally.rate()),
            format!("{} ×", number(ratio)),
            latency(&cell.redis, 50.0),
            latency(&cell.redis, 99.0),
            latency(&cell.tally, 50.0),
            latency(&cell.tally, 99.0),
            cpu(&cell.redis),
            cpu(&cell.tally),
        ]);
        let name = format!("{}, {name}, P={pipeline}: tally / Redis", class.name);
        report.ratios.push(match class.target(pipeline) {
            Some(target) => Ratio::at_least(&name, ratio, target),
            None => Ratio::times(&name, ratio),
        });
    }
    report.tables.push(table);
    report.charts.push(chart(&title, class, cells));
}

fn chart(title: &str, class: &Class, cells: &[Cell]) -> Chart {
    let line = |kind: BenchCommand, server: &str, rate: fn(&Cell) -> f64| Series {
        name: format!("{}, {server}", kind.name()),
        points: cells
            .iter()
            .filter(|cell| cell.kind == kind)
            .map(|cell| (cell.pipeline as f64, rate(cell)))
            .collect(),
    };
    let both = |&kind: &BenchCommand| {
        [line(kind, "Redis", |cell| cell.redis.rate()), line(kind, "tally", |cell| cell.tally.rate())]
    };
    Chart {
        title: title.to_owned(),
        x: Axis::logarithmic("commands in a pipeline"),
        y: Axis::logarithmic("commands per second"),
        series: class.kinds.iter().flat_map(both).collect(),
    }
}
