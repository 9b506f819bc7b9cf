//! A code's bit matrix as a picture: a row for every parity packet, and a column for every data
//! packet. A blue square is a one, a grey one is a zero, and nodes are separated by gaps.
//!
//! The ones of a row are one path, and the zeros a pattern, so a picture takes about ten bytes for
//! a one and none for a zero. Gaps are as wide as squares, so everything lies on the grid of the
//! pattern.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use paritas::Code;
use paritas::code::{CellId, Role};
use paritas_shards::{FileTarget, Output};

use crate::exit::Failure;
use crate::output::shown;

/// The side of a square with its margin, in pixels.
const GRID: usize = 12;

/// The approximate width of a label's character, in pixels.
const CHARACTER: usize = 6;

/// The most ones that are drawn: a picture of this many takes about ten megabytes.
const MOST_ONES: usize = 1_000_000;

/// Draws a code into a file. An existing one is replaced only if `force` is set.
pub(super) fn write(code: &Code, path: &Path, force: bool) -> Result<(), Failure> {
    if code.ones() > MOST_ONES {
        return Err(Failure::arguments(format!(
            "--svg: {} must have at most {MOST_ONES} ones to be drawn; got {}",
            code.spec(),
            code.ones()
        )));
    }
    let mut file = Output::create(FileTarget::new(path).force(force), None, None)?;
    let picture = picture(code).into_bytes();
    if file.takes_positions() {
        file.write_at(&[picture], 0)?;
    } else {
        let failed = |error| Failure::io(format!("writing {}", shown(path)), &error);
        file.write_all(&picture).map_err(failed)?;
    }
    file.commit()?;
    Ok(())
}

/// Returns the stored parity cells, whose generator rows are the bit matrix.
pub(super) fn parity_rows(code: &Code) -> impl Iterator<Item = CellId> {
    code.cells().filter(|&cell| code.cell(cell).role == Role::Parity)
}

/// The rows or the columns of the matrix: cells, grouped by node.
struct Axis {
    /// The grid position of the first cell of every group, its cells, and its label.
    groups: Vec<(usize, Range<usize>, String)>,
    /// The grid position after the last cell.
    end: usize,
}

impl Axis {
    /// Places cells one after the other from a grid position on, with a gap between nodes.
    fn new(code: &Code, cells: &[CellId], start: usize) -> Self {
        let node = |cell: &CellId| code.cell(*cell).place.map(|place| place.node.index());
        let (mut groups, mut at, mut first) = (Vec::new(), start, 0);
        for group in cells.chunk_by(|a, b| node(a) == node(b)) {
            groups.push((at, first..first + group.len(), label(node(&group[0]), group.len())));
            at += group.len() + 1;
            first += group.len();
        }
        Self { groups, end: at - 1 }
    }

    /// Returns the grid positions of all cells.
    fn positions(&self) -> Vec<usize> {
        let group = |(at, cells, _): &(usize, Range<usize>, String)| *at..at + cells.len();
        self.groups.iter().flat_map(group).collect()
    }
}

/// Returns the label of a group: the node, or only its number if there is no room for more.
fn label(node: Option<usize>, cells: usize) -> String {
    let Some(node) = node else { return "data".to_owned() };
    let long = format!("node {node}");
    let fits = CHARACTER * long.len() < GRID * (cells + 1);
    if fits { long } else { node.to_string() }
}

