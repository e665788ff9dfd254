"""Calls one tool: `client.py URL TOKENFILE TOOL JSON` prints its answer. The standard library is all it needs."""

import pathlib
import sys
import urllib.request

url, token_file, tool, arguments = sys.argv[1:]
token = pathlib.Path(token_file).read_text().strip()
request = urllib.request.Request(f"{url}/tools/{tool}", arguments.encode(), {"Authorization": f"Bearer {token}"})
with urllib.request.urlopen(request) as answer:  # a refused call raises HTTPError, whose body says why
    print(answer.read().decode())
