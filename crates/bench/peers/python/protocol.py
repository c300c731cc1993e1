"""The protocol between the bench and the program of a peer, as in ../protocol.rs."""

import json
import os
import sys
import time
from datetime import datetime, timezone


class Work:
    """One piece of work, read from the first line of the standard input."""

    def __init__(self):
        self.__dict__.update(json.loads(sys.stdin.readline()))

    def due(self, n):
        """Returns the time of a job, or None if it is due at once."""
        if self.kind == "drain":
            return None
        at = self.base_ms + self.spread_ms * n // self.jobs
        return datetime.fromtimestamp(at / 1000, timezone.utc)


class Witness:
    """Notes each call of a handler."""

    def __init__(self, work):
        self.work = work
        self.calls = []

    def call(self, n):
        self.calls.append((n, time.time_ns() // 1000))
        if len(self.calls) == self.work.jobs:
            say({"event": "called"})

    def finish(self):
        """Waits for the bench to have seen enough, writes the calls and ends the process."""
        sys.stdin.readline()
        with open(self.work.results, "w", encoding="utf-8") as results:
            results.writelines(f"{n} {at}\n" for n, at in list(self.calls))
        say({"event": "written"})
        os._exit(0)


def ready(version):
    """Says that everything is seeded, and waits for the word to start."""
    say({"event": "ready", "version": version})
    if sys.stdin.readline().strip() != "go":
        os._exit(0)


def say(message):
    print(json.dumps(message), flush=True)
