//! A figure along a parameter as a plot: the axis with the most values, a curve for each combination of the others.

use super::{Point, Sweep};
use crate::comparison::ComparedRow;
use crate::plot::{Curves, Plot, Series};

/// Figures that have a plot at most; tables have all.
const PLOTS_MAX: usize = 16;

impl Sweep {
    /// What was swept, in a sentence.
    pub(super) fn answer(&self, names: &[String]) -> Option<String> {
        let axis = self.plotted_axis()?;
        let values = self.values(axis);
        let (first, last) = (values.first()?, values.last()?);
        let others = self.axes.len() - 1;
        let others = match others {
            0 => String::new(),
            1 => " and one more parameter".to_owned(),
            others => format!(" and {others} more parameters"),
        };
        let figures = match names.len() {
            0 => "no figure that is good or bad changes".to_owned(),
            1 => format!("{} is shown", names[0]),
            count => format!("{count} figures that are good or bad change"),
        };
        Some(format!(
            "{} from {first} to {last}, {} values{others}: {figures}.",
            self.axes[axis],
            values.len()
        ))
    }

    /// A plot for each figure.
    pub(super) fn plots(&self, names: &[String]) -> Vec<Plot> {
        let Some(axis) = self.plotted_axis() else {
            return Vec::new();
        };
        let names = names.iter().take(PLOTS_MAX);
        names
            .map(|name| Plot::Curves(self.curves(name, axis)))
            .collect()
    }

    /// The axis with the most values, of several the first; none where nothing is swept.
    fn plotted_axis(&self) -> Option<usize> {
        let counts = (0..self.axes.len()).map(|axis| (axis, self.values(axis).len()));
        let most = counts.fold(None, |most: Option<(usize, usize)>, it| match most {
            Some(most) if most.1 >= it.1 => Some(most),
            _ => Some(it),
        });
        most.filter(|(_, count)| *count > 1).map(|(axis, _)| axis)
    }

    /// Values of an axis, in the order in which they were run.
    fn values(&self, axis: usize) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for value in self.points.iter().filter_map(|it| it.values.get(axis)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        values
    }

    fn curves(&self, name: &str, axis: usize) -> Curves {
        let values = self.values(axis);
        let columns = self.columns();
        let mut series: Vec<Series> = Vec::new();
        let mut unit = String::new();
        for point in &self.points {
            let Some(at) = values.iter().position(|it| *it == point.values[axis]) else {
                continue;
            };
            let row = point.row(name);
            if let Some(row) = row {
                unit.clone_from(&row.unit);
            }
            for column in 0..columns.as_ref().map_or(1, Vec::len) {
                let kernel = columns.as_ref().map(|it| it[column].as_str());
                let own = self.others(point, axis, kernel);
                let known = series.iter().position(|it| it.name == own);
                let known = known.unwrap_or_else(|| {
                    series.push(Series {
                        name: own,
                        points: vec![None; values.len()],
                    });
                    series.len() - 1
                });
                series[known].points[at] = row.and_then(|row| measured(row, column));
            }
        }
        Curves {
            title: match unit.as_str() {
                "" => name.to_owned(),
                unit => format!("{name} ({unit})"),
            },
            axis: self.axes[axis].clone(),
            values,
            series,
        }
    }

    /// What a curve is of: the kernel, and the values of the other axes.
    fn others(&self, point: &Point, axis: usize, kernel: Option<&str>) -> String {
        let pairs = self.axes.iter().zip(&point.values).enumerate();
        let pairs = pairs.filter(|(at, _)| *at != axis);
        let pairs = pairs.map(|(_, (name, value))| format!("{name}={value}"));
        let parts: Vec<String> = kernel.map(str::to_owned).into_iter().chain(pairs).collect();
        parts.join(", ")
    }
}

/// Mean and standard deviation of a column, if it has that row and the mean is finite.
fn measured(row: &ComparedRow, column: usize) -> Option<(f64, f64)> {
    let mean = row.exact_values.get(column).copied().flatten()?;
    let spread = row.spreads.get(column).copied().flatten().unwrap_or(0.0);
    mean.is_finite()
        .then(|| (mean, mean.abs() * spread / 100.0))
}
