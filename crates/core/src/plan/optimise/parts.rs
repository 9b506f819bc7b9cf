//! Parts: rows that have nothing in common are shortened separately, and equal parts only once.
//!
//! A code that is made of stripes of another code has such rows. With delayed parity, 16+4 that
//! will become 16+8 has eight stripes: the first four are equal to each other, and so are the last
//! four. So two stripes are shortened instead of eight, and are refined for more rounds. Stripes of
//! the two kinds have something in common: cells of the first kind are added to parity of the
//! second. But each such cell is a temporary that only one row uses, so no pair of it is shared. It
//! counts as a result of one part and an input of the other, and does not make them one part.

use std::collections::HashMap;

use crate::plan::optimise::rows::{Columns, Rows};

/// Rows, divided into parts.
pub(crate) struct Parts {
    inputs: usize,
    outputs: usize,
    /// Number of rows.
    rows: usize,
    /// Each part, with the number of the entry of [`Parts::distinct`] that is equal to it.
    places: Vec<(RowPart, usize)>,
    /// The rows of all different parts, each over columns of its own.
    pub distinct: Vec<Rows>,
}

impl Parts {
    /// Divides rows into parts.
    pub(crate) fn of(rows: &Rows) -> Self {
        let mut known: HashMap<(usize, usize, Vec<Columns>), usize> = HashMap::new();
        let (mut places, mut distinct) = (Vec::new(), Vec::new());
        for part in RowPart::all(rows) {
            let own = part.own_rows(rows);
            let key = (part.inputs.len(), part.results.len(), own.clone());
            let number = *known.entry(key).or_insert(distinct.len());
            if number == distinct.len() {
                distinct.push(Rows::of_columns(part.inputs.len(), part.results.len(), own));
            }
            places.push((part, number));
        }
        let (inputs, outputs, rows) = (rows.inputs(), rows.outputs(), rows.len());
        Self { inputs, outputs, rows, places, distinct }
    }

    /// Joins the parts, with the rows that they have now.
    pub(crate) fn together(&self) -> Rows {
        let empty = vec![Columns::new(); self.rows];
        let mut whole = Rows::of_columns(self.inputs, self.outputs, empty);
        self.places.iter().for_each(|(part, now)| part.add_to(&mut whole, &self.distinct[*now]));
        whole.drop_unused();
        whole
    }
}

/// Columns of the whole, ascending.
#[derive(Default)]
struct RowPart {
    /// Inputs, and results of other parts.
    inputs: Vec<u32>,
    /// Outputs, and temporaries that another part uses.
    results: Vec<u32>,
    /// The other temporaries.
    temps: Vec<u32>,
}

impl RowPart {
    /// Returns the parts of rows, in the order of their first rows. Inputs that no row uses belong
    /// to no part.
    fn all(rows: &Rows) -> Vec<Self> {
        let mut users = vec![Vec::new(); rows.columns()];
        for (row, columns) in rows.iter().enumerate() {
            columns.iter().for_each(|&column| users[column as usize].push(rows.column_of(row)));
        }
        let is_temp = |column: u32| rows.row_of(column).is_some_and(|row| rows.is_temp(row));
        let mut groups = Groups::new(rows.columns());
        let mut links = Vec::new();
        for (column, users) in (0..).zip(&users) {
            match users[..] {
                [user] if is_temp(column) => links.push((user, column)),
                _ => users.iter().for_each(|&user| groups.join(user, column)),
            }
        }
        join_circles(&mut groups, &links);
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut parts: Vec<Self> = Vec::new();
        for column in (rows.inputs()..rows.columns()).map(|column| column as u32) {
            let group = groups.find(column);
            let number = *numbers.entry(group).or_insert(parts.len());
            parts.resize_with(parts.len().max(number + 1), Self::default);
            let mut elsewhere =
                users[column as usize].iter().filter(|&&at| groups.find(at) != group);
            match is_temp(column) && elsewhere.next().is_none() {
                true => parts[number].temps.push(column),
                false => parts[number].results.push(column),
            }
        }
        for (column, users) in (0..).zip(&users) {
            let Some(&user) = users.first() else { continue };
            let group = groups.find(user);
            if rows.row_of(column).is_none() || groups.find(column) != group {
                parts[numbers[&group]].inputs.push(column);
            }
        }
        parts
    }

