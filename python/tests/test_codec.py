"""Codes in memory: the shared vectors, all kinds of buffers, and arguments that are wrong."""

import collections
import ctypes
import json
import os
import pickle
import signal
import sys
import threading
import time
from itertools import combinations
from pathlib import Path

import numpy
import paritas
import pytest

VECTORS = Path(__file__).parents[2] / "vectors" / "codes.json"
CASES = [
    case
    for case in json.loads(VECTORS.read_text())["cases"]
    # The package makes codes from specs alone, with the matrices of new objects.
    if case["default_pin"] and "data_rows" not in case and "parity" in case
]


def vector_data(case):
    length = case["rows"] * (case["stripes"] * case["packet"] + case.get("tail", 0))
    bytes_of = lambda shard: bytes(73 * (i + 1) * (shard + 1) % 251 for i in range(length))
    return [bytes_of(shard) for shard in range(case["k"])]


@pytest.mark.parametrize("spec", ["4+2", "10+4", "rdp:k=6", "evenodd:k=5", "isal-rs:k=6,m=3"])
def test_every_loss_is_restored(spec):
    codec = paritas.Codec(spec)
    count, tolerance = codec.code.nodes, codec.code.tolerance
    rng = numpy.random.default_rng(7)
    length = codec.shard_len(10_000)
    data = [rng.bytes(length) for _ in range(codec.data_shards)]
    shards = [*data, *codec.encode(data)]
    assert codec.verify(shards) == []
    for lost in combinations(range(count), tolerance):
        left = [None if node in lost else shard for node, shard in enumerate(shards)]
        assert [bytes(s) for s in codec.reconstruct(left)] == [bytes(s) for s in shards]
    with pytest.raises(paritas.LossError):
        codec.reconstruct([None] * (tolerance + 1) + shards[tolerance + 1 :])


def test_there_are_vectors():
    assert len(CASES) > 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["spec"])
def test_parity_is_that_of_the_vectors(case):
    """Prepared handles and codecs agree with the second opinion, where one packet size is asked."""
    codec = paritas.Codec(case["spec"], packet=case["packet"])
    parity = codec.encode(vector_data(case))
    assert [bytes(shard).hex() for shard in parity] == case["parity"]


