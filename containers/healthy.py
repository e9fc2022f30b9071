"""Of an image's HEALTHCHECK: ends with 0 where what runs there answers $HEALTH_URL with 200."""

import os
import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

url = urlsplit(os.environ["HEALTH_URL"])
try:
    connection = HTTPConnection(url.netloc, timeout=4)
    connection.request("GET", url.path)
    reply = connection.getresponse()
except (OSError, HTTPException) as problem:
    sys.exit(f"{url.geturl()}: {problem}")
said = reply.read(4096).decode(errors="replace")
print(said)
sys.exit(reply.status != 200)
