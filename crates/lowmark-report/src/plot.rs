//! What a plot shows, before it is drawn ([`crate::html`]): figures, names, and the sentence that says the same.

use crate::table::Role;

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub enum Plot {
    /// Courses over one time, and waits below them.
    Course(Course),
    /// Figures by name, each with its interval.
    Intervals(Intervals),
    /// A figure along a parameter.
    Curves(Curves),
    /// Parts of a whole.
    Shares(Shares),
}

/// Courses over one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// What it is of.
    pub title: String,
    /// Begin, s by the clock of the trace.
    pub begin_s: f64,
    /// Length, s.
    pub length_s: f64,
    /// The courses, the first on top.
    pub panels: Vec<Panel>,
    /// Waits by their begin.
    pub waits: Vec<Bar>,
}

/// One course: values at even distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// The values, each of an equal part of the time.
    pub values: Vec<f64>,
    /// The value at the top of the panel; more than 0.
    pub full: f64,
    /// What that is, in words.
    pub scale: String,
    /// Whether it is time for which tasks wait.
    pub waits: bool,
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name, with its length.
    pub name: String,
    /// Begin, s by the same clock.
    pub begin_s: f64,
    /// End, s.
    pub end_s: f64,
}

/// Figures by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// What they are.
    pub title: String,
    /// What the axis shows, with its unit.
    pub axis: String,
    /// What the interval of a row is, in a sentence.
    pub remark: String,
    /// The rows, the first on top.
    pub rows: Vec<IntervalRow>,
}

/// A figure with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// Its name.
    pub name: String,
    /// The figure, in the unit of the axis; finite.
    pub value: f64,
    /// Where it may lie, if that is known; finite.
    pub interval: Option<[f64; 2]>,
    /// The figure in words.
    pub words: String,
    /// What it is.
    pub role: Role,
}

/// A figure along a parameter, a curve for each series.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The figure with its unit.
    pub title: String,
    /// The parameter.
    pub axis: String,
    /// Its values in their order.
    pub values: Vec<String>,
    /// The curves.
    pub series: Vec<Series>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name; empty where there is one curve.
    pub name: String,
    /// At each value the mean, and half of the stretch in which repeats lie; none where nothing was measured.
    pub points: Vec<Option<(f64, f64)>>,
}

/// Parts of a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// What they are parts of.
    pub title: String,
    /// Name, number and looks of each.
    pub parts: Vec<(String, usize, Role)>,
}

impl Plot {
    /// What it is of.
    pub fn title(&self) -> &str {
        match self {
            Plot::Course(it) => &it.title,
            Plot::Intervals(it) => &it.title,
            Plot::Curves(it) => &it.title,
            Plot::Shares(it) => &it.title,
        }
    }

    /// What it shows, for who does not see it.
    pub fn description(&self) -> String {
        match self {
            Plot::Course(it) => it.description(),
            Plot::Intervals(it) => it.description(),
            Plot::Curves(it) => it.description(),
            Plot::Shares(it) => it.description(),
        }
    }
}

impl Course {
    fn description(&self) -> String {
        let panels = self.panels.iter();
        let panels = panels.map(|panel| format!("{}, {}", panel.name, panel.scale));
        let mut text = format!(
            "From {:.3} s, for {:.3} s: {}.",
            self.begin_s,
            self.length_s,
            panels.collect::<Vec<_>>().join("; ")
        );
        let bars = self.waits.iter();
        let bars: Vec<String> = bars
            .map(|bar| format!("{} from {:.3} s", bar.name, bar.begin_s))
            .collect();
        if !bars.is_empty() {
            text += &format!(" Waits: {}.", bars.join("; "));
        }
        text
    }
}

impl Intervals {
    fn description(&self) -> String {
        let row = |row: &IntervalRow| {
            let interval = row
                .interval
                .map(|[low, high]| format!(" (interval {low:.1} to {high:.1})"));
            format!(
                "{}: {}{}",
                row.name,
                row.words,
                interval.unwrap_or_default()
            )
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("{}. {}.", self.axis, rows.join("; "))
    }
}

impl Curves {
    fn description(&self) -> String {
        let curve = |series: &Series| {
            let points = self.values.iter().zip(&series.points);
            let points = points.map(|(value, point)| match point {
                Some((mean, _)) => format!("{value}: {mean:.2}"),
                None => format!("{value}: nothing"),
            });
            let name = match series.name.as_str() {
                "" => String::new(),
                name => format!("{name}: "),
            };
            format!("{name}{}", points.collect::<Vec<_>>().join(", "))
        };
        let curves: Vec<String> = self.series.iter().map(curve).collect();
        format!("By {}. {}.", self.axis, curves.join("; "))
    }
}

impl Shares {
    fn description(&self) -> String {
        let parts = self.parts.iter();
        let parts = parts.map(|(name, number, _)| format!("{number} {name}"));
        format!("{}.", parts.collect::<Vec<_>>().join(", "))
    }
}