def test_buffers_of_all_kinds_are_used_where_they_are():
    codec = paritas.Codec("4+2")
    length = 3 * 4096
    rows = numpy.random.default_rng(1).integers(0, 256, (4, length), dtype=numpy.uint8)
    expected = [bytes(shard) for shard in codec.encode([row.tobytes() for row in rows])]
    array = codec.encode(rows)
    assert isinstance(array, numpy.ndarray) and array.shape == (2, length)
    assert [row.tobytes() for row in array] == expected
    mixed = [bytes(rows[0]), bytearray(rows[1]), memoryview(rows[2]), rows[3].view(numpy.float64)]
    target = numpy.zeros((2, length), dtype=numpy.uint8)
    assert codec.encode(mixed, target) is target
    assert [row.tobytes() for row in target] == expected
    parts = [bytearray(length), numpy.zeros(length // 8)]
    codec.encode(tuple(mixed), parts)
    assert [bytes(part) for part in parts] == expected


def test_arrays_of_numbers_need_a_place_for_parity():
    codec = paritas.Codec("4+2")
    numbers = numpy.random.default_rng(2).normal(size=(4, 513))
    with pytest.raises(paritas.ParameterError, match="its items have 8 bytes"):
        codec.encode(numbers)
    expected = codec.encode(numbers.view(numpy.uint8))
    parity = numpy.zeros((2, 513))
    codec.encode(numbers, parity)
    assert (parity.view(numpy.uint8) == expected).all()


def test_update_changes_parity_in_place():
    codec = paritas.Codec("10+4")
    data = [bytearray([shard]) * codec.shard_len(10) for shard in range(10)]
    parity = codec.encode(data)
    new = bytes(reversed(range(256))) * (len(data[0]) // 256 + 1)
    new = new[: len(data[0])]
    codec.update(3, data[3], new, parity)
    data[3] = new
    assert codec.verify([*data, *parity]) == []
    parity[2][0] ^= 1
    assert codec.verify([*data, *parity]) == [12]


def test_a_prepared_reconstruction_restores_what_it_names():
    codec = paritas.Codec("4+2")
    data = codec.split(b"x" * 999)
    shards = [*data, *codec.encode(data)]
    prepared = codec.prepared([1, 2, 3, 5], [0, 4])
    made = [bytearray(len(data[0])) for _ in range(2)]
    prepared.run([shards[node] for node in (1, 2, 3, 5)], made)
    assert [bytes(shard) for shard in made] == [bytes(shards[0]), bytes(shards[4])]
    assert codec.join(data, 999) == b"x" * 999


def test_groups_in_one_buffer_are_coded_by_one_call():
    codec = paritas.Codec("4+2")
    groups = numpy.random.default_rng(1).integers(0, 256, (3, 6, 1200), numpy.uint8)
    codec.prepared().run_strided(groups, 1200)
    for group in groups:
        assert (codec.encode(group[:4]) == group[4:]).all()
    flat = bytearray(groups.tobytes())
    flat[1200:3600] = bytes(2400)
    codec.prepared([0, 3, 4, 5], [1, 2]).run_strided(flat, 1200)
    assert flat == groups.tobytes()
    for buffer, stride, message in [
        (flat[:-1], 1200, "got 21599 bytes"),
        (flat, 0, "at least one byte; got 0"),
        (bytes(flat), 1200, "read-only"),
    ]:
        with pytest.raises(paritas.ParameterError, match=message):
            codec.prepared().run_strided(buffer, stride)


@pytest.mark.parametrize(
    "act",
    [
        lambda codec, data: codec.encode(data[:3]),
        lambda codec, data: codec.encode([data[0][:-1], *data[1:]]),
        lambda codec, data: codec.encode(data, [bytes(len(data[0]))] * 2),
        lambda codec, data: codec.encode(data, [bytearray(3), bytearray(3)]),
        lambda codec, data: codec.encode(numpy.zeros((4, 12), numpy.uint8)[:, ::2]),
        lambda codec, data: codec.encode(numpy.zeros((2, 2, 12), numpy.uint8)),
        lambda codec, data: codec.encode(numpy.zeros(48, numpy.uint8)),
        lambda codec, data: codec.reconstruct(data),
        lambda codec, data: codec.update(4, data[0], data[1], [bytearray(12), bytearray(12)]),
        lambda codec, data: codec.prepared([0, 1, 2, 3], None),
        lambda codec, data: codec.code.schedule([0, 1, 2, 9], [4]),
        lambda codec, data: paritas.Codec("nonsense:k=3"),
        lambda codec, data: codec.encode(b"one buffer"),
    ],
)
def test_wrong_arguments_are_refused(act):
    codec = paritas.Codec("4+2")
    with pytest.raises(paritas.ParameterError) as error:
        act(codec, [bytes(12)] * 4)
    assert isinstance(error.value, ValueError) and error.value.kind


@pytest.mark.parametrize(
    "act, error, message, argument",
    [
        (lambda c, d: c.encode([*d[:3], 7]), TypeError, "not 'int'", "data[3]"),
        (lambda c, d: c.encode(d, (bytearray(12), "x" * 12)), TypeError, "not 'str'", "parity[1]"),
        (lambda c, d: c.encode(None), TypeError, "not 'NoneType'", "data"),
        (lambda c, d: c.encode([*d[:3], numpy.uint8(7)]), ValueError, "single number", "data[3]"),
        (lambda c, d: c.verify([*d, *d[:1], memoryview(bytes(24))[::2]]), ValueError, "contiguous", "shards[5]"),
        (lambda c, d: c.reconstruct([None, *d[:3], 7, None]), TypeError, "not 'int'", "shards[4]"),
        (lambda c, d: c.update(0, d[0], 7, d[:2]), TypeError, "not 'int'", "new"),
        (lambda c, d: c.join([*d[:2], 7, d[3]], 48), TypeError, "not 'int'", "shards[2]"),
        (lambda c, d: c.prepared("0123", [4]), TypeError, "a list of numbers of nodes is needed; got str", "have"),
        (lambda c, d: c.code.schedule([0], "4"), TypeError, "a list of numbers of nodes is needed; got str", "want"),
        (lambda c, d: paritas.Codec("4+2", packet=-1), OverflowError, "negative", "packet"),
    ],
)
def test_errors_name_the_argument(act, error, message, argument):
    codec = paritas.Codec("4+2")
    with pytest.raises(error, match=message) as raised:
        act(codec, [bytes(12)] * 4)
    assert raised.value.__notes__ == [f"while processing '{argument}'"]


def test_what_is_no_code_is_told():
    with pytest.raises(TypeError, match="`code` must be a Code or a spec such as '10[+]4'; got int"):
        paritas.Codec(4)


def test_shards_that_are_not_needed_must_have_the_right_length_too():
    codec = paritas.Codec("4+2")
    data = codec.split(os.urandom(1000))
    shards = [*data, *codec.encode(data)]
    length = len(data[0])
    with pytest.raises(paritas.ParameterError, match=f"shard 5 must have {length} bytes.*; got {length - 3}"):
        codec.reconstruct([None, *shards[1:5], shards[5][:-3]])


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda c, s: c.prepared([2**63], [4]), f"has 6 nodes; got node {2**63}"),
        (lambda c, s: c.update(2**63, s[0], s[1], s[4:]), f"has 6 nodes; got node {2**63}"),
        (lambda c, s: c.update(3, bytes(9), bytes(12), s[4:]), "old shard 3 has 9 bytes, and new shard 3 has 12"),
        (lambda c, s: c.verify([bytes(256)] * 6), "must be a multiple of 3 bytes; got 256"),
        (lambda c, s: c.join([*s, *s], 36), "must be 6; got 12"),
        (lambda c, s: paritas.LtEncoder("lt:k=10,n=3"), "n must be at least k = 10; got 3"),
        (lambda c, s: c.encode(s[:4], [s[4], bytearray(3)]), r"^parity\[1\] must have 9 bytes.*; got 3"),
        (lambda c, s: c.encode([*s[:3], bytes(3)]), r"^data\[3\] must have 9 bytes.*; got 3"),
        (lambda c, s: c.encode(s[:4], [s[4], bytes(9)]), r"^parity\[1\] is read-only memory"),
        (lambda c, s: c.reconstruct([None, *[b"ab"] * 5]), "^shard 1 must have a multiple of 3 bytes; got 2"),
        (lambda c, s: c.reconstruct([b"ab"] * 6), "^shard 0 must have a multiple of 3 bytes; got 2"),
        (
            lambda c, s: c.update(1, b"ab", b"cd", [bytearray(2), bytearray(2)]),
            "^`old` and `new` must have a multiple of 3 bytes",
        ),
        (lambda c, s: c.prepared().run_strided(bytearray(6 * 320), 320), "^a shard of `stride` bytes must have a multiple of 3"),
        (lambda c, s: c.update(0, s[0], s[0], [s[4], bytearray(3)]), r"^parity\[1\] must have 9 bytes.*; got 3"),
        (lambda c, s: c.prepared([1, 2, 3, 5], [0, 4]).run(s[:4], [s[4], bytearray(3)]), r"^targets\[1\] must have 9 bytes"),
        (lambda c, s: c.prepared([1, 2, 3, 5], [0]).run([*s[:3], bytes(3)], s[:1]), r"^targets\[0\] shares memory"),
        (lambda c, s: c.prepared([1, 2, 3, 5], [0]).run([*s[:3], bytes(3)], s[3:4]), r"^sources\[3\] must have 9 bytes"),
        (lambda c, s: c.prepared().run_strided(bytes(54), 9), "^buffer is read-only memory"),
        (lambda c, s: paritas.Codec("xcode:n=5").encode_nodes([bytes(5)] * 5), r"^nodes\[0\] is read-only memory"),
        (
            lambda c, s: paritas.Codec("xcode:n=5").encode_nodes([*(bytearray(5) for _ in range(4)), bytearray(10)]),
            r"^nodes\[4\] must have 5 bytes",
        ),
        (
            lambda c, s: paritas.Codec("dpg:k=6,m=2,m2=4,interleave=all").encode_nodes([bytearray(240) for _ in range(10)]),
            "encoding leaves rows of node 0 to a later stage",
        ),
        (lambda c, s: paritas.Code.from_matrix(["11"], k=2, m=1), "bits must be 0 or 1; got '1'"),
        (lambda c, s: paritas.Codec("\udc80"), r"a spec must be text in UTF-8; got '\\udc80'"),
    ],
)
def test_errors_have_the_numbers_that_were_given(act, message):
    with pytest.raises(paritas.ParameterError, match=message):
        act(paritas.Codec("4+2"), [bytearray(9) for _ in range(6)])


