"""Hosts on one machine: network namespaces joined by a switch, each behind a link of its own.

A host is a network namespace with one interface. All interfaces meet in a bridge, in a namespace too. A link has a rate
in each direction, by token buckets (`tc tbf`) at its two ends; TCP's congestion control is cubic. Rates are those that
a transfer over one connection reaches, in MB/s (10^6 bytes) of payload: on the wire, headers come on top.

A node is a host with nginx, which stores files by WebDAV in memory (tmpfs) and logs every request with its bytes; or with
versitygw (S3), which takes a file in parts, as soon as there are some, but logs nothing. Needs root, for the namespaces.
"""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import common
import servers
import tools

CLIENT, SWITCH = "client", "switch"
PORT, CUT_PORT = 80, 81
# Bytes of a frame on the wire, and of payload in it.
FRAME, PAYLOAD = 1514, 1448
# Bytes that a token bucket passes at once at least, the time that they stand for at high rates, and the time that a
# packet may wait in it.
BURST, BURST_SECONDS, QUEUE = 128 << 10, 0.001, "20ms"
# The keys that versitygw is started with.
KEYS = ("paritas", "paritas-secret")
# nginx's module for WebDAV, and the Debian package of each program or file that is needed.
WEBDAV = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "nginx": "nginx-light",
    WEBDAV: "libnginx-mod-http-dav-ext",
}
TICKS = os.sysconf("SC_CLK_TCK")

NGINX = """
load_module {webdav};
user root;
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error;
events {{}}
http {{
  log_format bytes '$request_method $status $content_length $body_bytes_sent $uri';
  access_log {folder}/log bytes;
  client_body_temp_path {folder}/temp;
  client_body_buffer_size 256k;
  client_max_body_size 0;
  keepalive_requests 1000000;
  sendfile on;
  server {{
    listen {port};
    root {folder}/data;
    dav_methods PUT DELETE MKCOL COPY MOVE;
    dav_ext_methods PROPFIND OPTIONS;
  }}
}}
"""


def install() -> None:
    """Installs what hosts need."""
    missing = {package for needed, package in PACKAGES.items() if not (shutil.which(needed) or os.path.exists(needed))}
    if missing:
        tools.debian(*sorted(missing))


def explain_if_impossible() -> None:
    """Installs what hosts need. Ends the program with a message if they cannot be made here."""
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    install()
    name = f"paritas-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"network namespaces cannot be made here: {made.stderr.strip()}")
    call("ip", "netns", "delete", name)


def call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


class Request(NamedTuple):
    """A request as a node's server logs it, with the bytes of content that it received and sent."""

    method: str
    status: int
    received: int
    sent: int
    path: str


class Cost(NamedTuple):
    """What a command took: wall time, processor time of its own, of all servers and of the whole machine, and the bytes
    that arrived at the client's interface."""

    seconds: float
    client: float
    servers: float
    machine: float
    arrived: int


