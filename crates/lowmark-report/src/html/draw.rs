//! Plots, drawn: each for a width, in px, as the shapes of an SVG.

use super::svg::{CURVES, Ink, Svg, fitting, text_width};
use crate::plot::{Bar, Course, Curves, IntervalRow, Intervals, Panel, Plot, Shares};
use crate::reclaim::timeline::short;
use crate::table::Role;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{AreaSeries, Cartesian2d, LineSeries};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};
use std::convert::Infallible;

/// Size of letters, px.
const FONT: f64 = 12.0;
/// What is left free at both sides of a plot, px.
const MARGIN: i32 = 8;
/// Width below which names stand above what they are of, not beside it, px.
const BESIDE_FROM: u32 = 500;

type Area<'o> = DrawingArea<Svg<'o>, Shift>;
type Chart<'c, 'o> = ChartContext<'c, Svg<'o>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;

/// The shapes of a plot and their height, px; none where it cannot be drawn.
pub(super) fn draw(plot: &Plot, width: u32) -> Option<(String, u32)> {
    let mut shapes = String::new();
    let height = match plot {
        Plot::Course(it) => course_height(it),
        Plot::Intervals(it) => rows_height(it, width),
        Plot::Curves(_) => CURVES_HEIGHT,
        Plot::Shares(_) => SHARES_HEIGHT,
    };
    let area = Svg::new(&mut shapes, (width, height)).into_drawing_area();
    let drawn = match plot {
        Plot::Course(it) => course(it, &area, width),
        Plot::Intervals(it) => intervals(it, &area, width),
        Plot::Curves(it) => curves(it, &area, width),
        Plot::Shares(it) => shares(it, &area, width),
    };
    drop(area);
    drawn.ok().map(|()| (shapes, height))
}

/// Looks of letters.
fn letters(ink: Ink, right: HPos, lower: VPos) -> TextStyle<'static> {
    let mut style: TextStyle<'static> = ("sans-serif", FONT).into_font().into();
    style.color = ink.color().to_backend_color();
    style.pos = Pos::new(right, lower);
    style
}

fn write(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    style: TextStyle<'static>,
) -> Result<(), DrawingAreaErrorKind<Infallible>> {
    area.draw(&Text::new(text.to_owned(), at, style))
}

/// Digits behind the point that tell marks on an axis of this length apart.
fn digits(length: f64, marks: f64) -> usize {
    let step = length / marks;
    if step > 0.0 && step.is_finite() {
        (-step.log10()).ceil().clamp(0.0, 6.0) as usize
    } else {
        0
    }
}

/// Height of a panel with its name, px.
const PANEL: i32 = 66;
/// Of that its name, px.
const NAME: i32 = 20;
/// Height of the bar of a wait, px.
const BAR: i32 = 18;
/// Height of an axis with its numbers, px.
const AXIS: i32 = 26;

fn course_height(course: &Course) -> u32 {
    let waits = match course.waits.len() {
        0 => 0,
        bars => NAME + BAR * bars as i32,
    };
    (PANEL * course.panels.len() as i32 + waits + AXIS) as u32
}

fn course(course: &Course, area: &Area<'_>, width: u32) -> Drawn {
    let mut top = 0;
    for panel in &course.panels {
        write(
            area,
            &panel.name,
            (MARGIN, top + 2),
            letters(Ink::Text, HPos::Left, VPos::Top),
        )?;
        let right = (width as i32 - MARGIN, top + 2);
        write(
            area,
            &panel.scale,
            right,
            letters(Ink::Muted, HPos::Right, VPos::Top),
        )?;
        let own = area
            .clone()
            .shrink((0, top + NAME), (width, (PANEL - NAME) as u32));
        draw_panel(course, panel, &own)?;
        top += PANEL;
    }
    if !course.waits.is_empty() {
        let name = "longest waits";
        write(
            area,
            name,
            (MARGIN, top + 2),
            letters(Ink::Text, HPos::Left, VPos::Top),
        )?;
        top += NAME;
        let height = BAR * course.waits.len() as i32;
        let own = area.clone().shrink((0, top), (width, height as u32));
        draw_waits(course, &own, width)?;
        top += height;
    }
    let own = area.clone().shrink((0, top - 1), (width, AXIS as u32 + 1));
    let mut chart = time_chart(course, &own, 1.0, AXIS as u32)?;
    let digits = digits(course.length_s, 6.0);
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_y_axis()
        .x_labels(if width < BESIDE_FROM { 4 } else { 8 })
        .x_label_formatter(&|s| format!("{s:.digits$} s"))
        .axis_style(Ink::Grid.color())
        .label_style(letters(Ink::Muted, HPos::Center, VPos::Top))
        .draw()
}

