"""The checker accepts histories of one correct store, and refuses each kind of fault that is planted in one."""
import copy
import random
import tempfile
import unittest

from checks import check
from history import FAIL, OK, UNKNOWN, Event, History, List, Op, Watch

KEYS = ["a", "b", "c"]


def correct(seed, steps=300):
    """A history of one store. Answers come after the effect and some are lost, so operations overlap."""
    rng = random.Random(seed)
    history, state, rv, time, events, snapshots = History(10), {}, 10, 0.0, [], [(10, {})]
    for step in range(steps):
        time += 1.0
        key, kind = rng.choice(KEYS), rng.choice(["get", "write", "write", "delete", "list"])
        begin, end = time - rng.random() * 3, time + 0.01 + rng.random() * 3
        client = step % 5
        if kind == "list":
            history.add(List(client, step % 3, begin, end, rv, dict(state)))
            continue
        if kind == "get":
            have = state.get(key, (0, None))
            history.add(Op(client, step % 3, "get", key, begin, end, OK, value=have[1], rv=have[0]))
            continue
        have = state.get(key)
        op = Op(client, step % 3, "create" if have is None else "delete" if kind == "delete" else "put", key, begin)
        if have:
            op.expected_rv, op.expected = have
        op.value = None if op.kind == "delete" else f"v{step}"
        if rng.random() < 0.1:  # of a version that it has not any more, or a key that exists
            op.kind, op.expected, op.expected_rv = "put", "old", 1
            op.value, op.result, op.end = f"v{step}", FAIL, end
            history.add(op)
            continue
        rv += rng.randint(1, 3)
        if op.kind == "delete":
            events.append(Event("DELETED", key, rv, have[1]))
            del state[key]
        else:
            events.append(Event("MODIFIED" if have else "ADDED", key, rv, op.value))
            state[key] = (rv, op.value)
        snapshots.append((rv, dict(state)))
        if rng.random() < 0.1:
            op.result = UNKNOWN
        else:
            op.result, op.end, op.rv = OK, end, have[0] if op.kind == "delete" else rv
        history.add(op)
    for client in range(3):
        start = snapshots[client * 5][0]
        history.add(Watch(100 + client, start, rv, [event for event in copy.deepcopy(events) if event.rv > start]))
    return history


def of(history, kind, result=OK):
    return [op for op in history.ops if op.kind == kind and op.result == result]


