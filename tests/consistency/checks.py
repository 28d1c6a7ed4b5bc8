"""Judges a history: each function returns what is wrong, as (category, sentence).

The log is what all watchers together have seen: every version of every key, in the order of revisions. Watchers have to agree on
it, and everything else has to fit it. Where all watchers had to begin anew at once, because what they had not seen was compacted, the
log has a hole: nothing is said of a key until it is seen again.
"""
import bisect
import collections

from history import FAIL, OK
from register import linearizable


class Log:
    def __init__(self, history):
        self.by_rv, self.problems = {}, []
        for watch in history.watches:
            for event in watch.events:
                known = self.by_rv.setdefault(event.rv, event)
                if (known.key, known.value, known.kind) != (event.key, event.value, event.kind):
                    self.problems.append(("watches disagree", f"revision {event.rv}: {known} and {event}"))
        self.upto = max((watch.upto for watch in history.watches), default=0)
        self.begin = history.begin
        self.revisions = sorted(self.by_rv)
        self.by_key = collections.defaultdict(list)  # events in order
        for rv in self.revisions:
            self.by_key[self.by_rv[rv].key].append(self.by_rv[rv])
        self.holes = []  # (after, to): no watcher has covered the revisions above `after` until `to`
        seen = self.begin
        for start, upto in sorted((watch.start, watch.upto) for watch in history.watches):
            if start > seen:
                self.holes.append((seen, start))
            seen = max(seen, upto)

    def has_hole(self, after, until):
        """Whether a revision above `after`, until `until`, may have happened unseen."""
        at = bisect.bisect_right(self.holes, (after, after))
        return any(begin < until and end > after for begin, end in self.holes[max(0, at - 1):at + 1])

    def before(self, event):
        """(what the event has replaced, None: nothing; whether that is known)."""
        events = self.by_key[event.key]
        at = bisect.bisect_left([one.rv for one in events], event.rv)
        last = events[at - 1] if at > 0 else None
        known = not self.has_hole(last.rv if last else self.begin, event.rv)
        return last if last and last.kind != "DELETED" else None, known

    def last_seen(self, key, rv):
        """The revision of the key's last event until `rv`."""
        events = self.by_key.get(key, [])
        at = bisect.bisect_right([one.rv for one in events], rv)
        return events[at - 1].rv if at > 0 else self.begin

    def states(self, revisions):
        """Yields (rv, items) of an ascending sequence of revisions."""
        state, at = {}, 0
        for rv in revisions:
            while at < len(self.revisions) and self.revisions[at] <= rv:
                event = self.by_rv[self.revisions[at]]
                if event.kind == "DELETED":
                    state.pop(event.key, None)
                else:
                    state[event.key] = (event.rv, event.value)
                at += 1
            yield rv, state


def check_watches(history, log):
    """A watch never misses, repeats or reorders, and each event is a change of the one before."""
    problems = list(log.problems)
    for watch in history.watches:
        last = watch.start
        for event in watch.events:
            if event.rv == last:
                problems.append(("repeated event", f"watcher {watch.client}: {event} comes again"))
            elif event.rv < last:
                problems.append(("reordered events", f"watcher {watch.client}: {event} comes after revision {last}"))
            last = max(last, event.rv)
        seen = {event.rv for event in watch.events}
        begin, end = bisect.bisect_right(log.revisions, watch.start), bisect.bisect_right(log.revisions, watch.upto)
        for rv in log.revisions[begin:end]:
            if rv not in seen:
                problems.append(("missed event", f"watcher {watch.client} from {watch.start} to {watch.upto}: no {log.by_rv[rv]}"))
    for events in log.by_key.values():
        for event in events:
            before, known = log.before(event)
            if known and (event.kind == "ADDED") == (before is not None):
                problems.append(("wrong kind of event", f"{event}, of a key that {'exists' if before else 'does not exist'}"))
    return problems