/// A chart over the time of a course; of all heights below `full`.
fn time_chart<'c, 'o>(
    course: &Course,
    area: &'c Area<'o>,
    full: f64,
    labels: u32,
) -> Result<Chart<'c, 'o>, DrawingAreaErrorKind<Infallible>> {
    let end_s = course.begin_s + course.length_s.max(1e-9);
    ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(MARGIN)
        .x_label_area_size(labels)
        .build_cartesian_2d(course.begin_s..end_s, 0.0..full)
}

fn draw_panel(course: &Course, panel: &Panel, area: &Area<'_>) -> Drawn {
    let mut chart = time_chart(course, area, panel.full, 0)?;
    let step = course.length_s / panel.values.len().max(1) as f64;
    // Each value holds for its part of the time.
    let corners = panel.values.iter().enumerate().flat_map(|(at, value)| {
        let begin = course.begin_s + at as f64 * step;
        [(begin, *value), (begin + step, *value)]
    });
    let ink = if panel.waits { Ink::Wait } else { Ink::First };
    let series = AreaSeries::new(corners, 0.0, ink.color().mix(0.3)).border_style(ink.color());
    chart.draw_series(series)?;
    let ends = [
        (course.begin_s, 0.0),
        (course.begin_s + course.length_s, 0.0),
    ];
    chart.draw_series([PathElement::new(ends, Ink::Grid.color())])?;
    Ok(())
}

fn draw_waits(course: &Course, area: &Area<'_>, width: u32) -> Drawn {
    let count = course.waits.len() as f64;
    let mut chart = time_chart(course, area, count, 0)?;
    let inner = f64::from(width) - f64::from(2 * MARGIN);
    let px = |s: f64| (s - course.begin_s) / course.length_s.max(1e-9) * inner;
    let least_s = 3.0 * course.length_s / inner;
    for (at, Bar { begin_s, end_s, .. }) in course.waits.iter().enumerate() {
        let middle = count - at as f64 - 0.5;
        let end_s = end_s.max(begin_s + least_s);
        let corners = [(*begin_s, middle + 0.3), (end_s, middle - 0.3)];
        chart.draw_series([Rectangle::new(corners, Ink::Wait.color().filled())])?;
    }
    for (at, bar) in course.waits.iter().enumerate() {
        let y = BAR * at as i32 + BAR / 2;
        let (begin, end) = (px(bar.begin_s), px(bar.end_s).min(inner));
        let on_right = inner - end >= begin;
        let (room, x, side) = if on_right {
            (inner - end, end as i32 + MARGIN + 5, HPos::Left)
        } else {
            (begin, begin as i32 + MARGIN - 4, HPos::Right)
        };
        let name = fitting(&bar.name, FONT, room - 6.0);
        write(area, &name, (x, y), letters(Ink::Muted, side, VPos::Center))?;
    }
    Ok(())
}

/// Height of a row with its name beside it, and above it, px.
const ROW: [i32; 2] = [24, 38];
/// Width of names beside rows, px.
const NAMES: i32 = 250;
/// Width of figures in words, px.
const WORDS: i32 = 130;

fn rows_height(intervals: &Intervals, width: u32) -> u32 {
    let row = ROW[usize::from(width < BESIDE_FROM)];
    (row * intervals.rows.len() as i32 + 2 * AXIS) as u32
}

