"""Writers, readers and watchers over three API servers. Each client is a thread that goes from server to server, and records
what it does."""
import http.client
import json
import random
import socket
import ssl
import threading
import time

from history import FAIL, OK, Event, List, Op, Watch
from machines import COUNT, PORT, address

NAMESPACE = "consistency"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
TIMEOUT = 5  # seconds, of a request
EPOCH = 20  # seconds after which clients turn to other keys, so that no key's history becomes too long to judge

now = time.monotonic


class NoAnswer(Exception):
    """`sent`: the server may have got the request."""

    def __init__(self, error, sent):
        super().__init__(str(error))
        self.sent = sent


class Connections:
    """A connection to each server. Of one thread."""

    def __init__(self, pki):
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._open = [None] * COUNT

    def _connection(self, server):
        if self._open[server] is None or self._open[server].sock is None:  # the last answer said that the server closes
            connection = http.client.HTTPSConnection(address(server), PORT, timeout=TIMEOUT, context=self._tls)
            try:
                connection.connect()
            except OSError as error:
                raise NoAnswer(error, sent=False) from error
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open[server] = connection
        return self._open[server]

    def drop(self, server):
        if self._open[server] is not None:
            self._open[server].close()
            self._open[server] = None

    def request(self, server, method, path, body=None):
        """Returns (status, document). Never repeats a request."""
        connection = self._connection(server)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"} if body is not None else {})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text.startswith(b"{") else {"message": text.decode(errors="replace")}
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.drop(server)
            raise NoAnswer(error, sent=True) from error

    def stream(self, server, path):
        """Yields the documents of a watch, and None after a second of silence."""
        connection = self._connection(server)
        self._open[server] = None
        sock = connection.sock  # the connection forgets it when the server says that it closes
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status != 200:
                yield {"type": "ERROR", "object": json.loads(response.read())}
                return
            sock.settimeout(1)
            rest = b""
            while True:
                try:
                    piece = response.read1(1 << 16)
                except TimeoutError:
                    yield None
                    # A buffered reader takes nothing more after a timeout: go on with a new connection.
                    return
                if not piece:
                    return
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(error, sent=True) from error
        finally:
            connection.close()


def version_of(document):
    """(rv, value) of a ConfigMap."""
    return int(document["metadata"]["resourceVersion"]), document["data"]["value"]


class Client(threading.Thread):
    def __init__(self, number, pki, history, over, seed):
        super().__init__(name=f"{type(self).__name__}-{number}", daemon=True)
        self.number, self.history, self.over = number, history, over
        self.connections, self.rng = Connections(pki), random.Random(seed * 1000 + number)
        self.error = None

    def run(self):
        try:
            while not self.over.is_set():
                self.turn()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
            raise

    def server(self):
        return self.rng.randrange(COUNT)

    def record(self, op, method, path, body=None):
        """Sends an operation and records it; returns the document of an answer that counts."""
        op.begin = now()
        try:
            status, document = self.connections.request(op.server, method, path, body)
        except NoAnswer as error:
            if error.sent and op.kind != "get":
                self.history.add(op)  # unknown
            elif not error.sent:
                time.sleep(0.05)
            return None
        op.end = now()
        if status in (200, 201):
            op.result = OK
        elif status == 404 and op.kind == "get":
            op.result = OK
        elif status in (404, 409):
            op.result = FAIL
        elif status in (401, 403, 400, 422):
            raise RuntimeError(f"{method} {path}: {status} {document}")
        else:  # 429 and 503 come before the write, but not each 500 or 504 does
            if op.kind != "get":
                op.end = None
                self.history.add(op)
            time.sleep(0.05)
            return None
        return document

    def get(self, key):
        """Returns (answered, version)."""
        op = Op(self.number, self.server(), "get", key, 0)
        document = self.record(op, "GET", f"{MAPS}/{key}")
        if document is None:
            return False, None
        if "data" in document:
            op.rv, op.value = version_of(document)
        self.history.add(op)
        return True, (op.rv, op.value) if op.value is not None else None


class Writer(Client):
    """Reads a key, and writes it by what it has read: perhaps much later, and through another server."""

    def __init__(self, *args, keys, pause=0):
        super().__init__(*args)
        self.keys, self._pause, self._count = keys, pause, 0

    def key(self):
        return f"k{int(now() / EPOCH)}-{self.rng.randrange(self.keys)}"

    def turn(self):
        time.sleep(self.rng.random() * 2 * self._pause)
        key = self.key()
        answered, version = self.get(key)
        if not answered:
            return
        if self.rng.random() < 0.2:
            time.sleep(self.rng.random() * 0.05)
        self._count += 1
        op = Op(self.number, self.server(), "put", key, 0, value=f"{self.number}.{self._count}")
        body = {"metadata": {"name": key}, "data": {"value": op.value}}
        if version is None:
            op.kind = "create"
            document = self.record(op, "POST", MAPS, body)
        else:
            op.expected_rv, op.expected = version
            if self.rng.random() < 0.15:
                op.kind, op.value = "delete", None
                document = self.record(op, "DELETE", f"{MAPS}/{key}", {"preconditions": {"resourceVersion": str(op.expected_rv)}})
            else:
                body["metadata"]["resourceVersion"] = str(op.expected_rv)
                document = self.record(op, "PUT", f"{MAPS}/{key}", body)
        if document is None:
            return
        if op.result == OK and op.kind != "delete":
            op.rv = version_of(document)[0]
        self.history.add(op)


class Reader(Client):
    def turn(self):
        server, begin = self.server(), now()
        items, path, rv = {}, f"{MAPS}?limit={self.rng.choice([0, 0, 3])}", None
        while True:
            try:
                status, document = self.connections.request(server, "GET", path)
            except NoAnswer as error:
                if not error.sent:
                    time.sleep(0.05)
                return
            if status != 200:  # also a page whose revision is compacted
                time.sleep(0.05)
                return
            items.update({item["metadata"]["name"]: version_of(item) for item in document["items"] if "value" in item.get("data", {})})
            rv = rv or int(document["metadata"]["resourceVersion"])
            if not document["metadata"].get("continue"):
                break
            path = f"{MAPS}?limit=3&continue={document['metadata']['continue']}"
            server = self.server()  # the next page comes from another server
        self.history.add(List(self.number, server, begin, now(), rv, items))
        time.sleep(self.rng.random() * 0.02)


class Watcher(Client):
    """Follows all keys until it has seen the revision `last`, which the caller sets at the end."""
    last = None

    def __init__(self, *args):
        super().__init__(*args)
        self._begin(0)

    def run(self):
        super().run()
        if self.error is None:
            self.history.add(self._watch)

    def start_revision(self):
        """0: it has not begun."""
        return self._watch.start

    def _begin(self, rv):
        self._watch = Watch(self.number, rv, rv, [])

    def turn(self):
        """One connection."""
        server = self.server()
        if self._watch.start == 0:
            try:
                status, document = self.connections.request(server, "GET", MAPS)
            except NoAnswer:
                time.sleep(0.05)
                return
            if status != 200:
                return
            self._begin(int(document["metadata"]["resourceVersion"]))
        path = f"{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={self._watch.upto}&timeoutSeconds=4"
        try:
            for document in self.connections.stream(server, path):
                if document is not None and not self._take(document):
                    break
                if type(self).last is not None and self._watch.upto >= type(self).last:
                    self.over.set()
                    return
        except NoAnswer:
            time.sleep(0.05)

    def _take(self, document):
        """False: the watch has to begin anew."""
        if document["type"] == "ERROR":
            if document["object"].get("code") == 410:  # compacted: what comes after the next list is another watch
                self.history.add(self._watch)
                self._begin(0)
            return False
        thing = document["object"]
        rv = int(thing["metadata"]["resourceVersion"])
        if document["type"] != "BOOKMARK" and "value" in thing.get("data", {}):
            event = Event(document["type"], thing["metadata"]["name"], rv, thing["data"]["value"])
            self._watch.events.append(self.history.one(event))
        self._watch.upto = max(self._watch.upto, rv)
        return True
