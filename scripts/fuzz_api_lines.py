"""How bodies of JSON lines are sent: texts as they are made up, every other one as a line that could be meant."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("utf-8", "replace")
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) % 2:
        text = "\n".join(json.dumps({"id": part, "timezone": "UTC"}) for part in text.splitlines())
    return text.encode("utf-8", "replace")
