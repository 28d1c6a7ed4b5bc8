"""Many connections that stay open.

many_connections.py serve ADDRESS:PORT          echoes until the end of its input
many_connections.py hold ADDRESS:PORT COUNT     opens COUNT connections; then, for each line of its input, sends something over
                                                each and says how many have answered

Both say "ready" when they are.
"""
import resource
import selectors
import socket
import sys


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def serve(where):
    listener = socket.create_server(where, backlog=1024)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            data = key.fileobj.recv(4096)
            if data:
                key.fileobj.sendall(data)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def answers(connection, line):
    try:
        connection.sendall(line)
        got = b""
        while len(got) < len(line):
            chunk = connection.recv(len(line) - len(got))
            if not chunk:
                return False
            got += chunk
        return got == line
    except OSError:
        return False


def hold(where, count):
    connections = [socket.create_connection(where, timeout=5) for _ in range(count)]
    print("ready", flush=True)
    for line in sys.stdin:
        print(sum(answers(c, line.encode()) for c in connections), flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if sys.argv[1] == "serve":
        serve(address(sys.argv[2]))
    else:
        hold(address(sys.argv[2]), int(sys.argv[3]))
