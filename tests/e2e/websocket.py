"""A WebSocket client: websocket.py DIR URL PROTOCOL [MESSAGE...]

DIR has ca.crt, admin.crt and admin.key. The messages (text, with escapes as in Python) are sent as bytes once the
server has said something. Prints the agreed protocol, then each message as JSON, until the server closes; after the
last line that is wanted the caller may end it.
"""
import base64
import json
import os
import socket
import ssl
import struct
import sys
import urllib.parse


def connect(directory, url, protocol):
    parts = urllib.parse.urlsplit(url)
    context = ssl.create_default_context(cafile=f"{directory}/ca.crt")
    context.load_cert_chain(f"{directory}/admin.crt", f"{directory}/admin.key")
    stream = context.wrap_socket(socket.create_connection((parts.hostname, parts.port), 20), server_hostname=parts.hostname)
    key = base64.b64encode(os.urandom(16)).decode()
    offer = f"Sec-WebSocket-Protocol: {protocol}\r\n" if protocol else ""
    stream.sendall((f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\n"
                    f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{offer}\r\n").encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = stream.recv(1)
        if not piece:
            break
        head += piece
    lines = head.decode().split("\r\n")
    if " 101 " not in lines[0] + " ":
        sys.exit(f"refused: {lines[0]}")
    agreed = [line.split(": ", 1)[1] for line in lines if line.lower().startswith("sec-websocket-protocol:")]
    return stream.makefile("rwb"), agreed


def messages(stream):
    while head := stream.read(2):
        opcode, size = head[0] & 15, head[1] & 127
        if size >= 126:
            size = struct.unpack(">H" if size == 126 else ">Q", stream.read(2 if size == 126 else 8))[0]
        payload = stream.read(size)
        if opcode == 8:
            return
        yield payload.decode("latin-1")


def send(stream, payload):
    stream.write(bytes([0x82, 0x80 | len(payload)]) + b"\0\0\0\0" + payload)
    stream.flush()


def main(directory, url, protocol, *to_send):
    stream, agreed = connect(directory, url, protocol)
    print(json.dumps(agreed), flush=True)
    waiting = [text.encode().decode("unicode_escape").encode("latin-1") for text in to_send]
    for message in messages(stream):
        print(json.dumps(message), flush=True)
        while waiting:
            send(stream, waiting.pop(0))


if __name__ == "__main__":
    main(*sys.argv[1:])
