"""A DNS server on ADDRESS PORT that knows NAME=IPV4 arguments, for a second each, and nothing else (NXDOMAIN); or with the one
argument relay=ADDRESS asks the server there.

Says "ready", then each name that it is asked for, until its input ends.
"""
import select
import socket
import struct
import sys
import threading

TTL = 1


def name_of(packet):
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(labels).lower(), at + 1


def answer(packet, known):
    name, end = name_of(packet)
    qtype = struct.unpack(">H", packet[end : end + 2])[0]
    records = b""
    if name in known and qtype == 1:
        records = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, TTL, 4) + socket.inet_aton(known[name])
    rcode = 0 if name in known or not name else 3
    header = packet[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, 1 if records else 0, 0, 0)
    return name, header + packet[12 : end + 4] + records


def relay(server, packet, client, to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(5)
        asking.sendto(packet, (to, 53))
        try:
            server.sendto(asking.recv(4096), client)
        except socket.timeout:
            pass


def main():
    known = dict(argument.split("=") for argument in sys.argv[3:])
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], int(sys.argv[2])))
    print("ready", flush=True)
    while True:
        ready = select.select([server, sys.stdin], [], [])[0]
        if server in ready:
            packet, client = server.recvfrom(4096)
            name, reply = answer(packet, known)
            if "relay" in known:
                threading.Thread(target=relay, args=(server, packet, client, known["relay"]), daemon=True).start()
            else:
                server.sendto(reply, client)
            print(name, flush=True)
        elif not sys.stdin.readline():
            break


main()
