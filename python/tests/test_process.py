"""What a volume does to the process that uses it: forks, signals, and the end of the program."""

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import paritas
import pytest


@pytest.fixture
def volume_file(make_volume):
    return make_volume(3, "2+1")


def program(text, volume_file):
    """Runs a program that has a volume `v`. It must end by itself."""
    begin = f"import os, paritas, signal, sys, threading, time\nv = paritas.Volume.open({str(volume_file)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(text)], capture_output=True, text=True, timeout=30
    )


def test_a_forked_child_ends_and_may_open_the_volume_again(volume_file):
    ran = program(
        f"""
        v.put("before", b"x")
        child = os.fork()
        if child == 0:
            try:
                v.list()
            except paritas.StorageError as error:
                assert "open it again" in str(error)
                w = paritas.Volume.open({str(volume_file)!r})
                print(w.list(), flush=True)
                del v, w
                sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(v.get("before"))
        """,
        volume_file,
    )
    assert ran.stdout == "[('before', 1)]\nb'x'\n", ran


def test_a_forked_child_goes_on_with_a_file_system(volume_file):
    ran = program(
        f"""
        import fsspec
        fs = fsspec.filesystem("paritas", volume={str(volume_file)!r})
        fs.pipe("before", b"x" * 100_000)
        file = fs.open("before")
        child = os.fork()
        if child == 0:
            assert file.read() == fs.cat("before")
            fs.pipe("child", b"y")
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(fs.find(""))
        """,
        volume_file,
    )
    assert ran.stdout == "['before', 'child']\n", ran


def test_a_program_ends_although_a_source_still_waits(volume_file):
    ran = program(
        """
        # A shell starts programs in the background with interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        source, _ = os.pipe()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            v.put("never", open(source, "rb", buffering=0))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """,
        volume_file,
    )
    assert (ran.stdout, ran.returncode) == ("interrupted\n", 0), ran


#: A source that never ends.
ENDLESS = """
class Endless:
    begun = 0
    def read(self, size):
        self.begun += 1
        time.sleep(0.01)
        return bytes(size)
"""


@pytest.mark.parametrize(
    "text, code, errors",
    [
        # The interrupted program ends while its source is being read.
        (
            """
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
v.put("a", Endless())
            """,
            -signal.SIGINT,
            "KeyboardInterrupt",
        ),
        # Threads that nobody waits for are ended with the program.
        (
            """
put = lambda number: v.put(f"a{number}", Endless())
[threading.Thread(target=put, args=(number,), daemon=True).start() for number in range(4)]
time.sleep(0.3)
            """,
            0,
            "",
        ),
    ],
)
def test_a_program_ends_while_a_source_is_read(volume_file, text, code, errors):
    with ThreadPoolExecutor(5) as pool:
        ran = list(pool.map(lambda _: program(ENDLESS + text, volume_file), range(5)))
    assert [(one.returncode, one.stderr.split("\n")[-2:][0]) for one in ran] == [(code, errors)] * 5


def test_no_read_begins_after_an_interrupt(volume_file):
    ran = program(
        ENDLESS
        + """
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
source = Endless()
try:
    v.put("a", source)
except KeyboardInterrupt:
    begun = source.begun
    time.sleep(0.2)
    print(source.begun - begun, v.list())
        """,
        volume_file,
    )
    assert (ran.stdout, ran.returncode) == ("0 []\n", 0), ran


def test_memory_is_free_once_an_interrupted_put_has_ended(volume_file):
    ran = program(
        """
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts = 0
for number in range(20):
    data = bytearray(16 << 20)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        v.put("a", data)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    data.append(1)
print(interrupts > 0)
        """,
        volume_file,
    )
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran


@pytest.mark.parametrize("count", [5, 20_000_000])
def test_a_file_that_is_dropped_at_the_end_of_the_program_is_stored(volume_file, count):
    ran = program(
        f"""
        import fsspec
        fs = fsspec.filesystem("paritas", volume={str(volume_file)!r})
        file = fs.open("dropped", "wb")
        file.write(bytes({count}))
        """,
        volume_file,
    )
    assert (ran.stderr, ran.returncode) == ("", 0), ran
    assert paritas.Volume.open(volume_file).list() == [("dropped", count)]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_work_on_files(tmp_path, threads):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(4 << 30)
    (tmp_path / "shards").mkdir()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            paritas.encode_file(tmp_path / "large", tmp_path / "shards", threads=threads, sync=False)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert list((tmp_path / "shards").iterdir()) == []


def test_what_a_signal_handler_raises_is_raised(volume_file):
    volume = paritas.Volume.open(volume_file)

    def late(*_):
        raise TimeoutError("too late")

    class Slow:
        def read(self, size):
            return b"x"

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(TimeoutError, match="too late"):
            volume.put("slow", Slow())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert volume.list() == []


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="only Linux tells the most memory of a while")
def test_results_take_their_memory_once(volume_file):
    ran = program(
        """
        BYTES = 64 << 20
        content = os.urandom(1 << 20) * 64

        def most():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

        def growth(call):
            open("/proc/self/clear_refs", "w").write("5")
            before = most()
            result = call()
            return len(result) and most() - before

        codec = paritas.Codec("4+2", threads=1)
        shards = codec.split(content)
        v.put("a", content)
        blocks = paritas.LtEncoder("lt:k=64,n=128").encode(content)
        decoder = paritas.LtDecoder(blocks.info)
        for number in range(128):
            decoder.push(number, blocks[number])
        calls = {
            "get": lambda: v.get("a"),
            "join": lambda: codec.join(shards, BYTES),
            "reconstruct": decoder.reconstruct,
            "split": lambda: codec.split(content),
        }
        assert all(calls[name]() == content for name in ("get", "join", "reconstruct"))
        for name, call in calls.items():
            grown = growth(call)
            assert grown < 1.6 * BYTES, (name, grown)
        """,
        volume_file,
    )
    assert ran.returncode == 0, ran.stderr


def test_rates_that_nothing_could_obey_are_refused(volume_file):
    for wrong in [{"background": True, "rate": 0}, {"rate": 10}, {"background": True, "workers": 0}]:
        with pytest.raises(paritas.ParameterError):
            paritas.Volume.open(volume_file, **wrong)
