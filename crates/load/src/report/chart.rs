//! Line charts, drawn as SVG.
//!
//! An axis may be logarithmic: values are transformed before drawing, and only labels are transformed back. So one
//! drawing serves every combination. Not here: bars and pies; values without an axis are a table.

use super::html::escape;
use super::number;
use serde::{Deserialize, Serialize};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
/// The area of the lines: left, top, right, bottom.
const FRAME: [f64; 4] = [90.0, 12.0, 848.0, 322.0];
/// The highest number of labels on the x and the y axis.
const LABELS: [usize; 2] = [8, 7];
/// Dark enough to read on white, and distinct without seeing red and green.
const COLOURS: [&str; 6] = ["#005AB5", "#D55E00", "#008062", "#AA44A3", "#5A5A5A", "#997700"];

/// Lines over one pair of axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// One direction of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// Whether equal distances are equal factors.
    pub logarithmic: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, from left to right; on a logarithmic axis only those above zero are drawn.
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// A linear axis, from zero.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: false }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: true }
    }

    fn position(&self, value: f64) -> Option<f64> {
        if !self.logarithmic {
            return value.is_finite().then_some(value);
        }
        (value > 0.0 && value.is_finite()).then(|| value.log10())
    }

    fn label_at(&self, position: f64) -> String {
        number(if self.logarithmic { 10_f64.powf(position) } else { position })
    }

    /// Both ends, with room above; never empty.
    fn range(&self, positions: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let low = positions.clone().fold(f64::INFINITY, f64::min);
        let high = positions.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return (0.0, 1.0);
        }
        let low = if self.logarithmic { low } else { low.min(0.0) };
        let room = (high - low).max(0.1) * 0.06;
        (if self.logarithmic { low - room } else { low }, high + room)
    }

    /// Positions of labels: on a logarithmic axis 1, 2 and 5 of each power of ten, or only the powers; otherwise equal
    /// steps.
    fn ticks(&self, (low, high): (f64, f64), most: usize) -> Vec<f64> {
        let inside = |position: &f64| (low..=high).contains(position);
        let decades = (low.floor() as i32..=high.ceil() as i32).map(f64::from);
        let fits = |ticks: &Vec<f64>| (2..=most).contains(&ticks.len());
        if self.logarithmic {
            let fine = |decade: f64| [1.0_f64, 2.0, 5.0].map(|digit| decade + digit.log10());
            let fine: Vec<f64> = decades.clone().flat_map(fine).filter(inside).collect();
            let coarse = || decades.filter(inside).collect();
            if let Some(ticks) = Some(fine).filter(fits).or_else(|| Some(coarse()).filter(fits)) {
                return ticks;
            }
        }
        let rough = (high - low) / most as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (low / step).ceil();
        (0..=most).map(|at| (first + at as f64) * step).filter(inside).collect()
    }
}

impl Chart {
    /// The drawing, as an element of a page. It names no namespace, because a test searches pages for addresses.
    pub(super) fn svg(&self) -> String {
        let position = |&(x, y): &(f64, f64)| Some((self.x.position(x)?, self.y.position(y)?));
        let lines: Vec<Vec<(f64, f64)>> =
            self.series.iter().map(|one| one.points.iter().filter_map(position).collect()).collect();
        let across = self.x.range(lines.iter().flatten().map(|point| point.0));
        let up = self.y.range(lines.iter().flatten().map(|point| point.1));
        let [left, top, right, bottom] = FRAME;
        let x = |at: f64| left + (at - across.0) / (across.1 - across.0) * (right - left);
        let y = |at: f64| bottom - (at - up.0) / (up.1 - up.0) * (bottom - top);

        let mut out = format!(
            "<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n"
        );
        for tick in self.x.ticks(across, LABELS[0]) {
            out += &rule((x(tick), top), (x(tick), bottom), "#ddd", 1);
            out += &text(x(tick), bottom + 18.0, "middle", "", &self.x.label_at(tick));
        }
        for tick in self.y.ticks(up, LABELS[1]) {
            out += &rule((left, y(tick)), (right, y(tick)), "#ddd", 1);
            out += &text(left - 8.0, y(tick) + 4.0, "end", "", &self.y.label_at(tick));
        }
        out += &rule((left, bottom), (right, bottom), "#999", 1);
        out += &rule((left, top), (left, bottom), "#999", 1);
        out += &text((left + right) / 2.0, HEIGHT - 14.0, "middle", "", &self.x.label);
        let middle = (top + bottom) / 2.0;
        out +=
            &text(16.0, middle, "middle", &format!("transform=\"rotate(-90 16 {middle})\""), &self.y.label);

        for (at, (series, points)) in self.series.iter().zip(lines).enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let corners: Vec<String> =
                points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            let corners = corners.join(" ");
            out += &format!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{corners}\"/>\n"
            );
            for point in points {
                out += &format!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                    x(point.0),
                    y(point.1)
                );
            }
            let line = top + 16.0 + 18.0 * at as f64;
            out += &rule((left + 10.0, line), (left + 28.0, line), colour, 3);
            out += &text(left + 34.0, line + 4.0, "start", "", &series.name);
        }
        out + "</svg>"
    }
}

fn rule(from: (f64, f64), to: (f64, f64), colour: &str, width: u8) -> String {
    format!(
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

fn text(x: f64, y: f64, anchor: &str, more: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{}</text>\n", escape(words))
}