def test_parity_is_not_read_to_join():
    codec = paritas.Codec("4+2")
    data = codec.split(b"x" * 1000)
    assert codec.join([*data, b"another length"], 1000) == b"x" * 1000


def test_an_interrupt_ends_the_count_of_losses():
    code = paritas.Code("20+8")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            code.survival(8, 100_000_000)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < 30


def test_objects_show_what_they_are():
    codec = paritas.Codec(paritas.Code("4+2"))
    assert codec.tolerance == 2
    assert repr(codec.prepared()) == "<Prepared: sources=4, targets=2>"
    assert repr(codec.prepared([0, 1, 2, 4], [3])) == "<Prepared: sources=4, targets=1>"
    encoder = paritas.LtEncoder("lt:k=16,n=32")
    blocks = encoder.encode(bytes(1600))
    decoder = paritas.LtDecoder(blocks.info)
    decoder.push(0, blocks[0])
    assert repr(encoder).startswith("LtEncoder(\"lt:k=16,n=32,")
    assert repr(paritas.LtEncoder(paritas.Code("lt:k=16,n=32"))) == repr(encoder)
    assert repr(blocks) == f"<LtBlocks: 32 blocks of {blocks.block_bytes} bytes>"
    assert repr(decoder) == "<LtDecoder: received=1, is_ready=False>"


