#!/usr/bin/env python3
"""Runs S3 clients and whole programs through `paritas serve`, and prints what works with which: `lab/gateway/run.py`.

The gateway serves a 4+2 volume over six folders of this machine. Each client does its operations once with all nodes
and once with two nodes gone. Then whole programs: restic, rclone, s3cmd, the AWS command line and duplicity. In the middle of each,
two nodes go, the gateway is killed, and a second one takes its place. Last, Chromium looks at the gateway's page.
Needs the network for packages. `--write` puts the table into docs/gateway.md. `--only NAME` runs one client or program.
"""

import argparse
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from served import KEY, SECRET, Gateway, run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path.home() / ".cache" / "paritas" / "gateway"
OPERATIONS = ["buckets", "objects", "checksums", "conditions", "presigned", "multipart", "copies", "tags", "listings",
              "refusals", "deletions"]
PROGRAMS = ["restic", "rclone", "s3cmd", "awscli", "duplicity"]
SHOTS = ROOT / "target" / "gateway-shots"


def debian(*packages):
    missing = [name for name in packages if subprocess.run(["dpkg", "-s", name], capture_output=True).returncode]
    if missing:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def python(*packages):
    """Returns a Python with these packages."""
    place = CACHE / "-".join(name.split("[")[0] for name in packages)
    if not (place / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", place)
        run(place / "bin" / "pip", "install", "-q", *packages)
    return place / "bin" / "python"


def javascript():
    place = CACHE / "javascript"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "node_modules").exists():
        run("npm", "install", "--silent", "@aws-sdk/client-s3@3", "@aws-sdk/lib-storage@3", cwd=place)
    shutil.copy(HERE / "client.mjs", place)
    return ["node", place / "client.mjs"]


def page(gateway):
    """Looks at the gateway's page, with all nodes and with two nodes gone. The pictures stay in target/gateway-shots."""
    debian("chromium")
    place = CACHE / "page"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "site" / "test" / "package.json", place)
    shutil.copy(HERE / "page.mjs", place)
    if not (place / "node_modules").exists():
        run("npm", "install", "--silent", "--no-audit", "--no-fund", cwd=place)
    look = lambda name, expected: run("node", place / "page.mjs", gateway.endpoint, SHOTS, name, expected)
    look("whole", "any 2 may be lost")
    with gateway.without(1, 2):
        gateway.replace()
        look("two-gone", "nothing more may be lost")
    gateway.replace()


def golang():
    place = CACHE / "golang"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "client.go", place / "main.go")
    if not (place / "client").exists():
        (place / "go.mod").write_text("module client\n\ngo 1.23\n")
        run("go", "get", "github.com/minio/minio-go/v7@v7.4.1", cwd=place)
        run("go", "build", "-o", "client", ".", cwd=place)
    return [place / "client"]


CLIENTS = {
    "boto3": lambda: [python("boto3", "botocore[crt]"), HERE / "boto.py"],
    "aws-sdk-js": javascript,
    "minio-go": golang,
    "s3fs": lambda: [python("s3fs"), HERE / "fsspec_client.py"],
}


def client(name, gateway):
    """Returns the operations that a client did with all nodes, and with two nodes gone."""
    command = CLIENTS[name]()
    endpoint = gateway.endpoint.removeprefix("http://") if name == "minio-go" else gateway.endpoint
    done = []
    for gone in [(), (1, 2)]:
        with gateway.without(*gone):
            if gone:
                # The client's bucket is new to the gateway, too.
                gateway.replace()
            printed = run(*command, endpoint, KEY, SECRET)
        done.append({line.split()[0] for line in printed.splitlines() if line.endswith(" ok")})
    return done[0] & done[1]


