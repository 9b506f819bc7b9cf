#!/usr/bin/env python3
"""Runs S3 clients and whole programs through `paritas serve`, and prints what works with which: `lab/gateway/run.py`.

The gateway serves a 4+2 volume over five folders of this machine and a WebDAV server. Each client does its operations once
with all nodes and once with two nodes gone. Then whole programs: restic, rclone, borg on `rclone mount`, s3cmd, the AWS command line,
duplicity and git-annex. In the middle of each, a node goes, the WebDAV server falls silent, the gateway is killed, and a second one
takes its place; then the server answers again, and another node goes. Last, Chromium looks at the gateway's page.
Needs the network for packages. `--only NAME` runs one client or program. Without, the table of docs/gateway.md is compared with what
was found; `--write` puts it there.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from served import KEY, SECRET, Gateway, WebDav, wait_for

import minio  # served.py adds the folder of what follows
import tools
from common import differences, end_when_told, free_port, run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path.home() / ".cache" / "paritas" / "gateway"
OPERATIONS = ["buckets", "objects", "checksums", "conditions", "presigned", "multipart", "copies", "tags", "listings",
              "refusals", "deletions"]
PAGE = ROOT / "docs" / "gateway.md"
PROGRAMS = ["restic", "rclone", "borg", "s3cmd", "awscli", "duplicity", "git_annex"]
SHOTS = tools.target() / "gateway-shots"


def python(*packages):
    """Returns a Python with these packages."""
    return tools.environment("-".join(name.split("[")[0] for name in packages), *packages) / "python"


def node():
    """Installs Node.js and npm if they are missing."""
    tools.debian(*(package for program, package in {"node": "nodejs", "npm": "npm"}.items() if not shutil.which(program)))


def javascript():
    node()
    place = CACHE / "javascript"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "node_modules").exists():
        run("npm", "install", "--silent", "@aws-sdk/client-s3@3", "@aws-sdk/lib-storage@3", cwd=place)
    shutil.copy(HERE / "client.mjs", place)
    return ["node", place / "client.mjs"]


def page(gateway):
    """Looks at the gateway's page, with all nodes and with two nodes gone. The pictures stay in target/gateway-shots."""
    tools.debian("chromium")
    node()
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


CLIENTS = {
    "boto3": lambda: [python("boto3", "botocore[crt]"), HERE / "boto.py"],
    "aws-sdk-js": javascript,
    "minio-go": lambda: [minio.program("client")],
    "s3fs": lambda: [python("s3fs"), HERE / "fsspec_client.py"],
}


def client(name, gateway):
    """Returns the operations that a client did both with all nodes, and with two nodes gone."""
    command = CLIENTS[name]()
    endpoint = gateway.address if name == "minio-go" else gateway.endpoint
    done = []
    for gone in [(), (1, 2)]:
        with gateway.without(*gone):
            if gone:
                # The client's bucket is new to the gateway, too.
                gateway.replace()
            printed = run(*command, endpoint, KEY, SECRET)
        done.append({line.split()[0] for line in printed.splitlines() if line.endswith(" ok")})
    assert done[0] & done[1], f"{name} says of no operation that it is ok"
    return done[0] & done[1]


