"""Kills the kubelet repeatedly at random moments while pods start, run and end.

The moments follow from a seed, which is printed; KEELSON_STORM_SEED sets it.
"""
import collections
import os
import pathlib
import random
import time
import unittest

import storm_pods
from node import Cluster, Node, kill

SEED = int(os.environ.get("KEELSON_STORM_SEED") or random.SystemRandom().randrange(1 << 32))
OF_EACH_KIND = 5
PAUSES = (0.02, 0.15, 0.4, 0.8, 1.2)  # upper bounds from start to kill: some kubelets die before they have done anything


class StormTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.node = Node(cls.cluster)
        cls.starts = cls.node.dir / "starts"
        cls.starts.mkdir()
        cls.kubelet = cls.cluster.pid("kubelet")

    def kill_kubelet(self, dice):
        """Kills the kubelet at a random moment, and starts the next one."""
        time.sleep(dice.uniform(0, dice.choice(PAUSES)))
        kill(self.kubelet)
        self.kubelet = self.node.start("kubelet")
        self.kills += 1

    def under_kills(self, dice, steps, seconds):
        """Runs one step before each kill; continues killing for `seconds` in total."""
        end, steps = time.monotonic() + seconds, iter(steps)
        for step in steps:
            step()
            self.kill_kubelet(dice)
        while time.monotonic() < end:
            self.kill_kubelet(dice)
        self.node.await_starters()

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.cluster.get("pods")["items"]}

    def undone(self):
        return [name for name, pod in self.pods().items() if not storm_pods.is_done(pod)]

    @staticmethod
    def statuses(pod):
        return [s for kind in ("initContainerStatuses", "containerStatuses") for s in pod["status"].get(kind, [])]

    def starts_too_many(self, pods):
        """Starts of each container beyond those in its status."""
        more = collections.Counter()
        for name, pod in pods.items():
            lines = collections.Counter((self.starts / name).read_text().split())
            for status in self.statuses(pod):
                self.assertTrue(any(state.get("startedAt") for state in status["state"].values()), (name, status))
                more[name, status["name"]] = lines.pop(status["name"]) - status["restartCount"] - 1
            self.assertEqual(lines, {}, f"{name} tells nothing of containers that ran")
        return more

    def none_of(self, wrong, what):
        """Fails with all that can be told of these pods."""
        if wrong:
            starts = {name: (self.starts / name).read_text().split() for name in wrong}
            self.fail(f"{what}\nstarts: {starts}\n{self.node.tell_of(wrong)}")

    def test_storm(self):
        print(f"KEELSON_STORM_SEED={SEED}", flush=True)
        dice, self.kills = random.Random(SEED), 0
        self.cluster.apply(storm_pods.manifest(storm_pods.CONFIG))
        before = self.node.everything()
        before["link"].add("keelson0")  # the bridge comes with the first pod, and stays
        names = [(f"{kind}-{i}", kind) for i in range(OF_EACH_KIND) for kind in storm_pods.KINDS]
        dice.shuffle(names)

        def create(some):
            return lambda: self.cluster.apply(storm_pods.manifest(*(storm_pods.make(kind, name, self.starts) for name, kind in some)))

        self.under_kills(dice, (create(names[i:i + 2]) for i in range(0, len(names), 2)), 20)
        came = self.kills
        try:
            self.cluster.eventually("all pods to come to their end", lambda: not self.undone(), seconds=60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.node.tell_of(self.undone())}") from None
        pods = self.pods()
        self.assertEqual(set(pods), {name for name, _ in names})
        more = self.starts_too_many(pods)
        # The runtime, whose caller dies while it starts a process, may end the process after its first command.
        self.none_of({name for (name, _), count in more.items() if not 0 <= count <= came}, more)
        self.assertLessEqual(sum(more.values()), came, more)
        restarts = {name: s["restartCount"] for name, pod in pods.items() for s in self.statuses(pod)
                    if s["restartCount"] > (1 if name.startswith("again") else 0)}
        self.none_of(restarts, restarts)

        def delete(some):
            return lambda: self.cluster.kubectl("delete", "pods", "--wait=false", *(name for name, _ in some))

        dice.shuffle(names)
        self.under_kills(dice, (delete(names[i:i + 4]) for i in range(0, len(names), 4)), 12)
        self.cluster.eventually("all pods to be gone", lambda: not self.pods(), seconds=60)
        self.assertEqual(self.node.await_no_more_than(before), [], "leaked")
        print(f"{came} kills while pods came, {self.kills - came} while they went; {sum(more.values())} starts too many", flush=True)


if __name__ == "__main__":
    unittest.main()
