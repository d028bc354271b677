//! The report of `contest-clear`: a table for each size beside R1's figures, ratios, and how the time grows with other keys.

use super::{Place, SIZES, WAYS, Way};
use crate::targets::CLEAR_TIMES_EMPTY;
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

/// R1's own figures for 50 and 100 applications: other keys, milliseconds by SCAN and by the index.
const THEIRS: [[(u64, f64, f64); 3]; 2] = [
    [(0, 0.295, 0.298), (10_000, 20.0, 0.314), (100_000, 142.6, 0.306)],
    [(0, 0.600, 0.364), (10_000, 21.7, 0.353), (100_000, 146.3, 0.342)],
];

pub(super) fn show(report: &mut Report, places: &[Place], release: &str) {
    for (at, size) in SIZES.into_iter().enumerate() {
        report.tables.push(table(places, at, size));
        for place in places.iter().filter(|place| place.others > 0) {
            let others = number(place.others as f64);
            let times = place.median(at, Way::Scan) / place.median(at, Way::Tally);
            let theirs = THEIRS[at].iter().find(|(keys, ..)| *keys == place.others);
            let beside =
                theirs.map_or(String::new(), |(_, scan, index)| format!(" (R1: {} ×)", number(scan / index)));
            report.ratios.push(Ratio::times(
                &format!("{size} applications, {others} other keys: SCAN / tally{beside}"),
                times,
            ));
        }
        if let (Some(none), Some(most)) = (places.first(), places.last()) {
            for (way, name) in [(Way::Index, "an index"), (Way::Tally, "tally")] {
                let others = number(most.others as f64);
                let grown = most.median(at, way) / none.median(at, way);
                let name = format!("{size} applications, {name}: {others} other keys / none");
                report.ratios.push(match way {
                    Way::Tally => Ratio::at_most(&name, grown, "×", CLEAR_TIMES_EMPTY),
                    _ => Ratio::times(&name, grown),
                });
            }
        }
        report.charts.push(chart(places, at, size));
    }
    report.note(format!(
        "{release}; one for each number of other keys, started for the run, without persistence"
    ));
    report.note(
        "SCAN: MATCH by prefix, 100 keys a round trip, then MGET and DEL; an index: three sets in one pipelined round trip, \
         then MGET and DEL; tally: a page of the accepted, with what they are, in one round trip, and its five keys \
         unlinked by name in another, both by the client that the server has",
    );
    report.note("proven every time: exactly the contest's applications are read, none is left, and every other key is");
    report.note("medians; places and ways take turns, SCAN in turns of its own after them, five times; one thread asks");
}

fn table(places: &[Place], at: usize, size: usize) -> Table {
    let columns = [
        "other keys",
        "SCAN ms",
        "index ms",
        "tally ms",
        "p99 of it",
        "SCAN / tally",
        "R1: SCAN ms",
        "R1: index ms",
        "R1: SCAN / index",
    ];
    let mut table = Table::new(&format!("{size} applications, read and cleared"), &columns);
    for place in places {
        let [scan, index, tally] = WAYS.map(|way| place.median(at, way));
        let p99 = place.times[at][Way::Tally as usize].percentile_ms(99.0);
        let mut cells =
            vec![number(place.others as f64), number(scan), number(index), number(tally), number(p99)];
        cells.push(format!("{} ×", number(scan / tally)));
        match THEIRS[at].iter().find(|(keys, ..)| *keys == place.others) {
            Some((_, scan, index)) => {
                cells.extend([number(*scan), number(*index), format!("{} ×", number(scan / index))]);
            }
            None => cells.extend(["–"; 3].map(str::to_owned)),
        }
        table.row(cells);
    }
    table
}

fn chart(places: &[Place], at: usize, size: usize) -> Chart {
    let line = |name: &str, way: Way| Series {
        name: name.to_owned(),
        // Zero has no logarithm.
        points: places.iter().map(|place| (place.others.max(1) as f64, place.median(at, way))).collect(),
    };
    Chart {
        title: format!("Reading and clearing {size} applications"),
        x: Axis::logarithmic("other keys (none is shown as 1)"),
        y: Axis::logarithmic("milliseconds"),
        series: vec![line("SCAN", Way::Scan), line("an index", Way::Index), line("tally", Way::Tally)],
    }
}
