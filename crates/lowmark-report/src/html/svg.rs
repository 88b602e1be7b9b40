//! What plotters draws, as SVG whose colours are classes.
//!
//! The library lays out axes and shapes; this backend writes each shape as an element with a class for its [`Ink`], so
//! that the page's style sheet colours it, in the light and in the dark. Everything is escaped by the template engine.

use crate::table::printable;
use maud::{Markup, html};
use plotters::style::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};
use std::convert::Infallible;
use std::fmt::Write;

/// Width of a character of a font, as a part of its size: that of digits, which names and numbers rarely exceed.
const CHARACTER: f64 = 0.56;

/// A colour of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Ink {
    Text,
    Muted,
    Grid,
    Good,
    Bad,
    Unknown,
    /// What is measured, and the first of several curves.
    First,
    Second,
    Third,
    Fourth,
    Fifth,
    Sixth,
    /// Time for which tasks wait.
    Wait,
    /// What stands on a filled shape.
    Paper,
}

/// All of them with their classes.
const INKS: [(Ink, &str); 14] = [
    (Ink::Text, "text"),
    (Ink::Muted, "muted"),
    (Ink::Grid, "grid"),
    (Ink::Good, "good"),
    (Ink::Bad, "bad"),
    (Ink::Unknown, "unknown"),
    (Ink::First, "c1"),
    (Ink::Second, "c2"),
    (Ink::Third, "c3"),
    (Ink::Fourth, "c4"),
    (Ink::Fifth, "c5"),
    (Ink::Sixth, "c6"),
    (Ink::Wait, "wait"),
    (Ink::Paper, "paper"),
];

/// Inks of curves, which are told apart by their dashes as well.
pub(super) const CURVES: [Ink; 6] = [
    Ink::First,
    Ink::Second,
    Ink::Third,
    Ink::Fourth,
    Ink::Fifth,
    Ink::Sixth,
];

impl Ink {
    /// The colour that stands for it on the way through the library.
    pub(super) fn color(self) -> RGBColor {
        RGBColor(self as u8, 0, 0)
    }

    /// Its class.
    pub(super) fn class(self) -> &'static str {
        INKS[self as usize].1
    }
}

/// The class of a colour that [`Ink::color`] made.
fn class(color: BackendColor) -> &'static str {
    let at = usize::from(color.rgb.0);
    INKS.get(at).map_or("text", |(_, class)| class)
}

/// How wide a text will be about, px.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER
}

/// A text cut so that it is no wider than `width`, px.
pub(super) fn fitting(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let room = (width / (size * CHARACTER)).max(2.0) as usize - 1;
    text.chars().take(room).chain(['…']).collect()
}

/// The backend: elements are appended to a text.
pub(super) struct Svg<'o> {
    out: &'o mut String,
    size: (u32, u32),
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'o> Svg<'o> {
    /// A drawing of this size, px.
    pub(super) fn new(out: &'o mut String, size: (u32, u32)) -> Svg<'o> {
        Svg { out, size }
    }

    fn push(&mut self, element: Markup) -> Drawn {
        *self.out += &element.into_string();
        Ok(())
    }
}

/// Opacity, if it is not whole.
fn opacity(color: BackendColor) -> Option<f64> {
    (color.alpha < 1.0).then_some(color.alpha)
}

fn points(path: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut text = String::new();
    for (x, y) in path {
        // Writing to a string cannot fail.
        let _ = write!(text, "{x},{y} ");
    }
    text.truncate(text.trim_end().len());
    text
}

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        if color.alpha == 0.0 {
            return Ok(());
        }
        let class = class(color);
        self.push(html! { rect class={ "f-" (class) } x=(x) y=(y) width="1" height="1" {} })
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let color = style.color();
        if color.alpha == 0.0 {
            return Ok(());
        }
        let kind = if fill { "f-" } else { "s-" };
        let class = class(color);
        let (x, y) = upper_left;
        let (width, height) = (bottom_right.0 - x, bottom_right.1 - y);
        self.push(html! {
            rect class={ (kind) (class) } x=(x) y=(y) width=(width.max(0)) height=(height.max(0))
                opacity=[opacity(color)] {}
        })
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let color = style.color();
        if color.alpha == 0.0 {
            return Ok(());
        }
        let class = class(color);
        let width = (style.stroke_width() > 1).then_some(style.stroke_width());
        self.push(html! {
            polyline class={ "s-" (class) } points=(points(path)) stroke-width=[width] opacity=[opacity(color)] {}
        })
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let kind = if fill { "f-" } else { "s-" };
        let class = class(style.color());
        self.push(html! { circle class={ (kind) (class) } cx=(x) cy=(y) r=(radius) {} })
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vertices: I,
        style: &S,
    ) -> Drawn {
        let color = style.color();
        if color.alpha == 0.0 {
            return Ok(());
        }
        let class = class(color);
        self.push(html! {
            polygon class={ "f-" (class) } points=(points(vertices)) opacity=[opacity(color)] {}
        })
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let class = class(style.color());
        let anchor = match style.anchor().h_pos {
            HPos::Left => None,
            HPos::Right => Some("end"),
            HPos::Center => Some("middle"),
        };
        let lower = match style.anchor().v_pos {
            VPos::Top => "0.8em",
            VPos::Center => "0.35em",
            VPos::Bottom => "-0.2em",
        };
        let turn = match style.transform() {
            FontTransform::None => None,
            FontTransform::Rotate90 => Some(90),
            FontTransform::Rotate180 => Some(180),
            FontTransform::Rotate270 => Some(270),
        };
        let turn = turn.map(|degrees| format!("rotate({degrees} {x} {y})"));
        self.push(html! {
            text class={ "f-" (class) } x=(x) y=(y) dy=(lower) font-size=(style.size())
                text-anchor=[anchor] transform=[turn] { (printable(text)) }
        })
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = style.size();
        Ok((text_width(text, size).ceil() as u32, size.ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ink_has_a_class_of_its_own() {
        for (at, (ink, class)) in INKS.iter().enumerate() {
            assert_eq!(*ink as usize, at, "{class}");
            assert_eq!(ink.class(), *class);
            let others = INKS.iter().filter(|(_, other)| other == class);
            assert_eq!(others.count(), 1, "{class}");
        }
    }

    #[test]
    fn texts_are_cut_where_there_is_no_room() {
        assert_eq!(fitting("pgscan", 10.0, 100.0), "pgscan");
        assert_eq!(fitting("pgscan_direct", 10.0, 40.0), "pgscan…");
    }
}
