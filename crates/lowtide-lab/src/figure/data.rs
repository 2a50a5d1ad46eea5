// SPDX-License-Identifier: MIT OR Apache-2.0
//! From results to what is drawn.

use super::{DrawnPanel, Table};
use crate::{
    cache::Curve,
    error::{LabError, Result},
    experiment::{Axis, AxisValue, Column, Mark, Panel, Plot, written},
    expression::{Value, Where, fill},
    score::Scores,
    statistics,
};
use lowtide_draw::{Layer, Named, Point, Quartiles, Scale, Stroke, chart::Chart};

/// Points of a curve over time, at most: one for each place where a line can be distinguished from its neighbour.
const POINTS: usize = 480;
/// Steps of a distribution.
const STEPS: usize = 200;

/// Draws a panel.
pub(super) fn panel(scores: &Scores<'_, '_>, panel: &Panel) -> Result<DrawnPanel> {
    let of = Source { scores, panel, place: place(panel)? };
    let chart = match panel.plot {
        Plot::Lines => of.lines()?,
        Plot::Series => of.series()?,
        Plot::Cdf => of.distributions()?,
        Plot::Boxes => of.boxes()?,
        Plot::Points => of.points()?,
        Plot::Table => return of.table().map(DrawnPanel::Table),
    };
    let words = [&panel.title, &chart.y_label, &chart.x_label];
    let label = words.into_iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join("; ");
    Ok(DrawnPanel::Drawing(chart.draw(), label))
}

/// The `where` of a panel, as it is written.
fn place(panel: &Panel) -> Result<Where> {
    panel.place.iter().map(|(axis, value)| Ok((axis.clone(), written(value)?))).collect()
}

/// A panel and what it is drawn from.
struct Source<'s, 'r, 'a> {
    scores: &'s Scores<'r, 'a>,
    panel: &'s Panel,
    place: Where,
}