def check_writes(history, log):
    """What was acknowledged has happened, what was refused has not, and every write has replaced the version that it named."""
    problems = []
    # Only one write has a value, but several clients may have tried to delete it.
    writes = collections.defaultdict(list)
    for op in history.ops:
        if op.kind != "get":
            writes[op.kind == "delete", op.expected if op.kind == "delete" else op.value].append(op)
    for op in history.ops:
        if op.kind == "get" or op.result != OK or op.rv > log.upto or log.has_hole(op.rv - 1, op.rv):
            continue
        event = log.by_rv.get(op.rv)
        # A deletion is answered with the version that it has removed.
        if op.kind != "delete" and (event is None or event.key != op.key or event.value != op.value):
            problems.append(("lost write", f"{op} was acknowledged; revision {op.rv} is {event}"))
    removed = {event.value for events in log.by_key.values() for event in events if event.kind == "DELETED"}
    for op in history.ops:
        if op.kind == "delete" and op.result == OK and op.expected not in removed and not log.has_hole(op.expected_rv, log.upto):
            problems.append(("lost write", f"{op} was acknowledged, and no watcher has seen it"))
    for rv in log.revisions:
        event = log.by_rv[rv]
        tried = [op for op in writes[event.kind == "DELETED", event.value] if op.key == event.key]
        if not tried:
            problems.append(("phantom write", f"{event}: no client has written that"))
            continue
        op = next((op for op in tried if op.result != FAIL), None)
        if op is None:
            problems.append(("phantom write", f"{event}: {tried[0]} was refused"))
            continue
        before, known = log.before(event)
        replaced = before.value if before else None
        if not known:
            continue
        if op.kind == "create" and replaced is not None or op.kind != "create" and replaced != op.expected:
            problems.append(("lost update", f"{op} has replaced {before}"))
    return problems


def check_lists(history, log):
    """Each list is the state at its revision."""
    problems = []
    lists = sorted((one for one in history.lists if one.rv <= log.upto), key=lambda one: one.rv)
    for one, (rv, state) in zip(lists, log.states([one.rv for one in lists])):
        keys = sorted(key for key in {*one.items, *state}
                      if one.items.get(key) != state.get(key) and not log.has_hole(log.last_seen(key, rv), rv))
        if keys:
            problems.append(("list is no snapshot", f"client {one.client}, server {one.server}, revision {rv}: " + "; ".join(
                f"{key} is {one.items.get(key)}, and was {state.get(key)}" for key in keys[:5])))
    return problems


def check_revisions(history):
    """No revision goes back: what begins after an answer is at least as new."""
    problems, newest = [], 0
    answered = [(op.end, op.rv) for op in history.ops if op.result == OK and op.kind != "delete"]
    answered = sorted(answered + [(one.end, one.rv) for one in history.lists])
    at = 0
    asked = [(one.begin, one.rv, one) for one in history.lists]
    asked += [(op.begin, op.rv, op) for op in history.ops if op.result == OK and op.kind in ("create", "put")]
    for begin, rv, record in sorted(asked, key=lambda one: one[0]):
        while at < len(answered) and answered[at][0] < begin:
            newest = max(newest, answered[at][1])
            at += 1
        if rv < newest:
            text = f"list of client {record.client} at server {record.server}" if hasattr(record, "items") else str(record)
            problems.append(("revision went back", f"{text}: {rv}, after an answer with {newest}"))
    return problems


def check_registers(history):
    """Writes and consistent reads of each key are linearizable."""
    by_key = collections.defaultdict(list)
    for op in history.ops:
        by_key[op.key].append(op)
    problems = []
    for key, ops in sorted(by_key.items()):
        stuck = linearizable(ops)
        if stuck is not None:
            problems.append(("not linearizable", f"{key}: no order of its operations goes on to one of {stuck}"))
    return problems


def check(history):
    log = Log(history)
    return [*check_watches(history, log), *check_writes(history, log), *check_lists(history, log),
            *check_revisions(history), *check_registers(history)]
