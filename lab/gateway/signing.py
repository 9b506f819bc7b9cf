"""Requests of S3 as bytes, signed with version 4: for clients that must say what no client says."""

import datetime
import hashlib
import hmac
import urllib.parse

REGION = "us-east-1"
UNRESERVED = "-._~/"


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Signer:
    """Signs for one key and one host."""

    def __init__(self, host, key, secret):
        self.host, self.key = host, key
        now = datetime.datetime.now(datetime.timezone.utc)
        self.time, self.day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        self.scope = f"{self.day}/{REGION}/s3/aws4_request"
        signing = _hmac(b"AWS4" + secret.encode(), self.day)
        for part in (REGION, "s3", "aws4_request"):
            signing = _hmac(signing, part)
        self.signing = signing

    def request(self, method, path, query=(), body=b"", headers=None, content_hash=None):
        """Returns a request as bytes. `path` is sent as it is."""
        return self._head(method, path, query, headers or {}, len(body), content_hash or hashlib.sha256(body).hexdigest())[0] + body

    def chunked(self, path, chunks, trailer=None):
        """Returns a put whose body is in signed chunks, with a trailer `(name, value)` that is signed as well."""
        kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
        headers = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(sum(map(len, chunks)))}
        if trailer:
            headers["x-amz-trailer"] = trailer[0]
        signature, body = None, b""
        # The length of a head depends on nothing in the body but its length, which is known only after it is made.
        for final in (False, True):
            head, signature = self._head("PUT", path, (), headers, len(body), kind)
            body = b""
            for chunk in [*chunks, b""]:
                text = "\n".join(["AWS4-HMAC-SHA256-PAYLOAD", self.time, self.scope, signature,
                                  hashlib.sha256(b"").hexdigest(), hashlib.sha256(chunk).hexdigest()])
                signature = _hmac(self.signing, text).hex()
                body += f"{len(chunk):x};chunk-signature={signature}\r\n".encode() + chunk + (b"\r\n" if chunk or not trailer else b"")
            if trailer:
                line = f"{trailer[0]}:{trailer[1]}"
                text = "\n".join(["AWS4-HMAC-SHA256-TRAILER", self.time, self.scope, signature,
                                  hashlib.sha256(f"{line}\n".encode()).hexdigest()])
                body += f"{line}\r\nx-amz-trailer-signature:{_hmac(self.signing, text).hex()}\r\n\r\n".encode()
        return head + body

    def _head(self, method, path, query, headers, length, content_hash):
        quote = lambda text: urllib.parse.quote(text, safe="-._~")
        canonical_query = "&".join(sorted(f"{quote(name)}={quote(value)}" for name, value in query))
        signed = {"host": self.host, "x-amz-content-sha256": content_hash, "x-amz-date": self.time} | headers
        names = ";".join(sorted(signed))
        canonical = "\n".join([method, path, canonical_query, *(f"{name}:{signed[name]}" for name in sorted(signed)), "", names,
                               content_hash])
        text = "\n".join(["AWS4-HMAC-SHA256", self.time, self.scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signature = _hmac(self.signing, text).hex()
        sent = signed | {"authorization": f"AWS4-HMAC-SHA256 Credential={self.key}/{self.scope}, SignedHeaders={names}, Signature={signature}",
                         "content-length": str(length), "connection": "close"}
        target = path + ("?" + canonical_query if canonical_query else "")
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode(), signature