impl<'a> Source<'_, '_, 'a> {
    fn axis(&self, name: Option<&String>) -> Option<&'a Axis> {
        self.scores.results.plan.experiment.axis(name?)
    }

    /// The values of an axis that the panel shows.
    fn values(&self, axis: &'a Axis) -> Vec<&'a AxisValue> {
        let fixed = self.place.iter().find(|(name, _)| *name == axis.name);
        let values = axis.values_of(self.scores.results.plan.extent.quick).into_iter();
        values.filter(|value| fixed.is_none_or(|(_, fixed)| *fixed == value.written())).collect()
    }

    /// The values of `each`; one without a name, if there is none.
    fn each(&self) -> Vec<(Option<(&'a Axis, &'a AxisValue)>, Stroke)> {
        match self.axis(self.panel.each.as_ref()) {
            None => vec![(None, Stroke::of(0))],
            Some(axis) => {
                // colours stay with their values, whether a look is quick or not
                let place = |value: &AxisValue| axis.values.iter().position(|it| it == value).unwrap_or_default();
                self.values(axis).into_iter().map(|value| (Some((axis, value)), Stroke::of(place(value)))).collect()
            }
        }
    }

    /// The `where` with further values.
    fn at(&self, further: &[Option<(&Axis, &AxisValue)>]) -> Where {
        let further = further.iter().flatten().map(|(axis, value)| (axis.name.clone(), value.written()));
        let mut place: Where = further.collect();
        let fixed = self.place.iter().filter(|(name, _)| !place.iter().any(|(other, _)| other == name));
        let fixed: Where = fixed.cloned().collect();
        place.extend(fixed);
        place
    }

    fn samples(&self, place: &Where, only: Option<usize>) -> Result<Vec<f64>> {
        let measure = self.panel.measure.as_deref().unwrap_or_default();
        self.scores.cells.samples(measure, place, only)
    }

    /// Median and range of the runs at a place.
    fn point(&self, x: f64, further: &[Option<(&Axis, &AxisValue)>]) -> Result<Option<Point>> {
        let (y, range) = match &self.panel.value {
            Some(expression) => {
                let fixed = self.place.iter().filter_map(|(name, value)| {
                    let axis = self.scores.results.plan.experiment.axis(name)?;
                    Some((axis, axis.values.iter().find(|it| it.written() == *value)?))
                });
                let values =
                    fixed.chain(further.iter().copied().flatten()).map(|(axis, value)| (axis.name.as_str(), value));
                let scope = self.scores.scope(&values.collect::<Vec<_>>());
                (self.scores.value(expression, &scope)?, self.scores.spread(expression, &scope)?)
            }
            None => {
                let samples = self.samples(&self.at(further), None)?;
                let range = statistics::min(&samples).zip(statistics::max(&samples)).filter(|_| samples.len() > 1);
                (statistics::median(&samples), range)
            }
        };
        Ok(y.map(|y| Point { x, y, range }))
    }

    fn lines(&self) -> Result<Chart> {
        let x = self.axis(self.panel.x.as_ref()).ok_or_else(|| LabError::new("there is no axis `x`"))?;
        let mut layers = Vec::new();
        for (each, stroke) in self.each() {
            let mut points = Vec::new();
            for (at, value) in self.values(x).into_iter().enumerate() {
                let place = value.number().filter(|_| numeric(x)).unwrap_or(at as f64);
                points.extend(self.point(place, &[each, Some((x, value))])?);
            }
            layers.push(Layer::Curve { name: name(each), stroke, points, dots: true });
        }
        Ok(self.chart(Some(x), layers))
    }

    fn series(&self) -> Result<Chart> {
        let (mut layers, each) = (Vec::new(), self.each());
        for (number, series) in self.panel.series.iter().enumerate() {
            for (each, stroke) in &each {
                let curves = self.scores.results.curves(series, &self.at(&[*each]));
                let curve = match &curves[..] {
                    [] => continue,
                    [(_, curve)] => curve,
                    [(a, _), (b, _), ..] => {
                        let words = |place: &Where| {
                            place.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
                        };
                        let (a, b) = (words(a), words(b));
                        return Err(LabError::new(format!(
                            "`{series}` is there in several cells ({a}; {b}); use `where`"
                        )));
                    }
                };
                let title = self.scores.results.plan.experiment.series.iter().find(|it| it.name == *series);
                let title = title.map_or(series.as_str(), |it| it.title());
                let several = self.panel.series.len() > 1;
                let (name, stroke) = match each {
                    None => (title.to_owned(), Stroke::of(number)),
                    Some(_) if several => (format!("{} {title}", name(*each)), Stroke::of(layers.len())),
                    Some(_) => (name(*each), stroke.clone()),
                };
                layers.push(Layer::Curve { name, stroke, points: thinned(curve, self.panel.x_range), dots: false });
            }
        }
        Ok(self.chart(None, layers))
    }

    fn distributions(&self) -> Result<Chart> {
        let mut layers = Vec::new();
        for (each, stroke) in self.each() {
            let mut samples = self.samples(&self.at(&[each]), None)?;
            samples.sort_by(f64::total_cmp);
            let step = |n: usize| {
                let p = n as f64 / STEPS as f64;
                statistics::quantile_of_sorted(&samples, p).map(|x| Point { x, y: p, range: None })
            };
            let points = (0..=STEPS).filter_map(step).collect();
            layers.push(Layer::Curve { name: name(each), stroke, points, dots: false });
        }
        Ok(self.chart(None, layers))
    }

    fn boxes(&self) -> Result<Chart> {
        let x = self.axis(self.panel.x.as_ref()).ok_or_else(|| LabError::new("there is no axis `x`"))?;
        let each = self.each();
        let room = 0.8 / each.len() as f64;
        let mut layers = Vec::new();
        for (number, (each, stroke)) in each.into_iter().enumerate() {
            let mut boxes = Vec::new();
            for (at, value) in self.values(x).into_iter().enumerate() {
                let samples = self.samples(&self.at(&[each, Some((x, value))]), None)?;
                let quantiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| statistics::quantile(&samples, p));
                if let [Some(a), Some(b), Some(c), Some(d), Some(e)] = quantiles {
                    boxes.push((at as f64 - 0.4 + room * (number as f64 + 0.5), Quartiles([a, b, c, d, e])));
                }
            }
            layers.push(Layer::Boxes { name: name(each), stroke, boxes, half: room * 0.4 });
        }
        Ok(self.chart(Some(x), layers))
    }

    fn points(&self) -> Result<Chart> {
        let axis = self.axis(self.panel.each.as_ref()).ok_or_else(|| LabError::new("there is no axis `each`"))?;
        let mut points = Vec::new();
        for (each, stroke) in self.each() {
            let Some((_, value)) = each else { continue };
            let scope = self.scores.scope(&[(axis.name.as_str(), value)]);
            let place = |expression: &Option<String>| match expression {
                Some(expression) => self.scores.value(expression, &scope),
                None => Ok(None),
            };
            if let (Some(x), Some(y)) = (place(&self.panel.x_value)?, place(&self.panel.value)?) {
                points.push(Named { x, y, name: value.written(), stroke });
            }
        }
        Ok(self.chart(None, vec![Layer::Points(points)]))
    }

    /// The drawing of these layers, with the marks; `x` is the axis along x, if there is one.
    fn chart(&self, x: Option<&'a Axis>, mut layers: Vec<Layer>) -> Chart {
        let panel = self.panel;
        layers.extend(panel.marks.iter().map(|mark| self.mark(mark)));
        let (xs, ys) = extent(&layers);
        let names = x.filter(|axis| panel.plot == Plot::Boxes || !numeric(axis));
        let scale = match names {
            Some(axis) => Scale::of_names(self.values(axis).iter().map(|value| value.written()).collect()),
            None if panel.x_range.is_some() || matches!(panel.plot, Plot::Cdf | Plot::Points) => {
                Scale::new(&xs, panel.x_range, panel.x_log)
            }
            None => Scale::new(&xs, None, panel.x_log).tight(&xs),
        };
        let measure = panel.measure.as_ref().and_then(|name| self.scores.results.plan.experiment.measure(name));
        let measured = measure.map_or(String::new(), |measure| {
            let label = if measure.label.is_empty() { &measure.name } else { &measure.label };
            if measure.unit.is_empty() { label.clone() } else { format!("{label}, {}", measure.unit) }
        });
        let (x_label, y_label) = match panel.plot {
            Plot::Series => ("Time, s".to_owned(), String::new()),
            Plot::Cdf => (measured, "Part of the values".to_owned()),
            _ => (x.map_or(String::new(), Axis::title), measured),
        };
        Chart {
            title: panel.title.clone(),
            x: scale,
            y: Scale::new(&ys, panel.y_range, panel.y_log),
            x_label: panel.x_label.clone().unwrap_or(x_label),
            y_label: panel.y_label.clone().unwrap_or(y_label),
            // points have their names beside them
            legend: self
                .axis(panel.each.as_ref())
                .filter(|_| panel.plot != Plot::Points)
                .map_or(String::new(), Axis::title),
            layers,
        }
    }

    fn mark(&self, mark: &Mark) -> Layer {
        let of = mark.of.as_ref().and_then(|value| written(value).ok());
        let mut each = self.each().into_iter();
        let stroke = of.and_then(|of| each.find(|(each, _)| each.is_some_and(|(_, value)| value.written() == of)));
        Layer::Mark { x: mark.x, y: mark.y, stroke: stroke.map(|(_, stroke)| stroke), text: mark.text.clone() }
    }

    fn table(&self) -> Result<Table> {
        let panel = self.panel;
        let axis = self.axis(panel.x.as_ref()).ok_or_else(|| LabError::new("there is no axis `x`"))?;
        let mut rows = Vec::new();
        for value in self.values(axis) {
            let columns = panel.columns.iter();
            let entries = columns.map(|column| self.entry(column, axis, value)).collect::<Result<Vec<_>>>()?;
            rows.push((value.written(), entries));
        }
        if let Some(column) = &panel.sort {
            let place = panel.columns.iter().position(|it| it.title == *column);
            let place = place.ok_or_else(|| LabError::new(format!("`sort` names {column}, which is no column")))?;
            let key = |entries: &[Entry]| entries[place].0.unwrap_or(f64::NEG_INFINITY);
            rows.sort_by(|(_, a), (_, b)| key(b).total_cmp(&key(a)));
        }
        let row = |(name, entries): (String, Vec<Entry>)| {
            [name].into_iter().chain(entries.into_iter().map(|(_, text)| text)).collect()
        };
        let head = [axis.title()].into_iter().chain(panel.columns.iter().map(|column| column.title.clone()));
        Ok(Table { title: panel.title.clone(), head: head.collect(), rows: rows.into_iter().map(row).collect() })
    }

    /// What a column has in the row of this value.
    fn entry(&self, column: &Column, axis: &Axis, value: &AxisValue) -> Result<Entry> {
        let (scores, digits) = (self.scores, usize::from(column.digits));
        let values = [(axis.name.as_str(), value)];
        let scope = scores.scope(&values);
        if let Some(text) = &column.text {
            let functions = &scores.results.plan.experiment.functions;
            return Ok((None, fill(text, &scores.language, functions, &scope)?));
        }
        let number = |value: f64| {
            let text = format!("{value:.digits$}");
            // no "-0.0"
            if text.trim_start_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text }
        };
        if let Some(measure) = column.least.as_ref().or(column.greatest.as_ref()) {
            let sign = if column.least.is_some() { 1.0 } else { -1.0 };
            let extreme = self.extreme(measure, &self.at(&[Some((axis, value))]), sign)?;
            return Ok(match extreme {
                Some((value, cell)) => (Some(value), format!("{}: {cell}", number(value))),
                None => (None, "–".to_owned()),
            });
        }
        let value = scores.bound(column.value.as_ref(), &values, &scope)?;
        Ok((value, value.map_or("–".to_owned(), number)))
    }

    /// The least value of a measure (with the sign -1: the greatest) at a place, and where it is.
    fn extreme(&self, measure: &str, place: &Where, sign: f64) -> Result<Option<(f64, String)>> {
        let mut found: Option<(f64, &Where)> = None;
        for cell in self.scores.cells.at(place).map_err(LabError::new)? {
            let values = cell.runs.iter().flat_map(|run| run.get(measure).map_or(&[][..], Value::numbers));
            for value in values {
                if found.is_none_or(|(least, _)| sign * value < sign * least) {
                    found = Some((*value, &cell.place));
                }
            }
        }
        let name = |(axis, value): &(String, String)| {
            let fixed = place.iter().any(|(fixed, _)| fixed == axis);
            let unit = self.scores.results.plan.experiment.axis(axis).map_or("", |axis| axis.unit.as_str());
            (!fixed).then(|| format!("{value} {unit}").trim_end().to_owned())
        };
        Ok(found.map(|(value, cell)| (value, cell.iter().filter_map(name).collect::<Vec<_>>().join(", "))))
    }
}