def test_no_threads_are_too_few():
    with pytest.raises(paritas.ParameterError, match="at least 1; got 0") as error:
        paritas.Codec("4+2", threads=0)
    assert error.value.kind == "Parameters"


def test_arrays_of_objects_are_refused():
    codec, data = paritas.Codec("4+2"), [bytes(48)] * 4
    objects = numpy.array([[object()] * 6] * 2, dtype=object)
    records = numpy.zeros((2, 3), dtype=[("Offset", "i8"), ("it", "O")])
    for array in (objects, records):
        with pytest.raises(paritas.ParameterError, match="Python objects"):
            codec.encode(data, array)
        with pytest.raises(paritas.ParameterError, match="Python objects"):
            codec.split(array)
    plain = numpy.zeros((2, 3), dtype=[("Offset", "i8"), ("it", "i8")])
    codec.encode(data, plain)


def test_buffers_of_ctypes_are_buffers():
    codec, data = paritas.Codec("4+2"), [os.urandom(48) for _ in range(4)]
    sources = [ctypes.create_string_buffer(shard, 48) for shard in data]
    targets = [(ctypes.c_ubyte * 48)() for _ in range(2)]
    codec.encode(sources, targets)
    assert [bytes(shard) for shard in targets] == [bytes(shard) for shard in codec.encode(data)]


def test_delayed_parity_is_encoded_by_its_first_stage():
    codec = paritas.Codec("bbdpg:k=4,m=1,m2=2")
    assert (codec.parity_shards, len(codec.encode(codec.split(bytes(1000))))) == (2, 1)


def test_nodes_with_data_and_parity_are_encoded_in_place():
    codec = paritas.Codec("xcode:n=5")
    length = 1000 * codec.shard_unit
    shards = [bytearray(os.urandom(length)) for _ in range(5)]
    codec.encode_nodes(shards)
    assert codec.verify(shards) == []
    assert codec.reconstruct([None, None, *shards[2:]]) == shards
    with pytest.raises(paritas.ParameterError, match="node 0 holds data and parity"):
        codec.encode(shards)
    assert codec.shard_len(1000) == 335  # rows with data hold three fifths of it


def test_parts_of_whole_strips_give_the_parity_of_the_whole():
    codec = paritas.Codec("10+4")
    cut, length = 3 * codec.strip, 5 * codec.strip + 7 * codec.shard_unit
    data = [os.urandom(length) for _ in range(10)]
    halves = [codec.encode([shard[part] for shard in data]) for part in (slice(cut), slice(cut, None))]
    whole = codec.encode(data)
    assert [bytes(a + b) for a, b in zip(*halves)] == [bytes(shard) for shard in whole]


def test_codecs_and_codes_are_pickled():
    codec = pickle.loads(pickle.dumps(paritas.Codec("4+2", threads=1, packet=128)))
    assert (codec.code.spec, codec.strip) == ("cauchy:k=4,m=2,w=3", 3 * 128)
    assert pickle.loads(pickle.dumps(codec.code)) == codec.code


def test_a_codec_does_not_run_lt_codes():
    with pytest.raises(paritas.ParameterError, match="LtEncoder"):
        paritas.Codec("lt:k=16,n=32")


