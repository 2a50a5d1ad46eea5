# SPDX-License-Identifier: MIT OR Apache-2.0
"""requests_loop.py DIRECTORY URL: each file by a PUT of its own, one after the other, each on a new connection, as scripts do."""
import pathlib
import sys

import requests

directory, url = sys.argv[1:]
for path in sorted(pathlib.Path(directory).iterdir()):
    with path.open("rb") as file:
        requests.put(f"{url}/{path.name}", data=file, timeout=60).raise_for_status()
