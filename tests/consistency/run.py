#!/usr/bin/env python3
"""Whether three API servers with three members of etcd are one consistent store while machines fail, in the manner of Jepsen.

Clients read, write and watch; machines are killed, stopped and cut off meanwhile; the history of what the clients have seen is
then judged (checks.py). Ends with 1 and the history's file where it is not consistent.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

from checks import Log, check
from history import OK, UNKNOWN, History, Op
from machines import COUNT, NAMES, Machines
from workload import MAPS, NAMESPACE, Connections, NoAnswer, Reader, Watcher, Writer, now

FILLERS = 16


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="kube-controlplane")
    parser.add_argument("--seconds", type=float, default=15, help="how long machines fail")
    parser.add_argument("--minutes", type=float, help="the same, in minutes")
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--readers", type=int, default=3)
    parser.add_argument("--watchers", type=int, default=6)
    parser.add_argument("--keys", type=int, default=6, help="how many keys are written at a time")
    parser.add_argument("--objects", type=int, default=0, help="how many there are besides")
    parser.add_argument("--compaction", default="5s", help="how often etcd forgets the past")
    parser.add_argument("--pause", type=float, default=0, help="seconds that a writer rests after each write, on average")
    parser.add_argument("--faults", default=",".join(Machines.FAULTS), help="default: %(default)s; empty: none")
    parser.add_argument("--once", action="store_true", help="each fault once, whatever the time")
    parser.add_argument("--flat", action="store_true", help="fail when the servers' memory grows")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--history", help="file to write the history to; default: only where it is not consistent")
    return parser.parse_args()


def in_own_namespaces():
    """Becomes a process in namespaces of its own: all that is made there ends with it."""
    if os.environ.get("CONSISTENCY_INSIDE"):
        return
    os.environ["CONSISTENCY_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                          sys.executable, *sys.argv])


def await_answer(connections, what, method, path, body=None, wanted=(200, 201, 409), seconds=90):
    """Until every server has answered so."""
    end = now() + seconds
    for server in range(COUNT):
        while True:
            try:
                status, document = connections.request(server, method, path, body)
                if status in wanted:
                    break
                problem = f"{status} {document}"
            except NoAnswer as error:
                problem = error
            if now() > end:
                raise RuntimeError(f"{what}: {NAMES[server]}: {problem}")
            time.sleep(0.1)


def fail_machines(machines, faults, seconds, once, rng):
    """One after the other: two of three machines always work. Each fault comes before any comes again. Returns (fault, begin,
    end) of each."""
    end, deck, done = now() + seconds, [], []
    time.sleep(min(1.0, seconds / 4))
    while len(done) < len(faults) if once else now() < end:
        if not faults:
            time.sleep(max(0.0, min(1.0, end - now())))
            continue
        deck = deck or rng.sample(faults, len(faults))
        fault, index, lasts, begin = deck.pop(), rng.randrange(COUNT), rng.uniform(0.5, 3.5), now()
        print(f"  {fault} {NAMES[index]} {lasts:.1f} s", flush=True)
        getattr(machines, fault)(index, lasts)
        machines.check()
        done.append((fault, begin, now()))
        time.sleep(rng.uniform(0.3, 1.5))
    return done


class Memory(threading.Thread):
    """What the servers use, every few seconds. Flat: no API server needs clearly more late than in the middle. That of etcd is
    told alone."""
    PERIOD, MORE, AT_LEAST = 2.0, 1.2, 16 * 1024

    def __init__(self, machines):
        super().__init__(daemon=True)
        self._machines, self._over, self.samples = machines, threading.Event(), []

    def run(self):
        while not self._over.wait(self.PERIOD):
            self.samples.append(self._machines.memory())

    def end(self):
        self._over.set()
        self.join()

    def growth(self):
        """(what, KiB in the middle, KiB late) of all that have grown. A process that was killed begins again with little."""
        out, third = [], len(self.samples) // 3
        for what in sorted({what for sample in self.samples for what in sample}):
            most = [max((sample.get(what, 0) for sample in part), default=0)
                    for part in (self.samples[third:2 * third], self.samples[2 * third:])]
            print(f"  memory of {what}: {most[0] // 1024} MiB, later {most[1] // 1024} MiB")
            if what in NAMES and most[0] and most[1] > most[0] * self.MORE and most[1] - most[0] > self.AT_LEAST:
                out.append((what, *most))
        return out


def fill(pki, objects):
    """Objects that no client touches."""
    def create(first):
        connections = Connections(pki)
        for number in range(first, objects, FILLERS):
            status, document = connections.request(number % COUNT, "POST", "/api/v1/namespaces/besides/configmaps",
                                                   {"metadata": {"name": f"o{number}"}, "data": {"value": "x" * 200}})
            if status != 201:
                raise RuntimeError(f"object {number}: {status} {document}")
    await_answer(Connections(pki), "the namespace is not made", "POST", "/api/v1/namespaces", {"metadata": {"name": "besides"}})
    with concurrent.futures.ThreadPoolExecutor(FILLERS) as pool:
        list(pool.map(create, range(FILLERS)))


def tell_silences(history, faults):
    """The longest time in which no write was acknowledged, by fault."""
    ends = sorted(op.end for op in history.ops if op.kind != "get" and op.result == OK)
    longest = {}
    for fault, begin, end in faults:
        around = [begin, *(at for at in ends if begin <= at <= end + 3)]
        silence = max((after - before for before, after in zip(around, around[1:])), default=0.0)
        longest[fault] = max(longest.get(fault, 0.0), silence)
    print("longest time without a write: " + ", ".join(f"{fault} {seconds:.1f} s" for fault, seconds in sorted(longest.items())))


def end_watches(history, connections, watchers, deadline):
    """Writes a marker that every watcher has to see."""
    op = Op(9999, 0, "create", "marker", 0, value="marker")
    while True:
        op.begin = now()
        try:
            status, document = connections.request(0, "POST", MAPS, {"metadata": {"name": "marker"}, "data": {"value": "marker"}})
        except NoAnswer as error:
            raise RuntimeError("the marker is not written") from error
        if status == 201:
            break
        if now() > deadline:
            raise RuntimeError(f"the marker is not written: {status} {document}")
        time.sleep(0.1)
    op.end, op.result, op.rv = now(), OK, int(document["metadata"]["resourceVersion"])
    history.add(op)
    Watcher.last = op.rv
    for watcher in watchers:
        watcher.join(max(0.0, deadline - now()))
        if watcher.is_alive():
            raise RuntimeError(f"{watcher.name} has not seen the end: it has revision {watcher._watch.upto} of {op.rv}")


def record(args, directory):
    machines, history = Machines(directory, args.program, [f"--etcd-compaction-interval={args.compaction}"]), History()
    begin = now()
    machines.start()
    connections = Connections(machines.pki)
    await_answer(connections, "a server is not ready", "GET", "/readyz", wanted=(200,))
    await_answer(connections, "the namespace is not made", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    print(f"three machines serve after {now() - begin:.1f} s; seed {args.seed}", flush=True)
    if args.objects:
        fill(machines.pki, args.objects)
        print(f"{args.objects} objects after {now() - begin:.1f} s", flush=True)
    over, common = threading.Event(), (machines.pki, history)
    watchers = [Watcher(1000 + i, *common, threading.Event(), args.seed) for i in range(args.watchers)]
    clients = [*(Writer(i, *common, over, args.seed, keys=args.keys, pause=args.pause) for i in range(args.writers)),
               *(Reader(500 + i, *common, over, args.seed) for i in range(args.readers))]
    for watcher in watchers:
        watcher.start()
    # Nothing is written until a watcher sees it.
    while not (begins := [watcher.start_revision() for watcher in watchers if watcher.start_revision() > 0]):
        time.sleep(0.01)
    history.begin = min(begins)
    for client in clients:
        client.start()
    seconds = args.minutes * 60 if args.minutes else args.seconds
    memory = Memory(machines)
    memory.start()
    faults = fail_machines(machines, [fault for fault in args.faults.split(",") if fault], seconds, args.once, random.Random(args.seed))
    memory.end()
    await_answer(connections, "a server is not ready after its last failure", "GET", "/readyz", wanted=(200,))
    over.set()
    for client in clients:
        client.join()
    end_watches(history, connections, watchers, now() + 60)
    failed = [("client failed", f"{client.name}: {client.error!r}") for client in [*clients, *watchers] if client.error]
    if not machines.end():
        raise RuntimeError("a server has not ended in order")
    if faults:
        tell_silences(history, faults)
    return history, failed, memory.growth() if args.flat else []


def main():
    args = arguments()
    in_own_namespaces()
    args.seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="keelson-consistency-"))
    try:
        history, failed, grown = record(args, directory)
    except Exception:
        print(f"the logs are in {directory}", flush=True)
        raise
    begin = now()
    problems, holes = [*failed, *check(history)], Log(history).holes
    if holes:
        print("no watcher has seen the revisions " + ", ".join(f"{after + 1} to {until}" for after, until in holes))
    results = [op.result for op in history.ops if op.kind != "get"]
    print(f"{len(history.ops)} operations ({results.count(OK)} writes, {results.count(UNKNOWN)} without an answer), {len(history.lists)} lists, "
          f"{sum(len(watch.events) for watch in history.watches)} events of {len(history.watches)} watches; judged in {now() - begin:.1f} s")
    if args.history or problems:
        history.write(args.history or directory / "history.json")
    for category, text in problems[:20]:
        print(f"[{category}] {text}")
    if problems:
        print(f"{len(problems)} problems; the history and the logs are in {directory}; seed {args.seed}")
        return 1
    for what, middle, late in grown:
        print(f"[memory grows] {what}: from {middle} to {late} KiB")
    if grown:
        return 1
    shutil.rmtree(directory)
    # A run that has done nothing shows nothing.
    return 0 if results.count(OK) > 2 * args.writers and history.lists else "too few operations were answered"


if __name__ == "__main__":
    sys.exit(main())