/// How far the axis goes in both directions. A few values that are far beyond all others do not press these together:
/// they are drawn at the edge.
fn reach(rows: &[IntervalRow]) -> (f64, f64) {
    let ends = rows.iter().flat_map(|row| {
        let interval = row.interval.unwrap_or([row.value; 2]);
        [row.value, interval[0], interval[1]]
    });
    let ends: Vec<f64> = ends.collect();
    let mut sizes: Vec<f64> = rows.iter().map(|row| row.value.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let most = sizes.last().copied().unwrap_or(0.0);
    let usual = sizes.get(sizes.len() * 3 / 4).copied().unwrap_or(0.0);
    let limit = if usual > 0.0 && most > 4.0 * usual {
        2.0 * usual
    } else {
        f64::INFINITY
    };
    let least = ends.iter().copied().fold(0.0, f64::min).max(-limit);
    let most = ends.iter().copied().fold(0.0, f64::max).min(limit);
    if most > least {
        let pad = (most - least) * 0.04;
        let low = if least < 0.0 { least - pad } else { 0.0 };
        (low, if most > 0.0 { most + pad } else { 0.0 })
    } else {
        (-1.0, 1.0)
    }
}

fn ink(role: Role) -> Ink {
    match role {
        Role::Good => Ink::Good,
        Role::Bad => Ink::Bad,
        Role::Unknown => Ink::Unknown,
        Role::Plain | Role::Title | Role::Heading => Ink::First,
    }
}

fn intervals(intervals: &Intervals, area: &Area<'_>, width: u32) -> Drawn {
    let above = width < BESIDE_FROM;
    let row = ROW[usize::from(above)];
    let count = intervals.rows.len() as i32;
    let (left, right) = if above {
        (MARGIN, MARGIN)
    } else {
        (NAMES, WORDS)
    };
    let (low, high) = reach(&intervals.rows);
    let own = area
        .clone()
        .shrink((0, 0), (width, (row * count + AXIS) as u32));
    let mut chart = ChartBuilder::on(&own)
        .margin_left(left)
        .margin_right(right)
        .x_label_area_size(AXIS)
        .build_cartesian_2d(low..high, 0.0..f64::from(row * count))?;
    let digits = digits(high - low, 5.0);
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(if above { 4 } else { 6 })
        .max_light_lines(0)
        .bold_line_style(Ink::Grid.color())
        .axis_style(Ink::Grid.color())
        .x_label_formatter(&|value| format!("{:.digits$}", value + 0.0))
        .label_style(letters(Ink::Muted, HPos::Center, VPos::Top))
        .draw()?;
    let full = f64::from(row * count);
    let zero = [(0.0, 0.0), (0.0, full)];
    chart.draw_series([PathElement::new(zero, Ink::Muted.color())])?;
    for (at, it) in intervals.rows.iter().enumerate() {
        let middle = row * at as i32 + if above { row * 3 / 4 } else { row / 2 };
        mark(&mut chart, it, f64::from(row * count - middle), (low, high))?;
        let (name_y, width) = if above {
            (row * at as i32 + row / 4 + 2, width as i32 - 2 * MARGIN)
        } else {
            (middle, width as i32)
        };
        let words_px = text_width(&it.words, FONT) as i32;
        let room = if above {
            width - words_px - MARGIN
        } else {
            NAMES - 2 * MARGIN
        };
        let name = fitting(&it.name, FONT, f64::from(room));
        let style = letters(Ink::Text, HPos::Left, VPos::Center);
        write(area, &name, (MARGIN, name_y), style)?;
        let at = (
            if above {
                width + MARGIN
            } else {
                width - MARGIN
            },
            name_y,
        );
        write(
            area,
            &it.words,
            at,
            letters(ink(it.role), HPos::Right, VPos::Center),
        )?;
    }
    let below = (row * count + AXIS + 4, (left + width as i32 - right) / 2);
    let style = letters(Ink::Muted, HPos::Center, VPos::Top);
    write(area, &intervals.axis, (below.1, below.0), style)
}

/// The point of a row with its interval, or an arrow where it is beyond the axis.
fn mark(chart: &mut Chart<'_, '_>, row: &IntervalRow, y: f64, (low, high): (f64, f64)) -> Drawn {
    let ink = ink(row.role).color();
    let inside = |value: f64| value.clamp(low, high);
    if let Some([from, to]) = row.interval {
        let line = [(inside(from), y), (inside(to), y)];
        chart.draw_series([PathElement::new(line, ink.stroke_width(2))])?;
        for end in [from, to]
            .into_iter()
            .filter(|end| (low..=high).contains(end))
        {
            let cap = [(end, y - 4.0), (end, y + 4.0)];
            chart.draw_series([PathElement::new(cap, ink.stroke_width(2))])?;
        }
    }
    if (low..=high).contains(&row.value) {
        chart.draw_series([Circle::new((row.value, y), 4, ink.filled())])?;
    } else {
        let tip = inside(row.value);
        let base = tip - 0.018 * (high - low) * row.value.signum();
        let corners = [(tip, y), (base, y + 5.0), (base, y - 5.0)];
        chart.draw_series([Polygon::new(corners, ink)])?;
    }
    Ok(())
}

/// Height of a figure along a parameter, px.
const CURVES_HEIGHT: u32 = 210;
/// Width of the numbers beside it, px.
const NUMBERS: i32 = 58;
/// Most values of a parameter that are written.
const VALUES_MAX: usize = 8;

fn curves(curves: &Curves, area: &Area<'_>, width: u32) -> Drawn {
    let points = curves
        .series
        .iter()
        .flat_map(|it| it.points.iter().flatten());
    let ends = points.flat_map(|(mean, half)| [mean - half, mean + half]);
    let (mut low, mut high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    if !(low.is_finite() && high.is_finite()) {
        (low, high) = (0.0, 1.0);
    }
    // The axis begins at 0 unless that makes one line of all.
    if low >= 0.0 && high - low > 0.15 * high {
        low = 0.0;
    }
    let pad = if high > low { 0.06 * (high - low) } else { 1.0 };
    let floor = if low == 0.0 { 0.0 } else { low - pad };
    let digits = digits(high - floor, 4.0);
    let last = curves.values.len().saturating_sub(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(8)
        .margin_right(MARGIN)
        .x_label_area_size(2 * AXIS - 8)
        .y_label_area_size(NUMBERS)
        .build_cartesian_2d(-0.3..last + 0.3, floor..high + pad)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_labels(4)
        .max_light_lines(0)
        .bold_line_style(Ink::Grid.color())
        .axis_style(Ink::Grid.color())
        .y_label_formatter(&|value| {
            if value.abs() >= 1e4 {
                short(*value)
            } else {
                format!("{value:.digits$}")
            }
        })
        .label_style(letters(Ink::Muted, HPos::Right, VPos::Center))
        .draw()?;
    for (series, ink) in curves.series.iter().zip(CURVES.iter().cycle()) {
        let known = series.points.iter().enumerate();
        let known = known.filter_map(|(at, point)| Some((at as f64, (*point)?)));
        let line = known.clone().map(|(at, (mean, _))| (at, mean));
        chart.draw_series(LineSeries::new(line, ink.color().stroke_width(2)))?;
        for (at, (mean, half)) in known {
            let ends = [(at, mean - half), (at, mean + half)];
            chart.draw_series([PathElement::new(ends, ink.color())])?;
            chart.draw_series([Circle::new((at, mean), 3, ink.color().filled())])?;
        }
    }
    let step = curves.values.len().div_ceil(VALUES_MAX).max(1);
    let room = f64::from(width) / (curves.values.len().div_ceil(step) as f64 + 1.0);
    for (at, value) in curves.values.iter().enumerate().step_by(step) {
        let (x, y) = chart.backend_coord(&(at as f64, floor));
        let text = fitting(value, FONT, room);
        write(
            area,
            &text,
            (x, y + 5),
            letters(Ink::Muted, HPos::Center, VPos::Top),
        )?;
    }
    let middle = (NUMBERS + width as i32) / 2;
    let style = letters(Ink::Text, HPos::Center, VPos::Bottom);
    write(
        area,
        &curves.axis,
        (middle, CURVES_HEIGHT as i32 - 4),
        style,
    )
}

/// Height of parts of a whole, px.
const SHARES_HEIGHT: u32 = 30;

fn shares(shares: &Shares, area: &Area<'_>, width: u32) -> Drawn {
    let all: usize = shares.parts.iter().map(|(_, number, _)| number).sum();
    let inner = f64::from(width as i32 - 2 * MARGIN);
    let mut before = 0;
    let height = SHARES_HEIGHT as i32 - 4;
    for (_, number, role) in shares.parts.iter().filter(|(_, number, _)| *number > 0) {
        let px = |count: usize| MARGIN + (inner * count as f64 / all.max(1) as f64) as i32;
        let (begin, end) = (px(before), px(before + number));
        let corners = [(begin, 2), ((end - 2).max(begin + 1), height)];
        area.draw(&Rectangle::new(corners, ink(*role).color().filled()))?;
        let middle = ((begin + end) / 2, height / 2 + 1);
        if end - begin > 20 {
            let style = letters(Ink::Paper, HPos::Center, VPos::Center);
            write(area, &number.to_string(), middle, style)?;
        }
        before += number;
    }
    Ok(())
}
