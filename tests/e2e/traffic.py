"""Traffic that notices every break: one connection held to each address, and fresh ones all the time.

Runs where it is started (a pod's or a node's network). Speaks to line echo servers at the ADDRESS:PORT arguments,
says "ready" once each of them has answered, and at the end of its input prints what happened, as JSON:

  {"held": {"10.0.0.1:7000": 812}, "fresh": {"10.0.0.1:7000": 790}, "slow": ["..."], "failures": ["..."]}
"""
import json
import socket
import sys
import threading
import time

HELD_PAUSE, FRESH_PAUSE = 0.02, 0.1  # a fresh connection costs the server a process
SLOW, PATIENCE = 0.5, 8  # seconds; a lost packet shows as slow, a broken path as a failure

stop = threading.Event()
lock = threading.Lock()
begin = time.monotonic()
result = {"held": {}, "fresh": {}, "slow": [], "failures": []}


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def ask(connection, kind, address):
    line = f"{kind} {time.monotonic()}\n".encode()
    connection.sendall(line)
    answer = b""
    while len(answer) < len(line):
        chunk = connection.recv(4096)
        if not chunk:
            raise ConnectionError("closed by the peer")
        answer += chunk
    if answer != line:
        raise ConnectionError(f"sent {line!r}, got {answer!r}")


def note(kind, address, started, error=None):
    took = time.monotonic() - started
    with lock:
        if took > SLOW:
            result["slow"].append(f"{kind} {address} after {started - begin:.1f} s: {took:.1f} s")
        if error is None:
            result[kind][address] = result[kind].get(address, 0) + 1
        else:
            result["failures"].append(f"{kind} {address} after {started - begin:.1f} s: {error}")


def hold(address):
    """After the first answer on a connection any error counts as a break."""
    connection = None
    while not stop.is_set():
        started = time.monotonic()
        try:
            connection = connection or connect(address)
            ask(connection, "held", address)
            note("held", address, started)
        except OSError as error:
            note("held", address, started, error)
            connection = None
        stop.wait(HELD_PAUSE)


def fresh(address):
    while not stop.is_set():
        started = time.monotonic()
        try:
            with connect(address) as connection:
                ask(connection, "fresh", address)
            note("fresh", address, started)
        except OSError as error:
            note("fresh", address, started, error)
        stop.wait(FRESH_PAUSE)


def main():
    addresses = sys.argv[1:]
    threads = [threading.Thread(target=work, args=(a,)) for a in addresses for work in (hold, fresh)]
    for thread in threads:
        thread.start()
    while not stop.is_set():
        with lock:
            if all(a in result[kind] for a in addresses for kind in ("held", "fresh")):
                break
        stop.wait(FRESH_PAUSE)
    print("ready", flush=True)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