    /// Returns the rows of this part over columns of its own: its inputs, results and temporaries.
    fn own_rows(&self, rows: &Rows) -> Vec<Columns> {
        let columns = self.inputs.iter().chain(&self.results).chain(&self.temps);
        let names: HashMap<u32, u32> = columns.copied().zip(0..).collect();
        let own = |&column: &u32| {
            let row = rows.row(column as usize - rows.inputs());
            sorted(row.iter().map(|column| names[column]))
        };
        self.results.iter().chain(&self.temps).map(own).collect()
    }

    /// Adds the shortened rows of this part to the rows of all parts.
    fn add_to(&self, whole: &mut Rows, shortened: &Rows) {
        let mut names: Vec<u32> = self.inputs.iter().chain(&self.results).copied().collect();
        let temps = shortened.len() - self.results.len();
        names.extend((whole.columns() as u32..).take(temps));
        let columns =
            |row: usize| sorted(shortened.row(row).iter().map(|&column| names[column as usize]));
        for (row, &result) in self.results.iter().enumerate() {
            whole.set(result as usize - whole.inputs(), columns(row));
        }
        (self.results.len()..shortened.len()).for_each(|row| _ = whole.push(columns(row)));
    }
}

fn sorted(columns: impl Iterator<Item = u32>) -> Columns {
    let mut columns: Columns = columns.collect();
    columns.sort_unstable();
    columns
}

/// Groups of columns. For each column, the column that it was joined to, or itself.
struct Groups(Vec<u32>);

impl Groups {
    fn new(columns: usize) -> Self {
        Self((0..columns as u32).collect())
    }

    /// Returns the column that stands for the group of a column.
    fn find(&self, mut column: u32) -> u32 {
        while self.0[column as usize] != column {
            column = self.0[column as usize];
        }
        column
    }

    /// Joins the groups of two columns.
    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.shortened(one), self.shortened(other));
        self.0[one.max(other) as usize] = one.min(other);
    }

    /// Does what [`Groups::find`] does, and also halves the path for the next search.
    fn shortened(&mut self, mut column: u32) -> u32 {
        while self.0[column as usize] != column {
            let next = self.0[column as usize];
            self.0[column as usize] = self.0[next as usize];
            column = next;
        }
        column
    }
}

/// Joins groups of columns that would wait for each other. A link says that the group of its first
/// column waits for the group of its second. Any result of a part may later depend on any input of
/// the part, when its row is expressed by another row of the part.
///
/// Groups that wait for each other are a strongly connected component. Kosaraju's method finds
/// them: it follows the links backwards, beginning with the groups that were finished last.
fn join_circles(groups: &mut Groups, links: &[(u32, u32)]) {
    let columns = groups.0.len();
    let (mut forth, mut back) = (vec![Vec::new(); columns], vec![Vec::new(); columns]);
    for &(user, used) in links {
        let (user, used) = (groups.find(user), groups.find(used));
        forth[user as usize].push(used);
        back[used as usize].push(user);
    }
    let (mut seen, mut finished) = (vec![false; columns], Vec::new());
    (0..columns as u32).for_each(|group| visit(&forth, group, &mut seen, &mut finished));
    let mut seen = vec![false; columns];
    for &group in finished.iter().rev() {
        let mut circle = Vec::new();
        visit(&back, group, &mut seen, &mut circle);
        circle.into_iter().for_each(|other| groups.join(group, other));
    }
}

