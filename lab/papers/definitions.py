"""The codes of the papers, written down once more from the papers.

Nothing here is taken from Paritas, so that an error there does not hide one here. Each function returns a bit matrix as
lists of 0 and 1: a row for each parity cell, and a column for each data cell, node by node (of delayed parity, stripe by stripe).
`tests.py` compares them with the matrices that `paritas codes --matrix` prints, bit by bit.
"""

import functools
import itertools
import math
from typing import Iterable

Matrix = list[list[int]]
# A primitive polynomial for each width (Plank, Luo, Rozier, Schuman: Jerasure 2.0, and the Cauchy codes of Blömer et al.).
POLYNOMIALS = {2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x89, 8: 0x11D}


def matrix_of(rows: Iterable[Iterable[tuple[int, int]]], nodes: int, cells: int) -> Matrix:
    """Turns rows into bits. A row lists data cells, as node and number in the node; a cell that is listed twice cancels."""
    found = []
    for row in rows:
        bits = [0] * (nodes * cells)
        for node, cell in row:
            bits[node * cells + cell] ^= 1
        found.append(bits)
    return found


def row_parity(k: int, w: int) -> list[list[tuple[int, int]]]:
    return [[(node, row) for node in range(k)] for row in range(w)]


def rdp(k: int, p: int) -> Matrix:
    """Corbett et al.: the diagonals go over the row parity as well, which has the column p - 1; the last one is not stored.
    Fewer data nodes than p - 1 have the last columns before it; which columns are left out is free."""
    rows, first = row_parity(k, p - 1), p - 1 - k
    diagonals = []
    for diagonal in range(p - 1):
        cells = [(node, row) for node in range(k) if (row := (diagonal - node - first) % p) < p - 1]
        row = (diagonal - (p - 1)) % p
        diagonals.append(cells + (rows[row] if row < p - 1 else []))
    return matrix_of(rows + diagonals, k, p - 1)


def slope(k: int, p: int, sign: int) -> list[list[tuple[int, int]]]:
    """The diagonals of EVENODD, with the adjuster: the diagonal that is not stored is added to each of them."""
    diagonal = lambda number: [(node, (number - sign * node) % p) for node in range(k) if (number - sign * node) % p < p - 1]
    return [diagonal(number) + diagonal(p - 1) for number in range(p - 1)]


def evenodd(k: int, p: int) -> Matrix:
    """Blaum, Brady, Bruck, Menon."""
    return matrix_of(row_parity(k, p - 1) + slope(k, p, 1), k, p - 1)


def star(k: int, p: int) -> Matrix:
    """Huang and Xu: EVENODD, and diagonals of the other slope."""
    return matrix_of(row_parity(k, p - 1) + slope(k, p, 1) + slope(k, p, -1), k, p - 1)


def xcode(n: int) -> Matrix:
    """Xu and Bruck: n nodes, each with n - 2 data cells and two parity cells, the one on a diagonal of slope 1, the other of
    slope -1. All of the one slope come first."""
    cells = lambda node, sign: [((node + sign * (row + 2)) % n, row) for row in range(n - 2)]
    return matrix_of([cells(node, sign) for sign in (1, -1) for node in range(n)], n, n - 2)


def liberation(k: int, w: int) -> Matrix:
    """Plank: identities that are shifted by the number of the node, and one further bit in each but the first."""
    rows = [[] for _ in range(w)]
    for node in range(k):
        for row in range(w):
            rows[row].append((node, (row + node) % w))
        if node:
            row = node * (w - 1) // 2 % w
            rows[row].append((node, (row + node - 1) % w))
    return matrix_of(row_parity(k, w) + rows, k, w)


def blaum_roth(k: int, w: int) -> Matrix:
    """Blaum and Roth, the form with the fewest ones; w + 1 is prime. A row that would be shifted to the cell w, which does not
    exist, has the cells j - 1 and j/2 - 1 instead, where j is the number of the node and is halved modulo w + 1."""
    p = w + 1
    half = (p + 1) // 2
    rows: list[list[tuple[int, int]]] = [[] for _ in range(w)]
    for node in range(k):
        for row in range(w):
            cell = (row + node) % p
            cells = [cell] if cell < w else [node - 1, node * half % p - 1]
            rows[row].extend((node, cell) for cell in cells)
    return matrix_of(row_parity(k, w) + rows, k, w)


@functools.cache
def times(one: int, other: int, w: int) -> int:
    """The product of two elements of GF(2^w)."""
    product = 0
    for bit in range(w):
        if other >> bit & 1:
            product ^= one << bit
    for bit in range(2 * w - 2, w - 1, -1):
        if product >> bit & 1:
            product ^= POLYNOMIALS[w] << (bit - w)
    return product


@functools.cache
def inverse(element: int, w: int) -> int:
    return next(other for other in range(1, 1 << w) if times(element, other, w) == 1)


def bits_of(elements: list[list[int]], w: int) -> Matrix:
    """Blömer et al.: an element becomes w x w bits, whose column c has the bits of the element times x^c."""
    return [
        [times(element, 1 << column, w) >> bit & 1 for element in row for column in range(w)]
        for row in elements for bit in range(w)
    ]  # fmt: skip


