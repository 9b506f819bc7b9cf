"""Every operation of the gateway by boto3. Arguments: endpoint, key, secret. Prints a line an operation: `name ok`."""

import hashlib
import io
import os
import sys
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT, KEY, SECRET = sys.argv[1:]
S3 = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    aws_access_key_id=KEY,
    aws_secret_access_key=SECRET,
    region_name="us-east-1",
    config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
)
BUCKET = "boto"
PART = 5 << 20


def refused(call, **arguments):
    """Returns the code with which a call is refused."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def put(key, body=b"", **more):
    return S3.put_object(Bucket=BUCKET, Key=key, Body=body, **more)


def get(key, **more):
    return S3.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read()


def buckets():
    assert refused(S3.put_object, Bucket=BUCKET, Key="a", Body=b"") == "NoSuchBucket"
    S3.create_bucket(Bucket=BUCKET)
    S3.head_bucket(Bucket=BUCKET)
    assert refused(S3.head_bucket, Bucket="nowhere") == "404"
    assert BUCKET in [bucket["Name"] for bucket in S3.list_buckets()["Buckets"]]
    assert "Status" not in S3.get_bucket_versioning(Bucket=BUCKET)
    S3.get_bucket_location(Bucket=BUCKET)


def objects():
    body = os.urandom(3_000_001)
    about = {"ContentType": "image/x", "CacheControl": "no-cache", "Metadata": {"who": "me"}}
    stored = put("a/ä b+c", body, **about)
    assert stored["ETag"].strip('"') == hashlib.md5(body).hexdigest()
    found = S3.get_object(Bucket=BUCKET, Key="a/ä b+c")
    assert found["Body"].read() == body
    assert all(found[name] == value for name, value in about.items())
    assert S3.head_object(Bucket=BUCKET, Key="a/ä b+c")["ContentLength"] == len(body)
    assert get("a/ä b+c", Range="bytes=-7") == body[-7:]
    assert get("a/ä b+c", Range="bytes=99-100000") == body[99:100001]
    assert refused(S3.get_object, Bucket=BUCKET, Key="a/ä b+c", Range="bytes=3000001-") == "InvalidRange"
    S3.delete_object(Bucket=BUCKET, Key="a/ä b+c")
    assert refused(S3.get_object, Bucket=BUCKET, Key="a/ä b+c") == "NoSuchKey"
    S3.delete_object(Bucket=BUCKET, Key="a/ä b+c")


def in_parts(key, bodies, algorithm, kind):
    """Stores an object in parts, and returns the answer to its completion."""
    at = {"Bucket": BUCKET, "Key": key}
    at["UploadId"] = S3.create_multipart_upload(ChecksumAlgorithm=algorithm, ChecksumType=kind, **at)["UploadId"]
    stored = [S3.upload_part(PartNumber=number, Body=body, ChecksumAlgorithm=algorithm, **at) for number, body in enumerate(bodies, 1)]
    names = ("ETag", f"Checksum{algorithm}")
    parts = [{"PartNumber": number, **{name: part[name] for name in names}} for number, part in enumerate(stored, 1)]
    return S3.complete_multipart_upload(MultipartUpload={"Parts": parts}, ChecksumType=kind, **at)


def checksums():
    for algorithm in ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]:
        stored = put("sum", b"content", ChecksumAlgorithm=algorithm)
        found = S3.head_object(Bucket=BUCKET, Key="sum", ChecksumMode="ENABLED")
        assert stored[f"Checksum{algorithm}"] == found[f"Checksum{algorithm}"], algorithm
    for algorithm, kind in [("CRC32", "COMPOSITE"), ("SHA256", "COMPOSITE"), ("CRC32C", "FULL_OBJECT"), ("CRC64NVME", "FULL_OBJECT")]:
        bodies = [b"a" * (5 << 20), b"the end"]
        stored = in_parts("sum", bodies, algorithm, kind)
        found = S3.head_object(Bucket=BUCKET, Key="sum", ChecksumMode="ENABLED")
        assert stored["ChecksumType"] == found["ChecksumType"] == kind
        assert stored[f"Checksum{algorithm}"] == found[f"Checksum{algorithm}"], algorithm
        whole = put("once", b"".join(bodies), ChecksumAlgorithm=algorithm)[f"Checksum{algorithm}"]
        assert (found[f"Checksum{algorithm}"] == whole) == (kind == "FULL_OBJECT")
        # The client compares what it reads with a checksum of the whole.
        assert S3.get_object(Bucket=BUCKET, Key="sum", ChecksumMode="ENABLED")["Body"].read() == b"".join(bodies)
    S3.delete_object(Bucket=BUCKET, Key="once")
    wrong = {"ContentMD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    assert refused(put, key="wrong", body=b"abc", **wrong) == "BadDigest"
    wrong = {"ChecksumSHA256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}
    assert refused(put, key="wrong", body=b"abc", **wrong) == "BadDigest"
    assert refused(S3.head_object, Bucket=BUCKET, Key="wrong") == "404"


def conditions():
    etag = put("once", b"1")["ETag"]
    assert refused(put, key="once", body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    put("once", b"3", IfMatch=etag)
    assert refused(put, key="once", body=b"4", IfMatch=etag) == "PreconditionFailed"
    etag = S3.head_object(Bucket=BUCKET, Key="once")["ETag"]
    assert refused(S3.get_object, Bucket=BUCKET, Key="once", IfNoneMatch=etag) == "304"
    assert get("once", IfMatch=etag) == b"3"


def presigned():
    where = {"Bucket": BUCKET, "Key": "signed"}
    url = S3.generate_presigned_url("put_object", Params=where)
    urllib.request.urlopen(urllib.request.Request(url, data=b"content", method="PUT"))
    assert urllib.request.urlopen(S3.generate_presigned_url("get_object", Params=where)).read() == b"content"


def multipart():
    body = os.urandom(3 * PART + 9)
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
    S3.upload_fileobj(io.BytesIO(body), BUCKET, "large", Config=config)
    assert S3.head_object(Bucket=BUCKET, Key="large")["ETag"].endswith('-4"')
    assert get("large") == body
    assert get("large", PartNumber=2) == body[PART : 2 * PART]
    where = {"Bucket": BUCKET, "Key": "parts"}
    upload = S3.create_multipart_upload(**where)["UploadId"]
    source = {"CopySource": {"Bucket": BUCKET, "Key": "large"}, "CopySourceRange": f"bytes=0-{PART - 1}"}
    first = S3.upload_part_copy(**where, UploadId=upload, PartNumber=1, **source)["CopyPartResult"]["ETag"]
    last = S3.upload_part(**where, UploadId=upload, PartNumber=7, Body=b"tail")["ETag"]
    listed = S3.list_parts(**where, UploadId=upload)["Parts"]
    assert [part["PartNumber"] for part in listed] == [1, 7]
    assert upload in [one["UploadId"] for one in S3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]]

    def complete(*parts):
        named = [{"PartNumber": number, "ETag": etag} for number, etag in parts]
        return S3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": named})

    for parts, code in [(((7, last), (1, first)), "InvalidPartOrder"), (((1, last),), "InvalidPart")]:
        assert refused(lambda: complete(*parts)) == code
    complete((1, first), (7, last))
    complete((1, first), (7, last))
    assert get("parts") == body[:PART] + b"tail"
    upload = S3.create_multipart_upload(**where)["UploadId"]
    S3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"x")
    S3.abort_multipart_upload(**where, UploadId=upload)
    assert refused(S3.upload_part, **where, UploadId=upload, PartNumber=1, Body=b"x") == "NoSuchUpload"


def copies():
    put("source", b"content", ContentType="text/x", Metadata={"a": "b"})
    source = {"Bucket": BUCKET, "Key": "source"}
    S3.copy_object(Bucket=BUCKET, Key="copy", CopySource=source)
    assert S3.head_object(Bucket=BUCKET, Key="copy")["Metadata"] == {"a": "b"}
    S3.copy_object(Bucket=BUCKET, Key="copy", CopySource=source, MetadataDirective="REPLACE", ContentType="text/y")
    found = S3.head_object(Bucket=BUCKET, Key="copy")
    assert (found["Metadata"], found["ContentType"]) == ({}, "text/y")
    assert get("copy") == b"content"


def tags():
    where = {"Bucket": BUCKET, "Key": "tagged"}
    put("tagged", b"content", Tagging="a=1&b=2", Metadata={"a": "b"})
    assert len(S3.get_object_tagging(**where)["TagSet"]) == 2
    S3.put_object_tagging(**where, Tagging={"TagSet": [{"Key": "c", "Value": "d e"}]})
    assert S3.get_object_tagging(**where)["TagSet"] == [{"Key": "c", "Value": "d e"}]
    S3.delete_object_tagging(**where)
    assert S3.get_object_tagging(**where)["TagSet"] == []
    assert S3.head_object(**where)["Metadata"] == {"a": "b"}


def listings():
    names = ["l/", "l//y", "l/./z", "l/%", "l/..", "l/é", "l/" + "n" * 200, "l/a", "l/a.b", "l/a/b"]
    for name in names:
        put(name, name.encode())
    assert all(get(name) == name.encode() for name in names)
    wanted = sorted(names, key=lambda name: name.encode())
    for operation in ["list_objects_v2", "list_objects"]:
        pages = S3.get_paginator(operation).paginate(Bucket=BUCKET, Prefix="l/", PaginationConfig={"PageSize": 3})
        assert [found["Key"] for page in pages for found in page["Contents"]] == wanted, operation
        pages = S3.get_paginator(operation).paginate(
            Bucket=BUCKET, Prefix="l/", Delimiter="/", PaginationConfig={"PageSize": 2}
        )
        pages = list(pages)
        found = [item["Key"] for page in pages for item in page.get("Contents", [])]
        found += [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])]
        below = {name if "/" not in name[2:] else "l/" + name[2:].split("/")[0] + "/" for name in names}
        assert sorted(found) == sorted(below), (operation, found)
    after = S3.list_objects_v2(Bucket=BUCKET, Prefix="l/", StartAfter="l/a")["Contents"]
    assert [found["Key"] for found in after] == [name for name in wanted if name > "l/a"]


def refusals():
    assert refused(S3.put_bucket_versioning, Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}) == "NotImplemented"
    assert refused(S3.put_object, Bucket=BUCKET, Key="n" * 256, Body=b"") == "KeyTooLongError"
    assert refused(S3.delete_bucket, Bucket=BUCKET) == "BucketNotEmpty"


def deletions():
    keys = [found["Key"] for found in S3.list_objects_v2(Bucket=BUCKET)["Contents"]]
    deleted = S3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    assert len(deleted["Deleted"]) == len(keys) and not deleted.get("Errors")
    S3.delete_bucket(Bucket=BUCKET)
    assert refused(S3.list_objects_v2, Bucket=BUCKET) == "NoSuchBucket"


for operation in [
    buckets, objects, checksums, conditions, presigned, multipart, copies, tags, listings, refusals, deletions
]:
    operation()
    print(operation.__name__, "ok", flush=True)