class ChecksTest(unittest.TestCase):
    def refused(self, plant, *categories):
        """Plants the fault in many histories: each is refused, for one of these reasons."""
        for seed in range(10):
            history = correct(seed)
            plant(history, random.Random(seed))
            found = {category for category, _ in check(history)}
            self.assertTrue(found & set(categories), f"seed {seed}: {found}")

    def test_correct_histories_are_accepted(self):
        for seed in range(30):
            self.assertEqual(check(correct(seed)), [], f"seed {seed}")

    def test_what_no_watcher_has_seen(self):
        """All begin anew at once. What they have not seen is no problem, and what they have seen is judged."""
        def cut(history, rng):
            events = history.watches[0].events
            first = rng.randrange(len(events) // 4, len(events) // 2)
            gone, back = events[first].rv, events[first + rng.randrange(3, 20)].rv
            for watch in list(history.watches):
                history.add(Watch(watch.client, back, watch.upto, [event for event in watch.events if event.rv > back]))
                watch.events, watch.upto = [event for event in watch.events if event.rv <= gone], gone
        for seed in range(10):
            history = correct(seed)
            cut(history, random.Random(seed))
            self.assertEqual(check(history), [], f"seed {seed}")

        def lose(history, rng):
            put = rng.choice(of(history, "put")[-10:])
            cut(history, rng)
            for watch in history.watches:
                watch.events = [event for event in watch.events if event.rv != put.rv]
        self.refused(lose, "lost write")

    def test_files(self):
        history = correct(1)
        with tempfile.NamedTemporaryFile() as file:
            history.write(file.name)
            again = History.read(file.name)
        self.assertEqual((again.begin, again.ops, again.lists, again.watches),
                         (history.begin, history.ops, history.lists, history.watches))

    def test_stale_read(self):
        def plant(history, rng):
            # A read that begins after an overwrite has ended sees the version before.
            put = rng.choice(of(history, "put"))
            history.add(Op(9, 0, "get", put.key, put.end + 0.001, put.end + 0.002, OK, value=put.expected, rv=put.expected_rv))
        self.refused(plant, "not linearizable")

    def test_false_conflict(self):
        def plant(history, rng):
            # Nothing else happens to the key, and still a write of its version is refused.
            last = max(op.end or op.begin for op in history.ops) + 10
            history.ops = [op for op in history.ops if op.key != "x"]
            history.add(Op(9, 0, "create", "x", last, last + 1, FAIL, value="never"))
        self.refused(plant, "not linearizable")

    def test_lost_update(self):
        def plant(history, rng):
            # Two writes of one version are both acknowledged.
            put = rng.choice(of(history, "put"))
            twin = copy.copy(put)
            twin.value, twin.rv = put.value + "-twin", 1000000
            history.add(twin)
            for watch in history.watches:
                watch.events.append(Event("MODIFIED", put.key, twin.rv, twin.value))
                watch.upto = twin.rv
        self.refused(plant, "lost update")

    def test_lost_write(self):
        def plant(history, rng):
            put = rng.choice(of(history, "put"))
            for watch in history.watches:
                watch.events = [event for event in watch.events if event.rv != put.rv]
        self.refused(plant, "lost write")

    def test_phantom_write(self):
        def plant(history, rng):
            rng.choice(of(history, "put")).result = FAIL
        self.refused(plant, "phantom write")

    def test_unasked_deletion(self):
        def plant(history, rng):
            rng.choice(of(history, "delete")).result = FAIL
        self.refused(plant, "phantom write")

    def test_deletion_of_what_is_gone(self):
        """Two clients delete one version: one of them is refused, and that is right."""
        for seed in range(10):
            history = correct(seed)
            first = random.Random(seed).choice(of(history, "delete"))
            history.add(Op(9, 0, "delete", first.key, first.begin, first.end + 1, FAIL, expected=first.expected,
                           expected_rv=first.expected_rv))
            self.assertEqual(check(history), [])

    def test_missed_event(self):
        def plant(history, rng):
            events = history.watches[0].events
            events.pop(rng.randrange(len(events)))
        self.refused(plant, "missed event")

    def test_repeated_event(self):
        def plant(history, rng):
            events = history.watches[1].events
            at = rng.randrange(len(events))
            events.insert(at, events[at])
        self.refused(plant, "repeated event")

    def test_reordered_events(self):
        def plant(history, rng):
            events = history.watches[2].events
            at = rng.randrange(len(events) - 1)
            events[at], events[at + 1] = events[at + 1], events[at]
        self.refused(plant, "reordered events")

    def test_wrong_kind_of_event(self):
        def plant(history, rng):
            rv = rng.choice([event.rv for event in history.watches[0].events if event.kind == "MODIFIED"])
            for watch in history.watches:
                for event in watch.events:
                    event.kind = "ADDED" if event.rv == rv else event.kind
        self.refused(plant, "wrong kind of event")

    def test_watches_disagree(self):
        def plant(history, rng):
            rng.choice(history.watches[1].events).value = "other"
        self.refused(plant, "watches disagree")

    def test_torn_list(self):
        def plant(history, rng):
            one = rng.choice([one for one in history.lists if one.items])
            one.items.pop(rng.choice(sorted(one.items)))
        self.refused(plant, "list is no snapshot")

    def test_revision_goes_back(self):
        def plant(history, rng):
            # A list of an old state, after a newer one was shown: a snapshot, and stale.
            early = next(one for one in history.lists if one.rv > 10)
            late = max(op.end or op.begin for op in history.ops) + 1
            history.add(List(9, 0, late, late + 1, early.rv, dict(early.items)))
        self.refused(plant, "revision went back")


if __name__ == "__main__":
    unittest.main()