def cauchy_original(k: int, m: int, w: int) -> Matrix:
    """The Cauchy matrix of the points 0 to m - 1 for rows and m to m + k - 1 for columns."""
    return bits_of([[inverse(row ^ (m + column), w) for column in range(k)] for row in range(m)], w)


def cauchy(rows: list[int], columns: list[int], w: int, row_scale: list[int] | None = None, column_scale: list[int] | None = None) -> Matrix:
    """The Cauchy matrix of any points, whose rows and columns may be multiplied by elements."""
    by_row, by_column = row_scale or [1] * len(rows), column_scale or [1] * len(columns)
    element = lambda row, column: times(times(by_row[row], by_column[column], w), inverse(rows[row] ^ columns[column], w), w)
    return bits_of([[element(row, column) for column in range(len(columns))] for row in range(len(rows))], w)


def cauchy_good(k: int, m: int, w: int) -> Matrix:
    """Plank and Xu. For m = 2 the second row has the k elements whose bits have the fewest ones, smaller elements first among equals;
    else columns are divided by their first entry, and each further row by the entry that leaves it the fewest ones, if that is fewer."""
    ones = lambda element: sum(times(element, 1 << column, w).bit_count() for column in range(w))
    if m == 2:
        return bits_of([[1] * k, sorted(range(1, 1 << w), key=lambda element: (ones(element), element))[:k]], w)
    rows = [[times(inverse(row ^ (m + column), w), m + column, w) for column in range(k)] for row in range(m)]
    total = lambda row: sum(map(ones, row))
    # min takes the first of several; the row as it stands comes first, so that only a shorter one replaces it.
    divided = lambda row: [[times(element, inverse(divisor, w), w) for element in row] for divisor in row]
    return bits_of([rows[0], *(min([row, *divided(row)], key=total) for row in rows[1:])], w)


def anvin(k: int) -> Matrix:
    """Anvin's RAID-6: P is the sum, and Q the sum of 2^i times node i, in GF(2^8)."""
    powers = [1]
    while len(powers) < k:
        powers.append(times(powers[-1], 2, 8))
    return bits_of([[1] * k, powers], 8)


def spike(k: int, c: float, delta: float) -> tuple[float, int, float]:
    """Luby's robust soliton distribution, as docs/errata.md reads it: R/k, the degree s of the spike, and tau(s)."""
    reach = c * math.log(k / delta) * math.sqrt(k)
    return reach / k, max(2, math.ceil(k / reach)), reach * math.log(reach / delta) / k


def robust_soliton(k: int, c: float, delta: float) -> dict[int, float]:
    """The probability of each degree."""
    ripple, high, added = spike(k, c, delta)
    rho = {1: 1 / k} | {degree: 1 / (degree * (degree - 1)) for degree in range(2, k + 1)}
    tau = {degree: ripple / degree for degree in range(1, high)} | {high: added}
    total = sum(rho.values()) + sum(tau.values())
    return {degree: (rho[degree] + tau.get(degree, 0)) / total for degree in rho}


def delayed(base: Matrix, other: Matrix, k: int, m: int, m2: int, w: int) -> Matrix:
    """A group of delayed parity (Zhou, chapter 4): m2 stripes, the first m of which are encoded by `base`, the others by `other`.
    Parity i of a late stripe j also has parity j of stripe i, for i up to m. Rows and columns go stripe by stripe."""
    columns = k * m2 * w

    def part(matrix: Matrix, parity: int, stripe: int, bit: int) -> list[int]:
        """A parity cell of one stripe, over the data of all of them."""
        row, cells = matrix[parity * w + bit], [0] * columns
        for node in range(k):
            at = (stripe * k + node) * w
            cells[at : at + w] = row[node * w : (node + 1) * w]
        return cells

    def cell(parity: int, stripe: int, bit: int) -> list[int]:
        if stripe < m:
            return part(base, parity, stripe, bit)
        own = part(other, parity, stripe, bit)
        if parity >= m:
            return own
        return [one ^ two for one, two in zip(own, part(base, stripe, parity, bit))]

    return [cell(parity, stripe, bit) for stripe in range(m2) for parity in range(m2) for bit in range(w)]


def survives(matrix: Matrix, k: int, m: int) -> bool:
    """Whether a code of k data nodes and m parity nodes recovers its data from any k nodes. All nodes have equally many cells."""
    w = len(matrix[0]) // k
    rows = [int("".join(map(str, row)), 2) for row in matrix]
    cells = [[1 << (k * w - 1 - node * w - cell) for cell in range(w)] for node in range(k)]
    cells += [rows[at : at + w] for at in range(0, len(rows), w)]
    return all(rank([row for node in left for row in cells[node]]) == k * w for left in itertools.combinations(range(k + m), k))


def rank(rows: list[int]) -> int:
    """The rank of rows of bits, each kept as a number."""
    leading: dict[int, int] = {}
    for row in rows:
        while row and (top := row.bit_length()) in leading:
            row ^= leading[top]
        if row:
            leading[row.bit_length()] = row
    return len(leading)