def environment(gateway):
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
            "RESTIC_PASSWORD": "sesame", "PASSPHRASE": "sesame", "RCLONE_CONFIG_TANK_TYPE": "s3",
            "RCLONE_CONFIG_TANK_PROVIDER": "Other", "RCLONE_CONFIG_TANK_ACCESS_KEY_ID": KEY,
            "RCLONE_CONFIG_TANK_SECRET_ACCESS_KEY": SECRET, "RCLONE_CONFIG_TANK_ENDPOINT": gateway.endpoint}
    return {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"} | keys


def interrupted(gateway, begin, end):
    """Does `begin` with all nodes, and `end` with two nodes gone and another gateway."""
    begin()
    with gateway.without(0, 3):
        gateway.replace()
        end()


def same(left, right):
    compared = filecmp.dircmp(left, right)
    different = compared.left_only + compared.right_only + compared.diff_files
    assert not different, f"{left} and {right} differ in {different}"


def restic(gateway, tree, out):
    debian("restic")
    env = environment(gateway)
    act = lambda *words: run("restic", "-q", "-r", f"s3:{gateway.endpoint}/restic", *words, env=env)

    def begin():
        act("init")
        act("backup", tree)

    def end():
        act("backup", tree)
        act("check", "--read-data")
        act("restore", "latest", "--target", out)
        act("forget", "--keep-last", "1", "--prune")
        act("check")

    interrupted(gateway, begin, end)
    same(tree, out / tree.relative_to("/"))


def rclone(gateway, tree, out):
    debian("rclone")
    env = environment(gateway)

    def begin():
        run("rclone", "mkdir", "tank:rclone", env=env)
        run("rclone", "sync", tree, "tank:rclone/tree", env=env)

    def end():
        run("rclone", "check", "--download", tree, "tank:rclone/tree", env=env)
        run("rclone", "copy", "tank:rclone/tree", out, env=env)
        run("rclone", "purge", "tank:rclone/tree", env=env)

    interrupted(gateway, begin, end)
    same(tree, out)


def s3cmd(gateway, tree, out):
    debian("s3cmd")
    host = gateway.endpoint.removeprefix("http://")
    config = out / "config"
    config.write_text(f"[default]\naccess_key = {KEY}\nsecret_key = {SECRET}\nhost_base = {host}\nhost_bucket = {host}\n"
                      "use_https = False\nbucket_location = us-east-1\n")
    act = lambda *words: run("s3cmd", "-c", config, *words)

    def begin():
        act("mb", "s3://s3cmd")
        act("sync", f"{tree}/", "s3://s3cmd/tree/")

    def end():
        act("sync", "s3://s3cmd/tree/", f"{out}/tree/")
        act("del", "--recursive", "--force", "s3://s3cmd/tree/")
        act("rb", "s3://s3cmd")

    interrupted(gateway, begin, end)
    same(tree, out / "tree")


def awscli(gateway, tree, out):
    aws = python("awscli").parent / "aws"
    act = lambda *words: run(aws, "--endpoint-url", gateway.endpoint, "s3", *words, env=environment(gateway))

    def begin():
        act("mb", "s3://awscli")
        act("sync", tree, "s3://awscli/tree")

    def end():
        act("sync", "s3://awscli/tree", out)
        act("rm", "s3://awscli/tree", "--recursive")
        act("rb", "s3://awscli")

    interrupted(gateway, begin, end)
    same(tree, out)


def duplicity(gateway, tree, out):
    debian("duplicity", "gnupg", "python3-boto3")
    env = environment(gateway)
    run(python("awscli").parent / "aws", "--endpoint-url", gateway.endpoint, "s3", "mb", "s3://duplicity", env=env)
    to = ["--s3-endpoint-url", gateway.endpoint, "--archive-dir", out / "archive"]
    act = lambda *words: run("duplicity", *words, *to, env=env)
    where = "boto3+s3://duplicity/backup"
    interrupted(gateway, lambda: act("full", tree, where), lambda: act("restore", where, out / "tree"))
    same(tree, out / "tree")


def tree_in(folder):
    """Returns a small tree: the project's documents, and a file that is sent in parts."""
    tree = folder / "tree"
    shutil.copytree(ROOT / "docs", tree, ignore=shutil.ignore_patterns("*.png"))
    (tree / "large").write_bytes(os.urandom(20_000_000))
    return tree


def table(done, programs):
    lines = ["| operation | " + " | ".join(done) + " |", "| --- |" + " --- |" * len(done)]
    for operation in OPERATIONS:
        cells = ["yes" if operation in found else "" for found in done.values()]
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    if programs:
        names = ", ".join(programs[:-1]) + (" and " if programs[1:] else "") + programs[-1]
        lines += ["", f"Whole programs, with two nodes gone and the gateway replaced by another in the middle: {names}."]
    return "\n".join(lines)


def write(text):
    page = ROOT / "docs" / "gateway.md"
    begin, end = "<!-- clients -->\n", "<!-- end of clients -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", default=ROOT / "target" / "release" / "paritas", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=[*CLIENTS, *PROGRAMS, "page"])
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    wanted = args.only or [*CLIENTS, *PROGRAMS, "page"]
    done, programs, failed = {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tree = tree_in(folder)
        gateway = Gateway(args.paritas, folder)
        for name in wanted:
            begun = time.monotonic()
            try:
                if name in CLIENTS:
                    done[name] = client(name, gateway)
                elif name == "page":
                    page(gateway)
                else:
                    out = folder / f"out-{name}"
                    out.mkdir()
                    globals()[name](gateway, tree, out)
                    programs.append(name)
                print(f"{name}: ok, {time.monotonic() - begun:.0f} s", flush=True)
            except (RuntimeError, AssertionError) as error:
                failed += 1
                print(f"{name}: FAILED\n{error}", flush=True)
        gateway.stop()
        run(args.paritas, "volume", "repair", folder / "tank.toml")
        run(args.paritas, "volume", "verify", folder / "tank.toml", "--deep")
    text = table(done, programs)
    print(text)
    if args.write and not failed:
        write(text)
    print(f"{len(wanted) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
