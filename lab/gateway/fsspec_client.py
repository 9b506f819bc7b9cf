"""The operations of most programs by s3fs of fsspec. Arguments: endpoint, key, secret."""

import os
import sys

import s3fs

ENDPOINT, KEY, SECRET = sys.argv[1:]
FS = s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=ENDPOINT, client_kwargs={"region_name": "us-east-1"})
BODY = os.urandom(11 << 20)


def buckets():
    FS.mkdir("fsspec")
    assert FS.exists("fsspec")


def objects():
    FS.pipe_file("fsspec/a/ü", BODY[:1_000_003])
    assert FS.cat_file("fsspec/a/ü") == BODY[:1_000_003]
    assert FS.cat_file("fsspec/a/ü", start=5, end=70_000) == BODY[5:70_000]


def multipart():
    with FS.open("fsspec/large", "wb", block_size=5 << 20) as file:
        file.write(BODY)
    assert FS.cat_file("fsspec/large") == BODY


def copies():
    FS.copy("fsspec/a/ü", "fsspec/copy")
    assert FS.cat_file("fsspec/copy") == BODY[:1_000_003]


def listings():
    assert sorted(FS.ls("fsspec", detail=False)) == ["fsspec/a", "fsspec/copy", "fsspec/large"]


def deletions():
    FS.rm("fsspec", recursive=True)
    FS.invalidate_cache()
    assert not FS.exists("fsspec/large")


for operation in [buckets, objects, multipart, copies, listings, deletions]:
    operation()
    print(operation.__name__, "ok", flush=True)
