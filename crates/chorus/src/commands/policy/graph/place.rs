//! Where boxes and lines stand: one column a kind, ordered so that lines cross little.
//!
//! It knows sizes of text by estimate, and no colours. **Invariant:** boxes of a column never overlap, and every box
//! lies within the drawing.

use super::picture::{Column, Edge, Node, Picture};
use std::collections::BTreeMap;

/// Average width of a character at the size of labels, in pixels.
const CHARACTER: f64 = 6.3;
/// Average width of a character at the size of notes.
const SMALL_CHARACTER: f64 = 5.2;
const PADDING: f64 = 9.0;
const ROW: f64 = 21.0;
const TWO_ROWS: f64 = 35.0;
const GAP: f64 = 5.0;
const HEADING: f64 = 19.0;
const GROUP_GAP: f64 = 8.0;
const MARGIN: f64 = 28.0;
const TITLE: f64 = 58.0;
/// Room for lines between two columns.
const BETWEEN: f64 = 150.0;
/// How far the lines of one box spread, as a share of its height.
const SPREAD: f64 = 0.7;

/// A rectangle, in pixels from the upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }
}

/// A text above boxes.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) text: String,
}

/// A line's ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
    /// Whether both boxes stand in one column, so that the line bows out to the left.
    pub(super) is_bow: bool,
}

/// The placed picture.
#[derive(Debug, Default)]
pub(super) struct Placed {
    pub(super) width: f64,
    pub(super) height: f64,
    /// By the number of the box.
    pub(super) boxes: Vec<Area>,
    /// By the number of the line.
    pub(super) lines: Vec<Ends>,
    pub(super) headings: Vec<Heading>,
    pub(super) titles: Vec<Heading>,
}

/// Places everything.
pub(super) fn place(picture: &Picture) -> Placed {
    let order = order(picture);
    let tallest = Column::ALL.map(|column| natural_height(picture, column_of(&order, column)));
    let inner = tallest.into_iter().fold(0.0, f64::max);
    let mut placed = Placed { boxes: vec![Area::default(); picture.nodes.len()], ..Placed::default() };
    let mut x = MARGIN;
    for column in Column::ALL {
        let members = column_of(&order, column);
        if members.is_empty() {
            continue;
        }
        let width = members.iter().filter_map(|at| picture.nodes.get(*at)).map(width).fold(90.0, f64::max);
        placed.titles.push(Heading { x, y: TITLE - 22.0, text: column.title().to_owned() });
        stack(picture, members, (x, width, inner), &mut placed);
        x += width + BETWEEN;
    }
    placed.width = x - BETWEEN + MARGIN;
    placed.height = TITLE + inner + MARGIN;
    placed.lines = lines(picture, &placed.boxes);
    placed
}

/// Members of each column, from top to bottom.
type Order = BTreeMap<Column, Vec<usize>>;

fn column_of(order: &Order, column: Column) -> &[usize] {
    order.get(&column).map(Vec::as_slice).unwrap_or_default()
}

/// Decisions stand as they win; every other column follows the middle of what it is joined to.
fn order(picture: &Picture) -> Order {
    let mut order = Order::new();
    for (at, node) in picture.nodes.iter().enumerate() {
        order.entry(node.column).or_default().push(at);
    }
    let mut height = BTreeMap::new();
    number(&order, Column::Decisions, &mut height);
    for column in [Column::Bands, Column::Scores, Column::Signals, Column::Models] {
        let middle = |at: usize| {
            let joined = picture.edges.iter().filter_map(|edge| match column {
                Column::Models if edge.to == at => height.get(&edge.from),
                Column::Models => None,
                _ if edge.from == at => height.get(&edge.to),
                _ => None,
            });
            mean(joined.copied())
        };
        let Some(members) = order.get_mut(&column) else { continue };
        let mut keyed: Vec<(f64, String, f64, usize)> = Vec::new();
        for at in members.iter().copied() {
            let group = picture.nodes.get(at).map(|node| node.group.clone()).unwrap_or_default();
            let peers =
                members.iter().filter(|peer| picture.nodes.get(**peer).map(|n| &n.group) == Some(&group));
            let of_group = mean(peers.map(|peer| middle(*peer)));
            // Bands of one mapping stand in the order of the mapping: it is the order of their score.
            let own = if column == Column::Bands { 0.0 } else { middle(at) };
            keyed.push((of_group, group, own, at));
        }
        keyed.sort_by(|a, b| {
            a.0.total_cmp(&b.0)
                .then_with(|| a.1.cmp(&b.1))
                .then_with(|| a.2.total_cmp(&b.2))
                .then(a.3.cmp(&b.3))
        });
        *members = keyed.into_iter().map(|(_, _, _, at)| at).collect();
        number(&order, column, &mut height);
    }
    order
}