def test_memory_that_is_written_must_not_be_shared():
    codec = paritas.Codec("4+2")
    memory = numpy.zeros(12 * 6, numpy.uint8)
    rows = memory.reshape(6, 12)
    codec.encode(rows[:4], rows[4:])
    for data, parity, target in [
        (list(rows[:4]), [rows[4], rows[4]], 1),
        (list(rows[:4]), [rows[0], rows[5]], 0),
        (list(rows[:4]), [rows[5], memory[47:59]], 1),
        ([*rows[:3], memory[63:75].copy()], [rows[4], memory[0:12]], 1),
        ([memory[50:62], *rows[1:4]], [rows[5], rows[4]], 1),
    ]:
        with pytest.raises(paritas.ParameterError, match=rf"^parity\[{target}\] shares memory"):
            codec.encode(data, parity)


def test_empty_shards_are_shards():
    codec = paritas.Codec("4+2")
    assert [bytes(shard) for shard in codec.encode([b""] * 4)] == [b"", b""]


def test_eight_threads_share_a_codec():
    codec = paritas.Codec("6+3", threads=1)
    rng = numpy.random.default_rng(3)
    length = codec.shard_len(6 * 3000)
    wrong = []

    def work(data):
        for _ in range(50):
            parity = codec.encode(data)
            if codec.verify([*data, *parity]):
                wrong.append(data)

    inputs = [[rng.bytes(length) for _ in range(6)] for _ in range(8)]
    threads = [threading.Thread(target=work, args=(data,)) for data in inputs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_matrix_and_schedule_compute_the_parity():
    code = paritas.Code("4+2")
    matrix, schedule = code.bit_matrix(), code.schedule()
    columns = len(schedule.inputs)
    assert matrix.shape == (len(schedule.outputs), columns)
    data = numpy.random.default_rng(5).integers(0, 2, columns, dtype=numpy.uint8)
    cells = numpy.zeros(columns + schedule.temps + len(schedule.outputs), dtype=numpy.uint8)
    cells[:columns] = data
    for target, source, adds, factor in schedule.operations():
        assert factor == 1
        cells[target] = cells[source] ^ (cells[target] if adds else 0)
    assert (cells[columns + schedule.temps :] == matrix @ data % 2).all()
    assert 0 < schedule.xors < matrix.sum() and "inputs" in str(schedule)


def test_a_matrix_of_ones_own_is_a_code():
    known = paritas.Code("rdp:k=4")
    own = paritas.Code.from_matrix(known.bit_matrix(), k=4, m=2)
    assert (own.nodes, own.tolerance, own.survival(2), own.survival(3, 5)) == (6, 2, (15, 15, 15), (0, 5, 20))
    assert (own.bit_matrix() == known.bit_matrix()).all()
    data = [os.urandom(1024) for _ in range(4)]
    assert paritas.Codec(own).encode(data) == paritas.Codec(known).encode(data)
    assert pickle.loads(pickle.dumps(own)) == own == paritas.Code(own.spec)

    toy = paritas.Code.from_matrix_text("k = 2\nm = 2\nw = 1\n11\n11\n")
    assert toy == paritas.Code.from_matrix([[True, True], (1, 1)], k=2, m=2)
    assert (toy.spec, toy.tolerance, toy.survival(2)) == ("matrix:k=2,m=2,w=1,rows=c.c", 1, (5, 6, 6))
    vertical = paritas.Code.from_matrix(paritas.Code("xcode:n=5").bit_matrix(), k=3, m=2, placement="vertical")
    assert (vertical.nodes, vertical.data_nodes, vertical.tolerance) == (5, 5, 2)
    for rows, message in (
        ([[1, 1]], "a multiple of m = 2; got 1"),
        ([[1, 1], [1]], "row 1 must have k·w = 2 bits; got 1"),
        ([[1, 2], [1, 1]], "row 0, column 1: bits must be 0 or 1; got 2"),
        ([[1, 1], [-1, 1]], "row 1, column 0: bits must be 0 or 1; got -1"),
        ([[1, 0], [1, 0]], "node 1 alone"),
    ):
        with pytest.raises(paritas.ParameterError, match=message):
            paritas.Code.from_matrix(rows, k=2, m=2)
    with pytest.raises(paritas.ParameterError, match="horizontal or vertical; got `up`"):
        paritas.Code.from_matrix([[1, 1], [1, 1]], k=2, m=2, placement="up")
    with pytest.raises(paritas.ParameterError, match="line 4: a row must have k·w = 2 digits; got 3"):
        paritas.Code.from_matrix_text("k = 2\nm = 2\nw = 1\n111\n")


def test_lt_blocks_in_any_order_give_the_object():
    data = bytes(range(256)) * 300
    blocks = paritas.LtEncoder("lt:k=64,n=160").encode(data)
    assert len(blocks) == 160 and blocks[-1] == blocks[159]
    order = numpy.random.default_rng(11).permutation(160)
    decoder = paritas.LtDecoder(blocks.info)
    for number in order:
        if decoder.push(int(number), blocks[int(number)]):
            break
    assert decoder.is_ready and 64 <= decoder.received < 160
    assert decoder.reconstruct() == data
    with pytest.raises(IndexError):
        blocks[160]
    with pytest.raises(paritas.ParitasError):
        paritas.LtDecoder(blocks.info[:-1])
    with pytest.raises(paritas.LossError):
        paritas.LtDecoder(blocks.info).reconstruct()


def test_lt_decoders_let_other_threads_run_while_they_check_a_block():
    blocks = paritas.LtEncoder("lt:k=16,n=128").encode(bytes(64 << 20))
    decoder = paritas.LtDecoder(blocks.info)
    given = [blocks[number] for number in range(128)]
    waits, go, ran = threading.Event(), threading.Lock(), []
    go.acquire()
    other = threading.Thread(target=lambda: (waits.set(), go.acquire(), ran.append(True)))
    other.start()
    waits.wait()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        # From here on the interpreter changes threads only where a call releases it.
        go.release()
        pushed = next((number for number, block in enumerate(given) if (decoder.push(number, block), ran)[1]), None)
    finally:
        sys.setswitchinterval(interval)
        other.join()
    assert pushed is not None


def test_docstrings_are_there():
    for name in paritas.__all__:
        assert getattr(paritas, name).__doc__, name


def test_shards_may_be_in_any_sequence():
    codec = paritas.Codec("2+1")
    data = [b"abcd" * 2, b"efgh" * 2]
    assert codec.encode(collections.UserList(data)) == codec.encode(data)


def test_lt_codes_have_a_schedule():
    schedule = paritas.Code("lt:k=10,n=20").schedule()
    assert schedule.xors > 0


def test_refused_buffers_are_not_taken_apart():
    codec = paritas.Codec("2+1")
    rows = memoryview(bytes(64)).cast("B", (4, 16))
    with pytest.raises(paritas.ParameterError, match="contiguous"):
        codec.encode(rows[::2])
    with pytest.raises(TypeError, match="str"):
        codec.encode("ab")


def test_a_stride_fits_the_array():
    groups = numpy.zeros((2, 6, 12), numpy.uint8)
    prepared = paritas.Codec("4+2").prepared()
    with pytest.raises(paritas.ParameterError, match="shards of 12 bytes; got 24"):
        prepared.run_strided(groups, 24)
    prepared.run_strided(groups, 12)
    with pytest.raises(paritas.ParameterError, match="with 6 nodes; got 2"):
        prepared.run_strided(numpy.zeros((6, 2, 12), numpy.uint8), 12)
    # Nodes that take no part are in the groups, too.
    paritas.Codec("4+2").prepared([0, 1, 2, 3], [5]).run_strided(groups, 12)
    delayed = paritas.Codec("bbdpg:k=4,m=1,m2=2")
    delayed.prepared().run_strided(numpy.zeros((2, delayed.code.nodes, 48), numpy.uint8), 48)


@pytest.mark.parametrize("content", [b"", b"x", b"xy"])
def test_short_results_leave_other_bytes_as_they_are(content):
    codec = paritas.Codec("4+2")
    shards = codec.split(content)
    assert codec.join(shards, len(content)) == content
    assert [b"", bytes([0]), bytes([ord("x")])] == [bytes(0), b"\0", b"x"]


def test_objects_that_cannot_be_are_not_given_memory():
    codec = paritas.Codec("4+2")
    with pytest.raises(paritas.ParameterError, match="shard 0 must have"):
        codec.join(codec.split(b"x" * 1000), 1 << 62)
    decoder = paritas.LtDecoder(paritas.LtEncoder("lt:k=16,n=32").encode(bytes(1600)).info)
    with pytest.raises(paritas.LossError, match="0 blocks do not determine 16 data blocks"):
        decoder.reconstruct()
