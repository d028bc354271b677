//! The report of `page`: a table for each distance beside R4's figures, ratios, and how the time grows with a page.

use super::{Cell, Distance, LOOKUPS, Way};
use crate::targets::PAGE_TIMES_LOOP;
use std::time::Duration;
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

/// R4's own figures: milliseconds of a loop, one command and a pipeline.
const THEIRS: [f64; 3] = [365.0, 19.0, 25.0];

impl Cell {
    /// Median milliseconds of each way, for a page of this size.
    fn medians(&self, lookups: usize) -> [f64; 3] {
        let found = self.sizes.iter().find(|(size, _)| *size == lookups);
        found.map_or([0.0; 3], |(_, times)| times.each_ref().map(|times| times.percentile_ms(50.0)))
    }
}

pub(super) fn show(report: &mut Report, distances: &[Distance], release: &str) {
    for distance in distances {
        let distance_name = distance_name(distance.added);
        report.tables.push(table(distance, &distance_name));
        for cell in &distance.cells {
            let [in_a_loop, command, pipeline] = cell.medians(LOOKUPS);
            let name = |way| format!("{}, {distance_name}: loop / {way}", cell.name);
            let mut add = |way, times| {
                report.ratios.push(if cell.ours {
                    Ratio::at_least(&name(way), times, PAGE_TIMES_LOOP)
                } else {
                    Ratio::times(&name(way), times)
                });
            };
            add("one command", in_a_loop / command);
            add("pipeline", in_a_loop / pipeline);
        }
        report.charts.push(chart(distance, &distance_name));
    }
    report.note(format!("{release}; started for the run: one, and a cluster of three nodes; no persistence"));
    for distance in distances {
        let (distance_name, ms) = (distance_name(distance.added), number(distance.round_trip_ms));
        report.note(format!("{distance_name}: a single question to one Redis took {ms} ms (median)"));
    }
    report.note("the delay is a relay in front of each server, which keeps every byte for half of it in each direction");
    report.note(
        "values of 100 bytes: GET in a loop, MGET, GETs in a pipeline; a cluster refuses an MGET of many slots, so that \
         one is of keys that a hash tag keeps in one slot, which is what R4 did not want",
    );
    report.note(
        "tally's ranks: one rank of each of 100 dense boards in a loop and in a pipeline; one command: 100 ranks of one \
         board in one script",
    );
    report.note(
        "proven at every page: all answers are right; and in a pipeline a look-up that fails (a value of another type, a \
         board that is not loaded) fails alone",
    );
    report.note("medians; the three ways take turns, one thread asks");
}

fn distance_name(added: Duration) -> String {
    if added.is_zero() { "loopback".to_owned() } else { format!("{} ms added", added.as_millis()) }
}

fn table(distance: &Distance, distance_name: &str) -> Table {
    let columns = [
        "page",
        "loop ms",
        "one command ms",
        "pipeline ms",
        "p99 of it",
        "loop / command",
        "loop / pipeline",
        "as 365 : 19 : 25",
    ];
    let mut table = Table::new(&format!("{LOOKUPS} look-ups, {distance_name}"), &columns);
    let mut add = |name: &str, ms: [f64; 3], p99: String| {
        let scaled = |way: Way| number(THEIRS[0] * ms[way as usize] / ms[0]);
        let times = |way: Way| format!("{} ×", number(ms[0] / ms[way as usize]));
        let shape = format!("365 : {} : {}", scaled(Way::Command), scaled(Way::Pipeline));
        let [in_a_loop, command, pipeline] = ms.map(number);
        let times = (times(Way::Command), times(Way::Pipeline));
        table.row(vec![name.to_owned(), in_a_loop, command, pipeline, p99, times.0, times.1, shape]);
    };
    for cell in &distance.cells {
        let all = cell.sizes.iter().find(|(size, _)| *size == LOOKUPS);
        let p99 = all.map_or(0.0, |(_, times)| times[Way::Pipeline as usize].percentile_ms(99.0));
        add(cell.name, cell.medians(LOOKUPS), number(p99));
    }
    add("R4: values, cluster", THEIRS, "–".to_owned());
    table
}

fn chart(distance: &Distance, distance_name: &str) -> Chart {
    let line = |cell: &Cell, name: &str, way: Way| Series {
        name: format!("{}, {name}", cell.name),
        points: cell
            .sizes
            .iter()
            .map(|(size, _)| (*size as f64, cell.medians(*size)[way as usize]))
            .collect(),
    };
    let both = |cell: &Cell| [line(cell, "loop", Way::Loop), line(cell, "pipeline", Way::Pipeline)];
    Chart {
        title: format!("Time of a page, cluster of three, {distance_name}"),
        x: Axis::logarithmic("look-ups"),
        y: Axis::logarithmic("milliseconds"),
        series: distance.cells.iter().filter(|cell| cell.clustered).flat_map(both).collect(),
    }
}