class Network:
    """A client and nodes. They exist until the end of the `with` block."""

    def __init__(self, nodes: int, rate: float, server: str = "nginx"):
        """Each link has `rate` MB/s. `server` is nginx or versitygw."""
        self.rate, self.server = rate, server
        self.tag = f"paritas-{os.getpid()}"
        self.folder = pathlib.Path("/dev/shm") / self.tag
        self.nodes = list(range(1, nodes + 1))
        self.servers: dict[int, subprocess.Popen] = {}
        self.cutters: list[subprocess.Popen] = []

    def __enter__(self) -> "Network":
        common.end_when_told()
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in [*self.servers.values(), *self.cutters]:
            server.kill()
            server.wait()
        for name in [CLIENT, SWITCH, *map(self.host, self.nodes)]:
            subprocess.run(["ip", "netns", "delete", self.space(name)], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def build(self) -> None:
        self.folder.mkdir()
        self.add_space(SWITCH)
        self.inside(SWITCH, "ip", "link", "add", "bridge", "type", "bridge")
        self.inside(SWITCH, "ip", "link", "set", "bridge", "up")
        self.add_host(CLIENT, 0, self.rate)
        for node in self.nodes:
            self.add_host(self.host(node), node, self.rate)
            self.start_server(node)
        for node in self.nodes:
            self.await_port(node, PORT)

    def add_space(self, name: str) -> None:
        call("ip", "netns", "add", self.space(name))
        self.inside(name, "ip", "link", "set", "lo", "up")

    def add_host(self, name: str, number: int, rate: float) -> None:
        port = f"port{number}"
        self.add_space(name)
        call("ip", "link", "add", "eth0", "netns", self.space(name), "type", "veth", "peer", "name", port, "netns",
             self.space(SWITCH))
        self.inside(name, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        self.inside(name, "ip", "link", "set", "eth0", "up")
        self.inside(name, "ip", "route", "replace", f"{self.address(-1)}/24", "dev", "eth0", "congctl", "cubic")
        self.inside(SWITCH, "ip", "link", "set", port, "master", "bridge", "up")
        self.shape(name, number, rate)

    def shape(self, name: str, number: int, rate: float) -> None:
        """Gives a host's link a rate, in both directions."""
        wire = rate * 1e6 * FRAME / PAYLOAD
        bucket = ["tbf", "rate", f"{wire:.0f}bps", "burst", str(max(BURST, int(wire * BURST_SECONDS))), "latency", QUEUE]
        self.inside(name, "tc", "qdisc", "replace", "dev", "eth0", "root", *bucket)
        self.inside(SWITCH, "tc", "qdisc", "replace", "dev", f"port{number}", "root", *bucket)

    def start_server(self, node: int) -> None:
        folder = self.node_folder(node)
        self.data(node).mkdir(parents=True)
        command, keys = self.nginx(folder) if self.server == "nginx" else self.versitygw(folder)
        log = open(folder / "error", "a")
        environment = {**os.environ, **keys}
        self.servers[node] = subprocess.Popen(self.within(self.host(node), command), env=environment, stdout=log, stderr=log)

    def nginx(self, folder: pathlib.Path) -> tuple[list, dict]:
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=PORT, webdav=WEBDAV))
        return ["nginx", "-c", folder / "nginx.conf", "-e", folder / "error"], {}

    def versitygw(self, folder: pathlib.Path) -> tuple[list, dict]:
        (folder / "sidecar").mkdir()
        posix = ["posix", "--sidecar", folder / "sidecar", folder / "data"]
        return [servers.program("versitygw"), "--port", f"0.0.0.0:{PORT}", "--quiet", *posix], dict(zip(["ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"], KEYS))

    def await_port(self, node: int, port: int) -> None:
        for _ in range(200):
            listening = subprocess.run(self.within(self.host(node), ["ss", "-Hltn", f"sport = :{port}"]), capture_output=True)
            if listening.stdout:
                return
            time.sleep(0.02)
        sys.exit(f"nothing listens at port {port} of {self.host(node)}: {(self.node_folder(node) / 'error').read_text()}")

    def space(self, name: str) -> str:
        return f"{self.tag}-{name}"

    def host(self, node: int) -> str:
        return f"node{node:02}"

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"

    def node_folder(self, node: int) -> pathlib.Path:
        return self.folder / self.host(node)

    def data(self, node: int) -> pathlib.Path:
        """Returns the folder of a node's files."""
        return self.node_folder(node) / "data" / ("" if self.server == "nginx" else "bucket")

    def uri(self, node: int, folder: str) -> str:
        host = f"{self.address(node)}:{PORT}"
        if self.server == "nginx":
            return f"webdav+http://{host}/{folder}"
        return f"s3://bucket/{folder}?endpoint=http://{host}&region=us-east-1"

    def within(self, name: str, command: list) -> list:
        return ["nsenter", f"--net=/run/netns/{self.space(name)}", *map(str, command)]

    def inside(self, name: str, *command: str) -> None:
        call(*self.within(name, list(command)))

    def run(self, command: list) -> tuple[subprocess.CompletedProcess, Cost]:
        """Runs a command on the client."""
        arrived, before, start = self.arrived(), self.times(), time.perf_counter()
        environment = {**os.environ, **dict(zip(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], KEYS))}
        done = subprocess.run(self.within(CLIENT, command), capture_output=True, env=environment)
        seconds, after = time.perf_counter() - start, self.times()
        return done, Cost(seconds, *(now - then for now, then in zip(after, before)), self.arrived() - arrived)

    def arrived(self) -> int:
        """Returns the bytes that have arrived at the client's interface so far."""
        table = subprocess.run(self.within(CLIENT, ["cat", "/proc/net/dev"]), capture_output=True, text=True, check=True).stdout
        return next(int(line.split(":")[1].split()[0]) for line in table.splitlines() if "eth0:" in line)

    def times(self) -> tuple[float, float, float]:
        """Processor seconds so far: of commands, of servers, and of the whole machine."""
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        servers = sum(processor_seconds(server.pid) for server in self.servers.values())
        with open("/proc/stat") as file:
            user, nice, system, _idle, _waiting, *interrupts = map(int, file.readline().split()[1:])
        return own.ru_utime + own.ru_stime, servers, (user + nice + system + sum(interrupts[:2])) / TICKS

    def requests(self) -> list[Request]:
        """Returns what the nodes logged since the last call."""
        return [request for node in self.nodes for request in self.requests_of(node)]

    def requests_of(self, node: int) -> list[Request]:
        if self.server != "nginx":
            return []
        log = self.node_folder(node) / "log"
        lines = log.read_text().splitlines()
        os.truncate(log, 0)
        split = (line.split(" ", 4) for line in lines)
        return [Request(method, int(status), int(length.replace("-", "0")), int(sent), path)
                for method, status, length, sent, path in split]

    def slow(self, nodes: list[int], rate: float) -> None:
        """Gives the links of some nodes another rate."""
        for node in nodes:
            self.shape(self.host(node), node, rate)

    def hang(self, nodes: list[int]) -> None:
        """Stops the servers of some nodes: connections are made, but nothing is answered."""
        for node in nodes:
            self.servers[node].send_signal(signal.SIGSTOP)

    def cut(self, nodes: list[int], after: int) -> None:
        """Offers the servers of some nodes at another port too, where connections break after some bytes."""
        for node in nodes:
            command = [sys.executable, str(pathlib.Path(__file__).parent / "cutter.py"), str(CUT_PORT), str(PORT), str(after)]
            self.cutters.append(subprocess.Popen(self.within(self.host(node), command)))
        for node in nodes:
            self.await_port(node, CUT_PORT)

    def heal(self) -> None:
        """Takes back what `slow`, `hang` and `cut` did."""
        self.slow(self.nodes, self.rate)
        for node in self.nodes:
            self.servers[node].send_signal(signal.SIGCONT)
        for cutter in self.cutters:
            cutter.kill()
            cutter.wait()
        self.cutters.clear()


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
