//! The way in which other tools spread a file over fragments.
//!
//! All follow one scheme: the file is cut into *stripes* of k *cells*. Cell j of a stripe goes to
//! fragment j, and a parity fragment holds one cell of parity for each stripe. A tool that splits a
//! file into k contiguous parts has one stripe of long cells. The tools differ in the size of a
//! cell and in the shape of the last stripe.

/// The shape of a last stripe that is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// All cells are equally long: the shortest multiple of this number of bytes that holds the
    /// data, which is padded.
    Even(u64),
    /// Data fills one cell after the other and ends in any of them. Parity cells are as long as the
    /// first cell, and computed as if zeros followed the data.
    Ragged,
}

/// The places of the bytes of a file of a certain length in fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentLayout {
    /// Number of data fragments.
    pub k: usize,
    /// Number of bytes of the file.
    pub length: u64,
    /// Number of bytes of a cell, at least 1.
    pub cell: u64,
    pub last: Last,
}

/// Consecutive bytes of the file that are consecutive in one fragment, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentRun {
    pub fragment: usize,
    /// Offset of the first byte in the fragment's payload.
    pub start: u64,
    pub length: u64,
}

impl FragmentRun {
    /// Cuts a run into runs of at most `most` bytes.
    pub fn chunks(self, most: usize) -> impl Iterator<Item = Self> {
        let chunk = move |at: u64| Self {
            start: self.start + at,
            length: (self.length - at).min(most as u64),
            ..self
        };
        (0..self.length).step_by(most).map(chunk)
    }
}

impl FragmentLayout {
    fn stripe(&self) -> u64 {
        self.cell.saturating_mul(self.k as u64)
    }

    fn stripes(&self) -> u64 {
        self.length.div_ceil(self.stripe())
    }

    /// Returns the number of the file's bytes in a stripe, and the length of its first cell.
    fn shape(&self, stripe: u64) -> (u64, u64) {
        let bytes = (self.length - stripe * self.stripe()).min(self.stripe());
        let cell = match self.last {
            _ if bytes == self.stripe() => self.cell,
            Last::Even(unit) => bytes.div_ceil(self.k as u64).next_multiple_of(unit),
            Last::Ragged => bytes.min(self.cell),
        };
        (bytes, cell)
    }

    /// Returns the runs of a stripe, in the order of the file.
    fn runs_of(self, stripe: u64) -> impl Iterator<Item = FragmentRun> {
        let ((bytes, cell), start) = (self.shape(stripe), stripe * self.cell);
        (0..self.k).map_while(move |fragment| {
            let before = (fragment as u64).saturating_mul(cell);
            let length = bytes.checked_sub(before)?.min(cell);
            (length > 0).then_some(FragmentRun { fragment, start, length })
        })
    }

    /// Returns all runs, in the order of the file.
    pub fn runs(self) -> impl Iterator<Item = FragmentRun> {
        (0..self.stripes()).flat_map(move |stripe| self.runs_of(stripe))
    }

    /// Returns the runs of the bytes that pad the last stripe, if its cells are equally long.
    pub fn padding(self) -> impl Iterator<Item = FragmentRun> {
        let last = self.stripes().checked_sub(1).filter(|_| self.last != Last::Ragged);
        last.into_iter().flat_map(move |stripe| {
            let ((bytes, cell), start) = (self.shape(stripe), stripe * self.cell);
            (0..self.k).filter_map(move |fragment| {
                let before = (fragment as u64).saturating_mul(cell);
                let used = bytes.saturating_sub(before).min(cell);
                let run = FragmentRun { fragment, start: start + used, length: cell - used };
                (run.length > 0).then_some(run)
            })
        })
    }

    /// Returns the length of a parity fragment in bytes. No fragment is longer.
    pub fn parity_length(&self) -> u64 {
        self.stripes().checked_sub(1).map_or(0, |last| last * self.cell + self.shape(last).1)
    }

    /// Returns the length of a fragment in bytes.
    pub fn fragment_length(&self, fragment: usize) -> u64 {
        let Some(last) = self.stripes().checked_sub(1) else { return 0 };
        if fragment >= self.k || self.last != Last::Ragged {
            return self.parity_length();
        }
        let mut runs = self.runs_of(last);
        last * self.cell + runs.find(|run| run.fragment == fragment).map_or(0, |run| run.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(k: usize, length: u64, cell: u64, last: Last) -> FragmentLayout {
        FragmentLayout { k, length, cell, last }
    }

    /// Returns fragments as strings, in which each byte of the file is a letter of its own.
    fn spread(layout: FragmentLayout) -> Vec<String> {
        let mut letters = 'a'..='z';
        let mut fragments = vec![Vec::new(); layout.k];
        for run in layout.runs() {
            assert_eq!(fragments[run.fragment].len() as u64, run.start);
            fragments[run.fragment].extend(letters.by_ref().take(run.length as usize));
        }
        fragments.into_iter().map(String::from_iter).collect()
    }

    #[test]
    fn cells_go_round() {
        let even = layout(3, 20, 4, Last::Even(1));
        assert_eq!(spread(even), ["abcdmno", "efghpqr", "ijklst"]);
        let padding = |layout: FragmentLayout| {
            let runs = layout.padding().map(|run| (run.fragment, run.start, run.length));
            runs.collect::<Vec<_>>()
        };
        assert_eq!(padding(even), [(2, 6, 1)]);
        assert_eq!(padding(layout(3, 5, 4, Last::Even(4))), [(1, 1, 3), (2, 0, 4)]);
        assert_eq!(padding(layout(3, 24, 4, Last::Even(1))), []);
        assert_eq!([0, 2, 3].map(|fragment| even.fragment_length(fragment)), [7, 7, 7]);
        let ragged = layout(3, 20, 4, Last::Ragged);
        assert_eq!(spread(ragged), ["abcdmnop", "efghqrst", "ijkl"]);
        assert_eq!([0, 1, 2, 3].map(|fragment| ragged.fragment_length(fragment)), [8, 8, 4, 8]);
        let padded = layout(3, 20, 4, Last::Even(4));
        assert_eq!(spread(padded), ["abcdmnop", "efghqrst", "ijkl"]);
        assert_eq!(padded.fragment_length(2), 8);
    }

    #[test]
    fn one_stripe_is_a_split() {
        let split = layout(3, 10, 4, Last::Even(4));
        assert_eq!(spread(split), ["abcd", "efgh", "ij"]);
        assert_eq!(split.fragment_length(2), 4);
        assert_eq!(spread(layout(4, 2, 1, Last::Even(1))), ["a", "b", "", ""]);
    }

    #[test]
    fn nothing_is_empty() {
        for last in [Last::Even(1), Last::Ragged] {
            let nothing = layout(3, 0, 4, last);
            assert_eq!((nothing.runs().count(), nothing.fragment_length(1)), (0, 0));
        }
    }
}
