//! The placed picture as SVG: one colour a family, dark text on light boxes, lines in the colour of their source.
//!
//! It knows no policy. **Invariant:** the text is well-formed XML whatever names hold, needs no script and no font of
//! its own, and the same picture gives the same bytes.

use super::picture::{Bearing, Column, Edge, Node, Picture};
use super::place::{Area, Ends, Heading, Placed};
use chorus_spec::Family;
use std::fmt::Write as _;

/// Step between the hues of neighbouring families, in degrees: the golden angle keeps any few of them apart.
const HUE_STEP: f64 = 137.508;
/// Hue of the first family: blue, so that the commonest lines are not in the colour of those against.
const HUE_START: f64 = 250.0;
const INK: &str = "#1b1f24";
const QUIET: &str = "#57606a";
const AGAINST: &str = "#b42318";

const STYLE: &str = "\
text { font-family: ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 11px; }
.title { font-size: 13px; font-weight: 600; } .name { font-size: 15px; font-weight: 600; }
.small { font-size: 9.5px; }
.heading { font-size: 10px; font-weight: 600; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.edge { fill: none; stroke-opacity: .4; } .against { stroke-opacity: .28; } .node rect { stroke-width: 1; }
svg:has(.node:hover) .edge { stroke-opacity: .06; }
";

/// The whole drawing.
pub(super) fn svg(name: &str, picture: &Picture, placed: &Placed) -> String {
    let (width, height) = (placed.width, placed.height + 26.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escape(name),
        highlights(picture),
    );
    text(&mut out, "name", (28.0, 22.0), INK, name);
    for Heading { x, y, text: title } in &placed.titles {
        text(&mut out, "title", (*x, *y + 8.0), QUIET, title);
    }
    for (edge, ends) in picture.edges.iter().zip(&placed.lines) {
        line(&mut out, picture, edge, ends);
    }
    for Heading { x, y, text: heading } in &placed.headings {
        text(&mut out, "heading", (*x, *y), QUIET, heading);
    }
    for (at, (node, area)) in picture.nodes.iter().zip(&placed.boxes).enumerate() {
        boxed(&mut out, at, node, area);
    }
    legend(&mut out, placed.height + 8.0);
    out.push_str("</svg>\n");
    out
}

/// With the pointer over a box, its lines come forward; the browser does it alone.
fn highlights(picture: &Picture) -> String {
    let rule = |at: usize| format!("svg:has(#n{at}:hover) .n{at} {{ stroke-opacity: .95; }}\n");
    (0..picture.nodes.len()).map(rule).collect()
}

fn line(out: &mut String, picture: &Picture, edge: &Edge, ends: &Ends) {
    let ((x1, y1), (x2, y2)) = (ends.from, ends.to);
    let bend = if ends.is_bow { -26.0 } else { (x2 - x1) * 0.45 };
    let other = if ends.is_bow { -26.0 } else { -bend };
    let path = format!("M{x1:.1} {y1:.1}C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1}", x1 + bend, x2 + other);
    let source = picture.nodes.get(edge.from);
    let colour = match edge.bearing {
        Bearing::Against => AGAINST.to_owned(),
        Bearing::For => source.map(stroke).unwrap_or_default(),
    };
    // Lines against are many and say less: a rule names all that it excludes.
    let (class, dash, scale) = match edge.bearing {
        Bearing::Against => ("edge against", " stroke-dasharray=\"4 3\"", 0.5),
        Bearing::For => ("edge", "", 1.0),
    };
    let width = 0.8 + 1.4 * scale * edge.weight.min(1.0);
    let _ = writeln!(
        out,
        "<path class=\"{class} n{} n{}\" d=\"{path}\" stroke=\"{colour}\" stroke-width=\"{width:.2}\"{dash}/>",
        edge.from, edge.to
    );
}

fn boxed(out: &mut String, at: usize, node: &Node, area: &Area) {
    let Area { x, y, width, height } = *area;
    let _ = write!(
        out,
        "<g class=\"node\" id=\"n{at}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"5\" fill=\"{}\" stroke=\"{}\"/>",
        escape(&hint(node)),
        fill(node),
        stroke(node),
    );
    if node.column == Column::Decisions {
        text(out, "", (x + 9.0, y + 14.0), INK, &node.label);
        text(out, "small", (x + 9.0, y + 27.0), QUIET, &node.note);
    } else {
        text(out, "", (x + 9.0, y + 14.5), INK, &node.label);
        if !node.note.is_empty() {
            let _ = write!(
                out,
                "<text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" fill=\"{QUIET}\" text-anchor=\"end\">{}</text>",
                x + width - 9.0,
                y + 14.0,
                escape(&node.note)
            );
        }
    }
    out.push_str("</g>\n");
}

fn hint(node: &Node) -> String {
    let name =
        if node.group.is_empty() { node.label.clone() } else { format!("{} {}", node.group, node.label) };
    if node.hint.is_empty() { name } else { format!("{name}: {}", node.hint) }
}

fn legend(out: &mut String, y: f64) {
    let _ = writeln!(
        out,
        "<path d=\"M28 {0:.1}h26\" stroke=\"{QUIET}\" stroke-width=\"1.6\"/><path d=\"M250 {0:.1}h26\" \
         stroke=\"{AGAINST}\" stroke-width=\"1.6\" stroke-dasharray=\"4 3\"/>",
        y - 3.5
    );
    text(out, "small", (60.0, y), QUIET, "counts for it (thicker: greater weight)");
    text(
        out,
        "small",
        (282.0, y),
        QUIET,
        "counts against it (NOT, or a negative weight)      ◆ member of a partition",
    );
}

fn text(out: &mut String, class: &str, (x, y): (f64, f64), colour: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = write!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{}</text>", escape(text));
}

/// The hue of a box, in degrees; `None` is grey.
fn hue(node: &Node) -> Option<f64> {
    let family = node.family?;
    let at = Family::ALL.iter().position(|other| *other == family)?;
    Some((f64::from(u32::try_from(at).unwrap_or_default()) * HUE_STEP + HUE_START).rem_euclid(360.0))
}

fn fill(node: &Node) -> String {
    match (node.column, hue(node)) {
        (_, Some(hue)) => format!("hsl({hue:.0},70%,93%)"),
        (Column::Decisions, None) => "#eef2f6".to_owned(),
        (Column::Models, None) => "#f6f1e7".to_owned(),
        _ => "#f4f4f5".to_owned(),
    }
}

fn stroke(node: &Node) -> String {
    match (node.column, hue(node)) {
        (_, Some(hue)) => format!("hsl({hue:.0},48%,45%)"),
        (Column::Decisions, None) => "#4a6785".to_owned(),
        (Column::Models, None) => "#8a6d3b".to_owned(),
        _ => "#71717a".to_owned(),
    }
}

/// Text as XML; characters that XML cannot hold are left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}
