# SPDX-License-Identifier: MIT OR Apache-2.0
"""As much of a registry of images as `skopeo copy` needs to push one: registry.py DIRECTORY ADDRESS PORT. Blobs and manifests are files by their digests."""

import hashlib
import http.server
import itertools
import os
import sys
import urllib.parse

directory, address, port = sys.argv[1:]
numbers = itertools.count()


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, **headers):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    @staticmethod
    def upload(place):
        return os.path.join(directory, "upload" + place.rsplit("/", 1)[1])

    def keep(self, body):
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        with open(os.path.join(directory, digest), "wb") as file:
            file.write(body)
        return digest

    def do_GET(self):
        self.answer(200 if self.path == "/v2/" else 404)

    def do_HEAD(self):
        self.answer(404)

    def do_POST(self):
        self.body()
        place = self.path + str(next(numbers))
        open(self.upload(place), "wb").close()
        self.answer(202, Location=place, Range="0-0")

    def do_PATCH(self):
        with open(self.upload(self.path), "ab") as file:
            file.write(self.body())
        self.answer(202, Location=self.path, Range="0-" + str(os.path.getsize(file.name) - 1))

    def do_PUT(self):
        address = urllib.parse.urlsplit(self.path)
        if "/manifests/" in address.path:
            return self.answer(201, Docker_Content_Digest=self.keep(self.body()))
        with open(self.upload(address.path), "rb") as file:
            found = self.keep(file.read() + self.body())
        asked = urllib.parse.parse_qs(address.query)["digest"][0]
        self.answer(201 if found == asked else 400, Docker_Content_Digest=found)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer((address, int(port)), Registry).serve_forever()
