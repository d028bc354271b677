//! Lines over an axis, drawn as SVG.
//!
//! An axis may be logarithmic: the values are transformed here and only labels turn back, which spares a second drawing
//! for every combination. Not here: bars and pies; what has no axis is a table.

use super::number;
use plotters::prelude::*;
use serde::{Deserialize, Serialize};

/// Points of the drawing.
const WIDTH: u32 = 860;
const HEIGHT: u32 = 380;
/// Dark enough to read on white, told apart by those who do not see red and green.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(213, 94, 0),
    RGBColor(0, 128, 98),
    RGBColor(170, 68, 153),
    RGBColor(90, 90, 90),
    RGBColor(153, 119, 0),
];

/// Some lines over one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Along the bottom.
    pub x: Axis,
    /// Up the side.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// One direction of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// Whether equal steps are equal factors.
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
    /// An axis of equal steps, from zero.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: false }
    }

    /// An axis of equal factors.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: true }
    }

    fn place(&self, value: f64) -> Option<f64> {
        if !self.logarithmic {
            return value.is_finite().then_some(value);
        }
        (value > 0.0 && value.is_finite()).then(|| value.log10())
    }

    fn label_at(&self, place: f64) -> String {
        number(if self.logarithmic { 10_f64.powf(place) } else { place })
    }

    /// Both ends, with room above; never empty.
    fn range(&self, places: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let low = places.clone().fold(f64::INFINITY, f64::min);
        let high = places.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return (0.0, 1.0);
        }
        let low = if self.logarithmic { low } else { low.min(0.0) };
        let room = (high - low).max(0.1) * 0.06;
        (if self.logarithmic { low - room } else { low }, high + room)
    }
}

impl Chart {
    /// The drawing, as an element to stand in a page.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("drawing into a string does not fail");
        // Inside a page the element needs no namespace, and pages are searched for addresses.
        svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "")
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error + '_>> {
        let place = |&(x, y): &(f64, f64)| Some((self.x.place(x)?, self.y.place(y)?));
        let lines: Vec<Vec<(f64, f64)>> =
            self.series.iter().map(|one| one.points.iter().filter_map(place).collect()).collect();
        let all = lines.iter().flatten();
        let (left, right) = self.x.range(all.clone().map(|point| point.0));
        let (low, high) = self.y.range(all.map(|point| point.1));
        let area = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
        let text = |size: u32| ("sans-serif", size).into_font();
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(78)
            .build_cartesian_2d(left..right, low..high)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .axis_style(BLACK.mix(0.4))
            .label_style(text(13))
            .axis_desc_style(text(14))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_labels(8)
            .y_labels(7)
            .x_label_formatter(&|place| self.x.label_at(*place))
            .y_label_formatter(&|place| self.y.label_at(*place))
            .draw()?;
        for (at, (series, points)) in self.series.iter().zip(lines).enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .label_font(text(13))
            .draw()?;
        area.present()?;
        Ok(())
    }
}
