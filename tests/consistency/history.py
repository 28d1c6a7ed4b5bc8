"""What clients have done and seen: operations, lists, and the events of watches. Kept in memory and written as JSON lines.

A value is unique in a history, so it names a version of its key. `rv` is metadata.resourceVersion as a number: etcd's
revision of the write. Times are seconds of one monotonic clock.
"""
import dataclasses
import json
import threading

# What became of an operation. UNKNOWN: no answer; it may have happened, or may still happen.
OK, FAIL, UNKNOWN = "ok", "fail", "unknown"


@dataclasses.dataclass
class Op:
    """An operation on one key.

    kind: create, put, delete, get. `expected` and `expected_rv`: the version that a put or delete names. `value`: what a
    write writes, or what a get has seen; None: the key does not exist. `rv`: of the write, or of the version seen.
    FAIL is a refusal because the key has another version.
    """
    client: int
    server: int
    kind: str
    key: str
    begin: float
    end: float | None = None
    result: str = UNKNOWN
    value: str | None = None
    expected: str | None = None
    rv: int = 0
    expected_rv: int = 0


@dataclasses.dataclass
class List:
    """A consistent list: `items` by key, (rv, value), as of the revision `rv`."""
    client: int
    server: int
    begin: float
    end: float
    rv: int
    items: dict


@dataclasses.dataclass
class Event:
    kind: str  # ADDED, MODIFIED, DELETED
    key: str
    rv: int
    value: str


@dataclasses.dataclass
class Watch:
    """What one watcher has seen after the revision `start`, across as many connections as it took. `upto`: it has everything
    until there."""
    client: int
    start: int
    upto: int
    events: list


class History:
    """`begin`: a revision before the first write, when no key exists."""

    def __init__(self, begin=0):
        self.begin = begin
        self.ops, self.lists, self.watches = [], [], []
        self._lock = threading.Lock()
        self._events = {}

    def add(self, record):
        with self._lock:
            {Op: self.ops, List: self.lists, Watch: self.watches}[type(record)].append(record)

    def one(self, event):
        """The object of an equal event that another watcher has seen: many watchers see the same."""
        known = self._events.setdefault(event.rv, event)
        return known if known == event else event

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"is": "Begin", "rv": self.begin}) + "\n")
            for record in [*self.ops, *self.lists, *self.watches]:
                file.write(json.dumps({"is": type(record).__name__, **dataclasses.asdict(record)}) + "\n")

    @staticmethod
    def read(path):
        history = History()
        with open(path, encoding="utf-8") as file:
            for line in file:
                fields = json.loads(line)
                if fields["is"] == "Begin":
                    history.begin = fields["rv"]
                    continue
                kind = {"Op": Op, "List": List, "Watch": Watch}[fields.pop("is")]
                if kind is List:
                    fields["items"] = {key: tuple(item) for key, item in fields["items"].items()}
                if kind is Watch:
                    fields["events"] = [Event(**event) for event in fields["events"]]
                history.add(kind(**fields))
        return history