/// Notes how far down each box of a column stands, from 0 to 1.
fn number(order: &Order, column: Column, height: &mut BTreeMap<usize, f64>) {
    let members = column_of(order, column);
    let count = count(members.len()).max(1.0);
    for (at, member) in members.iter().enumerate() {
        height.insert(*member, (self::count(at) + 0.5) / count);
    }
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut number) = (0.0, 0.0);
    for value in values {
        sum += value;
        number += 1.0;
    }
    // What is joined to nothing stands last.
    if number > 0.0 { sum / number } else { 2.0 }
}

fn has_two_rows(node: &Node) -> bool {
    node.column == Column::Decisions
}

fn height(node: &Node) -> f64 {
    if has_two_rows(node) { TWO_ROWS } else { ROW }
}

fn width(node: &Node) -> f64 {
    let (label, note) = (text_width(&node.label, CHARACTER), text_width(&node.note, SMALL_CHARACTER));
    let text = if has_two_rows(node) || note == 0.0 { label.max(note) } else { label + note + PADDING };
    text + 2.0 * PADDING
}

/// A wide character (of Chinese, Japanese, Korean) counts twice.
fn text_width(text: &str, character: f64) -> f64 {
    text.chars().map(|c| if u32::from(c) >= 0x2e80 { 2.0 * character } else { character }).sum()
}

/// The runs of boxes that share a group, in order.
fn groups<'p>(picture: &'p Picture, members: &[usize]) -> Vec<(&'p str, Vec<usize>)> {
    let mut all: Vec<(&str, Vec<usize>)> = Vec::new();
    for at in members {
        let Some(node) = picture.nodes.get(*at) else { continue };
        match all.last_mut() {
            Some((group, run)) if *group == node.group => run.push(*at),
            _ => all.push((&node.group, vec![*at])),
        }
    }
    all
}

fn natural_height(picture: &Picture, members: &[usize]) -> f64 {
    let boxes: f64 = members.iter().filter_map(|at| picture.nodes.get(*at)).map(|it| height(it) + GAP).sum();
    let headings = groups(picture, members).iter().filter(|(group, _)| !group.is_empty()).count();
    boxes + count(headings) * (HEADING + GROUP_GAP)
}

/// Stacks a column's boxes; a short column is spread over the height of the tallest.
fn stack(picture: &Picture, members: &[usize], (x, width, inner): (f64, f64, f64), placed: &mut Placed) {
    let groups = groups(picture, members);
    let natural = natural_height(picture, members);
    let has_groups = groups.iter().any(|(group, _)| !group.is_empty());
    let slots = if has_groups { groups.len() } else { members.len() };
    let spare = (inner - natural).max(0.0) / count(slots).max(1.0);
    let mut y = TITLE + spare / 2.0;
    for (group, run) in groups {
        if !group.is_empty() {
            placed.headings.push(Heading { x, y: y + HEADING - 6.0, text: group.to_owned() });
            y += HEADING;
        }
        for at in run {
            let Some((node, area)) = picture.nodes.get(at).zip(placed.boxes.get_mut(at)) else { continue };
            *area = Area { x, y, width, height: height(node) };
            y += area.height + GAP + if has_groups { 0.0 } else { spare };
        }
        if has_groups {
            y += GROUP_GAP + spare;
        }
    }
}

/// The ends of every line, spread over the sides of their boxes in the order of the other ends.
fn lines(picture: &Picture, boxes: &[Area]) -> Vec<Ends> {
    let area = |at: usize| boxes.get(at).copied().unwrap_or_default();
    let middle = |at: usize| area(at).y + area(at).height / 2.0;
    let port = |edge: &Edge, is_out: bool| {
        let (own, other) = if is_out { (edge.from, edge.to) } else { (edge.to, edge.from) };
        let mut peers: Vec<f64> = picture
            .edges
            .iter()
            .filter_map(|peer| match is_out {
                true if peer.from == own => Some(middle(peer.to)),
                false if peer.to == own => Some(middle(peer.from)),
                _ => None,
            })
            .collect();
        peers.sort_by(f64::total_cmp);
        let rank = peers.iter().filter(|y| **y < middle(other)).count();
        let share = (count(rank) + 0.5) / count(peers.len()).max(1.0) - 0.5;
        middle(own) + share * area(own).height * SPREAD
    };
    let ends = picture.edges.iter().map(|edge| {
        let (from, to) = (area(edge.from), area(edge.to));
        let is_bow = from.x >= to.x;
        let start = if is_bow { from.x } else { from.right() };
        Ends { from: (start, port(edge, true)), to: (to.x, port(edge, false)), is_bow }
    });
    ends.collect()
}