fn picture(code: &Code) -> String {
    let rows: Vec<CellId> = parity_rows(code).collect();
    let labels: Vec<String> = rows.iter().map(|&cell| code.cell_name(cell)).collect();
    let margin = labels.iter().map(String::len).max().unwrap_or(0).max(4);
    let across = Axis::new(code, code.data_cells(), margin);
    let down = Axis::new(code, &rows, 4);
    let mut svg = head(code, across.end, down.end);
    for (x, columns, label) in &across.groups {
        let (middle, y) = (GRID * (2 * x + columns.len()) / 2, GRID * 3 + 6);
        let _ = writeln!(svg, r#"<text x="{middle}" y="{y}" text-anchor="middle">{label}</text>"#);
        for (y, rows, _) in &down.groups {
            block(&mut svg, (*x, *y), (columns.len(), rows.len()));
        }
    }
    let columns = across.positions();
    for ((row, label), y) in rows.iter().zip(labels).zip(down.positions()) {
        let (right, base) = (GRID * margin - 6, GRID * y + 9);
        let _ = writeln!(svg, r#"<text x="{right}" y="{base}" text-anchor="end">{label}</text>"#);
        ones(&mut svg, code.row(*row).iter().map(|&data| columns[data as usize]), y);
    }
    svg.push_str("</svg>\n");
    svg
}

fn head(code: &Code, across: usize, down: usize) -> String {
    // The title may be wider than a small matrix.
    let title = format!("{}: {} ones", code.spec(), code.ones());
    let width = GRID * (across + 1).max(title.len() * 2 / 3 + 2);
    let height = GRID * (down + 1);
    let square = GRID - 2;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="10">
<title>{title}</title>
<defs><pattern id="zeros" width="{GRID}" height="{GRID}" patternUnits="userSpaceOnUse"><rect width="{square}" height="{square}" fill="#d4d4d4"/></pattern></defs>
<rect width="{width}" height="{height}" fill="white"/>
<text x="{GRID}" y="{GRID}" font-size="12">{title}</text>
"##
    )
}

/// Draws zeros over the block of a parity node and a data node.
fn block(svg: &mut String, (x, y): (usize, usize), (columns, rows): (usize, usize)) {
    let (x, y, width, height) = (GRID * x, GRID * y, GRID * columns, GRID * rows);
    let _ = writeln!(
        svg,
        r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="url(#zeros)"/>"#
    );
}

/// Draws the ones of a row.
fn ones(svg: &mut String, columns: impl Iterator<Item = usize>, row: usize) {
    let (y, side) = (GRID * row, GRID - 2);
    let squares: String =
        columns.map(|x| format!("M{} {y}h{side}v{side}h-{side}z", GRID * x)).collect();
    let _ = writeln!(svg, r##"<path d="{squares}" fill="#1f5fa8"/>"##);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(spec: &str) -> (Code, String) {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        let svg = picture(&code);
        (code, svg)
    }

    #[test]
    fn every_one_is_a_square_and_every_row_has_its_name() {
        for spec in ["10+4", "rdp:k=4", "xcode:n=5", "liber8tion:k=3"] {
            let (code, svg) = drawn(spec);
            assert_eq!(svg.matches("h10v10h-10z").count(), code.ones(), "{spec}");
            for row in parity_rows(&code) {
                let label = format!(">{}</text>", code.cell_name(row));
                assert_eq!(svg.matches(&label).count(), 1, "{spec}: {label}");
            }
        }
    }

    #[test]
    fn blocks_are_by_nodes() {
        let (_, svg) = drawn("cauchy:k=5,m=2,w=3");
        assert_eq!(svg.matches("url(#zeros)").count(), 5 * 2);
        let labels: Vec<bool> =
            (0..7).map(|node| svg.contains(&format!(">node {node}</text>"))).collect();
        assert_eq!(labels, [true, true, true, true, true, false, false]);
        assert_eq!([label(Some(7), 3), label(Some(7), 2), label(None, 1)], ["node 7", "7", "data"]);
    }

    /// Checks that every tag is closed, and that every square is inside the picture.
    #[test]
    fn the_picture_is_well_formed() {
        let (_, svg) = drawn("evenodd:k=3");
        let tags = svg.matches('<').count();
        let closed = svg.matches("/>").count() + 2 * svg.matches("</").count();
        assert_eq!(tags, closed);
        let number = |key: &str| -> usize {
            let rest = svg.split_once(key).unwrap().1;
            rest[..rest.find('"').unwrap()].parse().unwrap()
        };
        let (width, height) = (number("width=\""), number("height=\""));
        for square in svg.split('M').skip(1).filter_map(|s| s.split_once("h10v10")) {
            let (x, y) = square.0.split_once(' ').unwrap();
            assert!(x.parse::<usize>().unwrap() + 10 <= width);
            assert!(y.parse::<usize>().unwrap() + 10 <= height);
        }
    }

    /// One data node mirrored once: the only square, at the margin of the labels and below the
    /// heads.
    #[test]
    fn a_mirror_by_hand() {
        let (_, svg) = drawn("cauchy:k=1,m=1,w=1");
        assert!(svg.contains(r##"<path d="M48 48h10v10h-10z" fill="#1f5fa8"/>"##), "{svg}");
    }
}
