//! Plots with their captions and legends.

use super::draw::draw;
use super::svg::CURVES;
use crate::plot::{Curves, Plot, Shares};
use crate::table::{Role, printable};
use maud::{Markup, PreEscaped, html};

/// Width of a plot on a screen, px.
const WIDE: u32 = 760;
/// Width of a plot on a phone, px, and of one of several side by side.
const SLIM: u32 = 360;

/// The figures of a page, which have numbers.
#[derive(Debug, Default)]
pub(super) struct Figures {
    count: usize,
}

impl Figures {
    /// The next one.
    pub(super) fn figure(&mut self, plot: &Plot) -> Markup {
        self.count += 1;
        let widths: &[(u32, &str)] = match plot {
            Plot::Curves(_) => &[(SLIM, "any")],
            _ => &[(WIDE, "wide"), (SLIM, "slim")],
        };
        html! {
            figure {
                figcaption { (printable(plot.title())) }
                @for (width, class) in widths { (self.drawing(plot, *width, class)) }
                (legend(plot))
            }
        }
    }

    fn drawing(&self, plot: &Plot, width: u32, class: &str) -> Markup {
        let description = plot.description();
        let description = printable(&description);
        let Some((shapes, height)) = draw(plot, width) else {
            return html! { p { (description) } };
        };
        let id = |part: &str| format!("{class}{}{part}", self.count);
        let (title, about) = (id("t"), id("d"));
        html! {
            svg class=(class) viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby={ (title) " " (about) } {
                title id=(title) { (printable(plot.title())) }
                desc id=(about) { (description) }
                (PreEscaped(shapes))
            }
        }
    }
}

fn legend(plot: &Plot) -> Markup {
    match plot {
        Plot::Course(_) => html! {},
        Plot::Intervals(it) => html! { p.remark { (printable(&it.remark)) } },
        Plot::Curves(it) => series(it),
        Plot::Shares(it) => parts(it),
    }
}

fn series(curves: &Curves) -> Markup {
    let named = curves.series.iter().filter(|it| !it.name.is_empty());
    html! {
        ul.legend {
            @for (series, ink) in named.zip(CURVES.iter().cycle()) {
                li {
                    svg.key viewBox="0 0 28 8" aria-hidden="true" {
                        polyline class={ "s-" (ink.class()) } points="1,4 27,4" stroke-width="2" {}
                    }
                    " " (printable(&series.name))
                }
            }
        }
    }
}

fn parts(shares: &Shares) -> Markup {
    let ink = |role: Role| match role {
        Role::Good => "good",
        Role::Bad => "bad",
        Role::Unknown => "unknown",
        Role::Plain | Role::Title | Role::Heading => "c1",
    };
    html! {
        ul.legend {
            @for (name, number, role) in shares.parts.iter().filter(|(_, number, _)| *number > 0) {
                li {
                    svg.key viewBox="0 0 28 8" aria-hidden="true" {
                        rect class={ "f-" (ink(*role)) } x="8" y="0" width="12" height="8" {}
                    }
                    " " (number) " " (printable(name))
                }
            }
        }
    }
}