/// Follows all links from a group to groups that have not been seen yet. Adds each such group to
/// `finished` after the groups that it leads to.
fn visit(links: &[Vec<u32>], from: u32, seen: &mut [bool], finished: &mut Vec<u32>) {
    if std::mem::replace(&mut seen[from as usize], true) {
        return;
    }
    let mut way = vec![(from, links[from as usize].iter())];
    while let Some((group, next)) = way.last_mut() {
        match next.next() {
            Some(&to) if !seen[to as usize] => {
                seen[to as usize] = true;
                way.push((to, links[to as usize].iter()));
            }
            Some(_) => {}
            None => {
                finished.push(*group);
                way.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::budget::Budget;
    use crate::plan::optimise::slp;
    use crate::plan::schedule::Schedule;

    fn rows(text: &str) -> Rows {
        Rows::new(&text.parse::<Schedule>().unwrap()).unwrap()
    }

    /// Two parts are alike, though their rows and columns are mixed. An output that is zero is a
    /// part, too.
    #[test]
    fn parts_that_are_alike_are_shortened_once() {
        let mut parts = Parts::of(&rows(
            "inputs 9 temps 0 outputs 6\n\
             o0 = i0 ^ i2 ^ i4\no1 = i1 ^ i3 ^ i5\no2 = i7 ^ i8\no3 = i0 ^ i2\no4 = i1 ^ i3\n\
             o5 = 0\n",
        ));
        let sizes = parts.distinct.iter().map(|part| (part.inputs(), part.outputs()));
        assert_eq!(sizes.collect::<Vec<_>>(), [(3, 2), (2, 1), (0, 1)]);
        for part in &mut parts.distinct {
            slp::extract_pairs(part, None, &mut Budget::unlimited());
        }
        let text = "inputs 9 temps 2 outputs 6\n\
                    t0 = i0 ^ i2\no0 = i4 ^ t0\nt1 = i1 ^ i3\no1 = i5 ^ t1\no2 = i7 ^ i8\n\
                    o3 = t0\no4 = t1\no5 = 0\n";
        assert_eq!(parts.together().schedule().unwrap().to_string(), text);
    }

    /// `t0` does not join parts, but its row is needed; `t1` is used twice.
    #[test]
    fn a_temporary_that_one_row_uses_is_a_result() {
        let text = "inputs 4 temps 2 outputs 3\nt0 = i0 ^ i1\no0 = i2 ^ t0\nt1 = i2 ^ i3\n\
                    o1 = t1\no2 = t1\n";
        let parts = Parts::of(&rows(text));
        let sizes = parts.distinct.iter().map(|part| (part.inputs(), part.outputs(), part.len()));
        assert_eq!(sizes.collect::<Vec<_>>(), [(3, 3, 4), (2, 1, 1)]);
        assert_eq!(parts.together().schedule().unwrap().to_string(), text);
    }

    /// `o0` waits for `t0`, and `o1` for `t1`. So the part of `o0` and `t1` would wait for that of
    /// `o1` and `t0`, and that part for the first.
    #[test]
    fn parts_that_would_wait_for_each_other_are_one() {
        let text = "inputs 4 temps 2 outputs 3\nt0 = i2 ^ i3\no0 = i0 ^ i1 ^ t0\nt1 = i0 ^ i1\n\
                    o1 = i2 ^ t1\no2 = i3\n";
        assert_eq!(Parts::of(&rows(text)).distinct.len(), 1);
        let text = text.replace("^ t1", "^ i3");
        assert_eq!(Parts::of(&rows(&text)).distinct.len(), 2);
    }

    /// The rows of these parts have the same numbers but differ in meaning: in the second part,
    /// column 2 is an output.
    #[test]
    fn parts_of_other_inputs_are_not_alike() {
        let text = "inputs 7 temps 0 outputs 4\no0 = i0 ^ i1 ^ i2\no1 = i0 ^ i1 ^ i3\n\
                    o2 = i4 ^ i5 ^ i6\no3 = i4 ^ i5 ^ o2\n";
        let mut parts = Parts::of(&rows(text));
        assert_eq!(parts.distinct.len(), 2);
        for part in &mut parts.distinct {
            slp::extract_pairs(part, None, &mut Budget::unlimited());
        }
        let text = "inputs 7 temps 2 outputs 4\nt0 = i0 ^ i1\no0 = i2 ^ t0\no1 = i3 ^ t0\n\
                    t1 = i4 ^ i5\no2 = i6 ^ t1\no3 = t1 ^ o2\n";
        assert_eq!(parts.together().schedule().unwrap().to_string(), text);
    }

    /// The parts of `o0` and of `o1` wait for each other, and for three parts: that of `t0` and
    /// `t1`, that of `t2`, and that of `t3`. These three do not wait for them.
    #[test]
    fn what_a_circle_waits_for_stays_out_of_it() {
        let text = "inputs 9 temps 6 outputs 2\nt0 = i0 ^ i1\nt1 = i0 ^ i2\nt2 = i3 ^ t1\n\
                    t3 = i4 ^ t2\nt4 = i7 ^ i8\nt5 = i5 ^ i6\n\
                    o0 = i5 ^ i6 ^ t0 ^ t3 ^ t4\no1 = i7 ^ t5\n";
        let parts = Parts::of(&rows(text));
        assert_eq!((parts.places.len(), parts.distinct.len()), (4, 3));
        parts.together().schedule().unwrap();
    }

    #[test]
    fn rows_that_are_connected_stay_together() {
        let text = "inputs 4 temps 1 outputs 2\nt0 = i0 ^ i1\no0 = i3 ^ t0\no1 = t0\n";
        let parts = Parts::of(&rows(text));
        assert_eq!(parts.distinct.len(), 1);
        assert_eq!(parts.together().schedule().unwrap().to_string(), text);
    }
}