/// What stands in a table: the number, if it is one, and the text.
type Entry = (Option<f64>, String);

/// Whether all values of an axis are numbers.
fn numeric(axis: &Axis) -> bool {
    axis.values.iter().all(|value| value.number().is_some())
}

fn name(each: Option<(&Axis, &AxisValue)>) -> String {
    each.map_or(String::new(), |(_, value)| value.written())
}

/// All values along x and along y.
fn extent(layers: &[Layer]) -> (Vec<f64>, Vec<f64>) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for layer in layers {
        match layer {
            Layer::Curve { points, .. } => {
                for point in points {
                    xs.push(point.x);
                    ys.push(point.y);
                    ys.extend(point.range.iter().flat_map(|(low, high)| [*low, *high]));
                }
            }
            Layer::Boxes { boxes, .. } => {
                for (x, quartiles) in boxes {
                    xs.push(*x);
                    ys.extend(quartiles.0);
                }
            }
            Layer::Points(points) => {
                xs.extend(points.iter().map(|point| point.x));
                ys.extend(points.iter().map(|point| point.y));
            }
            Layer::Mark { x, y, .. } => {
                xs.extend(x);
                ys.extend(y);
            }
        }
    }
    (xs, ys)
}

/// A curve over time with no more points than can be seen: of each part the least and the greatest value, in their
/// order.
fn thinned(curve: &Curve, range: Option<[f64; 2]>) -> Vec<Point> {
    let within = |time: f64| range.is_none_or(|[from, to]| time >= from && time <= to);
    let all: Vec<Point> = curve
        .times
        .iter()
        .zip(&curve.values)
        .filter(|(time, _)| within(**time))
        .map(|(time, value)| Point { x: *time, y: *value, range: None })
        .collect();
    if all.len() <= POINTS {
        return all;
    }
    let extremes = |part: &[Point]| {
        let by_value = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
        let (low, high) = (*part.iter().min_by(by_value)?, *part.iter().max_by(by_value)?);
        Some(if low.x < high.x { [low, high] } else { [high, low] })
    };
    all.chunks(all.len().div_ceil(POINTS / 2)).filter_map(extremes).flatten().collect()
}
