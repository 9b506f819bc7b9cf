//! Tables of the elements of a small field, because a search multiplies millions of times.

use crate::define::field::Field;
use crate::plan::optimise::rows::Columns;

pub(super) struct Elements {
    field: Field,
    logarithms: Vec<u32>,
    /// Powers of the generator; the list is stored twice over.
    powers: Vec<u32>,
    /// For each element, the number of ones of its bit matrix.
    ones: Vec<u32>,
}

impl Elements {
    /// Makes the tables of a field whose polynomial is primitive, as the standard ones are.
    pub(super) fn new(field: Field) -> Self {
        let size = field.size() as usize;
        let generator = if size == 2 { 1 } else { 2 };
        let mut logarithms = vec![0; size];
        let mut powers = Vec::with_capacity(2 * size);
        let mut element = 1;
        for exponent in 0..2 * (size as u32 - 1) {
            powers.push(element);
            if (exponent as usize) < size - 1 {
                logarithms[element as usize] = exponent;
            }
            element = field.multiply(element, generator);
        }
        let ones = (0..size as u32).map(|element| field.ones(element) as u32).collect();
        Self { field, logarithms, powers, ones }
    }

    pub(super) fn size(&self) -> usize {
        self.logarithms.len()
    }

    pub(super) fn ones(&self, element: u32) -> u32 {
        self.ones[element as usize]
    }

    /// Returns the quotient of nonzero elements.
    pub(super) fn divide(&self, a: u32, b: u32) -> u32 {
        let order = self.size() as u32 - 1;
        let exponent = self.logarithms[a as usize] + order - self.logarithms[b as usize];
        self.powers[exponent as usize]
    }

    /// Returns the product of nonzero elements.
    pub(super) fn multiply(&self, a: u32, b: u32) -> u32 {
        self.powers[(self.logarithms[a as usize] + self.logarithms[b as usize]) as usize]
    }

    /// Returns the rows of the bit matrix of the coefficients; columns are bits of data symbols.
    pub(super) fn bit_rows(&self, coefficients: &[Vec<u32>]) -> Vec<Columns> {
        let w = self.field.width();
        let bit_rows = |row: &Vec<u32>| {
            let mut rows = vec![Columns::new(); w as usize];
            for (symbol, &coefficient) in row.iter().enumerate() {
                for column in 0..w {
                    let product =
                        if coefficient == 0 { 0 } else { self.multiply(coefficient, 1 << column) };
                    for (bit, row) in rows.iter_mut().enumerate() {
                        if product >> bit & 1 == 1 {
                            row.push(symbol as u32 * w + column);
                        }
                    }
                }
            }
            rows
        };
        coefficients.iter().flat_map(bit_rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_field() {
        for w in 1..=8 {
            let field = Field::new(w).unwrap();
            let elements = Elements::new(field);
            for a in 1..field.size() as u32 {
                assert_eq!(elements.ones(a) as usize, field.ones(a));
                let b = a.reverse_bits() >> (32 - w) | 1;
                assert_eq!(elements.multiply(a, b), field.multiply(a, b), "w = {w}");
                assert_eq!(elements.multiply(elements.divide(a, b), b), a, "w = {w}");
            }
        }
    }

    #[test]
    fn bit_rows_are_those_of_bit_matrices() {
        let field = Field::new(3).unwrap();
        let rows = Elements::new(field).bit_rows(&[vec![1, 5], vec![3, 7]]);
        for (row, coefficients) in [[1, 5], [3, 7]].iter().enumerate() {
            for bit in 0..3 {
                let expected: Vec<u32> = (0..2)
                    .flat_map(|symbol| {
                        let block = field.bit_matrix(coefficients[symbol]);
                        block.support(bit).map(|c| (3 * symbol + c) as u32).collect::<Vec<_>>()
                    })
                    .collect();
                assert_eq!(rows[3 * row + bit], expected);
            }
        }
    }
}