def environment(gateway):
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
            "RESTIC_PASSWORD": "sesame", "PASSPHRASE": "sesame", "RCLONE_CONFIG_TANK_TYPE": "s3",
            "RCLONE_CONFIG_TANK_PROVIDER": "Other", "RCLONE_CONFIG_TANK_ACCESS_KEY_ID": KEY,
            "RCLONE_CONFIG_TANK_SECRET_ACCESS_KEY": SECRET, "RCLONE_CONFIG_TANK_ENDPOINT": gateway.endpoint}
    return {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"} | keys


def interrupted(gateway, begin, middle, end):
    """Does `begin` with all nodes, `middle` with a node gone and another one silent, and `end` with two nodes gone; each by
    another gateway."""
    begin()
    with gateway.without(0), gateway.services[0].silent():
        gateway.replace()
        middle()
    with gateway.without(0, 3):
        gateway.replace()
        end()


def expect_same(left, right, leave_out=()):
    found = differences(left, right, leave_out)
    assert not found, f"{left} and {right} differ in {', '.join(found)}"


def restic(gateway, tree, out):
    tools.debian("restic")
    env = environment(gateway)
    act = lambda *words: run("restic", "-q", "-r", f"s3:{gateway.endpoint}/restic", *words, env=env)

    def begin():
        act("init")
        act("backup", tree)

    def end():
        act("check", "--read-data")
        act("restore", "latest", "--target", out)
        act("forget", "--keep-last", "1", "--prune")
        act("check")

    interrupted(gateway, begin, lambda: act("backup", tree), end)
    expect_same(tree, out / tree.relative_to("/"))


def rclone(gateway, tree, out):
    tools.debian("rclone")
    env = environment(gateway)

    def begin():
        run("rclone", "mkdir", "tank:rclone", env=env)
        run("rclone", "sync", tree, "tank:rclone/tree", env=env)

    def middle():
        run("rclone", "copy", tree, "tank:rclone/tree/second", env=env)
        run("rclone", "purge", "tank:rclone/tree/second", env=env)

    def end():
        run("rclone", "check", "--download", tree, "tank:rclone/tree", env=env)
        run("rclone", "copy", "tank:rclone/tree", out, env=env)
        run("rclone", "purge", "tank:rclone/tree", env=env)

    interrupted(gateway, begin, middle, end)
    expect_same(tree, out)


@contextlib.contextmanager
def mounted(at, cache, env):
    """rclone mounts a bucket; yields a function that waits until all that was written is in the bucket."""
    at.mkdir()
    port = free_port()
    options = ["--vfs-cache-mode", "full", "--vfs-write-back", "0s", "--cache-dir", cache, "--rc", "--rc-no-auth", "--rc-addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(["rclone", "mount", "tank:borg", at, *options], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def settle():
        """An upload that failed is tried again after some time."""
        for _ in range(1200):
            disk = json.loads(run("rclone", "rc", "--rc-addr", f"127.0.0.1:{port}", "vfs/stats"))["diskCache"]
            if not disk["uploadsInProgress"] + disk["uploadsQueued"]:
                return
            time.sleep(0.1)
        raise RuntimeError("rclone has not sent everything within two minutes")

    try:
        wait_for(port)
        for _ in range(200):
            if at.is_mount():
                break
            time.sleep(0.05)
        else:
            raise RuntimeError("rclone has not mounted the bucket within ten seconds")
        yield settle
    finally:
        subprocess.run(["fusermount3", "-u", at])
        server.terminate()
        server.wait()
        at.rmdir()


def borg(gateway, tree, out):
    """borg knows no S3, so it works on a bucket that rclone mounts."""
    tools.debian("rclone", "fuse3", "borgbackup")
    if not os.access("/dev/fuse", os.W_OK):
        raise RuntimeError("this machine has no /dev/fuse")
    env = environment(gateway) | {"BORG_BASE_DIR": str(out / "base"), "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
                                  "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    at = out / "mount"
    act = lambda *words, cwd=tree: run("borg", *words, env=env, cwd=cwd)
    run("rclone", "mkdir", "tank:borg", env=env)

    def end():
        # Another mount, which has nothing of what the first one kept.
        with mounted(at, out / "empty-cache", env):
            act("check", "--verify-data", at / "repository")
            (out / "tree").mkdir()
            act("extract", f"{at}/repository::second", cwd=out / "tree")

    def begin():
        act("init", "--encryption", "none", at / "repository")
        act("create", f"{at}/repository::first", ".")
        settle()

    def middle():
        act("create", f"{at}/repository::second", ".")
        settle()
        unmount.close()

    with contextlib.ExitStack() as unmount:
        settle = unmount.enter_context(mounted(at, out / "cache", env))
        interrupted(gateway, begin, middle, end)
    expect_same(tree, out / "tree")


def s3cmd(gateway, tree, out):
    tools.debian("s3cmd")
    host = gateway.address
    config = out / "config"
    config.write_text(f"[default]\naccess_key = {KEY}\nsecret_key = {SECRET}\nhost_base = {host}\nhost_bucket = {host}\n"
                      "use_https = False\nbucket_location = us-east-1\n")
    act = lambda *words: run("s3cmd", "-c", config, *words)

    def begin():
        act("mb", "s3://s3cmd")
        act("sync", f"{tree}/", "s3://s3cmd/tree/")

    def end():
        act("del", "--recursive", "--force", "s3://s3cmd/tree/second/")
        act("sync", "s3://s3cmd/tree/", f"{out}/tree/")
        act("del", "--recursive", "--force", "s3://s3cmd/tree/")
        act("rb", "s3://s3cmd")

    interrupted(gateway, begin, lambda: act("sync", f"{tree}/", "s3://s3cmd/tree/second/"), end)
    expect_same(tree, out / "tree")


def awscli(gateway, tree, out):
    aws = python("awscli").parent / "aws"
    act = lambda *words: run(aws, "--endpoint-url", gateway.endpoint, "s3", *words, env=environment(gateway))

    def begin():
        act("mb", "s3://awscli")
        act("sync", tree, "s3://awscli/tree")

    def end():
        act("sync", "s3://awscli/tree", out)
        act("rm", "s3://awscli/", "--recursive")
        act("rb", "s3://awscli")

    interrupted(gateway, begin, lambda: act("sync", tree, "s3://awscli/second"), end)
    expect_same(tree, out)


def duplicity(gateway, tree, out):
    tools.debian("duplicity", "gnupg", "python3-boto3")
    env = environment(gateway)
    run(python("awscli").parent / "aws", "--endpoint-url", gateway.endpoint, "s3", "mb", "s3://duplicity", env=env)
    to = ["--s3-endpoint-url", gateway.endpoint, "--archive-dir", out / "archive"]
    act = lambda *words: run("duplicity", *words, *to, env=env)
    where = "boto3+s3://duplicity/backup"
    full = lambda: act("full", tree, where)
    interrupted(gateway, full, full, lambda: act("restore", where, out / "tree"))
    expect_same(tree, out / "tree")


def git_annex(gateway, tree, out):
    """git-annex signs the host without its port, so the gateway must serve at the port that its protocol has by default."""
    tools.debian("git", "git-annex")
    identity = {f"GIT_{who}_{what}": "paritas" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = environment(gateway) | identity | {"HOME": str(out)}
    repository = out / "repository"
    git = lambda *words: run("git", "-C", repository, *words, env=env)
    shutil.copytree(tree, repository)
    git("init", "-q")
    git("config", "annex.security.allowed-ip-addresses", "all")
    git("annex", "init", "-q")

    def begin():
        git("annex", "add", "-q", ".")
        git("commit", "-q", "-m", "files")
        git("annex", "initremote", "tank", "type=S3", "encryption=none", "protocol=http", "host=localhost", "port=80",
            "requeststyle=path", "signature=v4", "bucket=annex", "chunk=1MiB")
        git("annex", "copy", "-q", "--to", "tank", ".")

    def middle():
        (repository / "more").write_bytes(os.urandom(1_000_000))
        git("annex", "add", "-q", "more")
        git("annex", "copy", "-q", "--to", "tank", "more")

    def end():
        git("annex", "fsck", "-q", "--from", "tank")
        # This needs to see in the bucket that everything is there.
        git("annex", "drop", "-q", ".")
        git("annex", "get", "-q", ".")
        git("annex", "drop", "-q", "--from", "tank", ".")

    with gateway.elsewhere("127.0.0.1:80"):
        interrupted(gateway, begin, middle, end)
    expect_same(tree, repository, [".git", "more"])


def tree_in(folder):
    """Returns a small tree: the project's documents, and a file that is sent in parts."""
    tree = folder / "tree"
    shutil.copytree(ROOT / "docs", tree, ignore=shutil.ignore_patterns("*.png"))
    (tree / "large").write_bytes(os.urandom(20_000_000))
    for number in range(3):  # Some clients stumble over the request after an empty one.
        (tree / f"empty{number}").write_bytes(b"")
    return tree


def table(done, programs):
    lines = ["| operation | " + " | ".join(done) + " |", "| --- |" + " --- |" * len(done)]
    for operation in OPERATIONS:
        cells = ["yes" if operation in found else "" for found in done.values()]
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    if programs:
        names = ", ".join(programs[:-1]).replace("_", "-") + (" and " if programs[1:] else "") + programs[-1].replace("_", "-")
        lines += ["", f"Whole programs, with one node gone and one silent, then with two gone, each time by another gateway: {names}."]
    return "\n".join(lines)


def compare_page(found, write):
    """Whether the page has this table. With `write` it is put there."""
    begin, end = "<!-- clients -->\n", "\n<!-- end of clients -->"
    before, rest = PAGE.read_text().split(begin)
    listed, after = rest.split(end)
    if write:
        PAGE.write_text(before + begin + found + end + after)
    elif listed != found:
        print(f"the table of {PAGE.relative_to(ROOT)} is another one; lab/gateway/run.py --write renews it")
        return False
    return True


def attempt(name, gateway, tree, out):
    """Runs a client, whose operations are returned, or a program, or looks at the page."""
    if name in CLIENTS:
        return client(name, gateway)
    if name == "page":
        return page(gateway)
    out.mkdir()
    return globals()[name](gateway, tree, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--only", action="append", choices=[*CLIENTS, *PROGRAMS, "page"])
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    paritas = tools.paritas(args.paritas)
    end_when_told()
    wanted = list(dict.fromkeys(args.only or [*CLIENTS, *PROGRAMS, "page"]))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tree = tree_in(folder)
        with WebDav(folder / "webdav") as far:
            with Gateway(paritas, folder, nodes=[*(folder / f"disk{number}" for number in range(5)), far]) as gateway:
                for name in wanted:
                    begun = time.monotonic()
                    try:
                        found[name] = attempt(name, gateway, tree, folder / f"out-{name}")
                        print(f"{name}: ok, {time.monotonic() - begun:.0f} s", flush=True)
                    except (Exception, SystemExit) as error:  # The next one may still succeed.
                        print(f"{name}: FAILED\n{type(error).__name__}: {error}", flush=True)
            run(paritas, "volume", "repair", folder / "tank.toml")
            run(paritas, "volume", "verify", folder / "tank.toml", "--deep")
    text = table({name: done for name, done in found.items() if name in CLIENTS}, [name for name in found if name in PROGRAMS])
    print(text)
    failed = len(wanted) - len(found)
    right = args.only or failed or compare_page(text, args.write)
    print(f"{len(found)} passed, {failed} failed")
    sys.exit(0 if right and not failed else 1)


main()
