"""Whether the operations on one key are those of one register: a search for an order that respects real time (Wing and
Gong, "Testing and verifying concurrent objects", 1993; with Lowe's memory of states that led nowhere)."""
import math

from history import FAIL, OK, UNKNOWN


def _enabled(op, state):
    """Whether the register, which has `state`, can answer so."""
    if op.kind == "get":
        return state == op.value
    wanted = None if op.kind == "create" else op.expected
    return state != wanted if op.result == FAIL else state == wanted


def _changes(op):
    return op.kind != "get" and op.result != FAIL


def linearizable(ops):
    """`ops`: all of one key. Returns None, or the operations at which every order ends."""
    ops = sorted((op for op in ops if op.result != UNKNOWN or _changes(op)), key=lambda op: op.begin)
    ends = [op.end if op.result in (OK, FAIL) else math.inf for op in ops]
    # A partial order: all operations before `low`, and those in `ahead`, have had their turn; the key has the version `state`.
    stack, seen, deepest = [(0, frozenset(), None)], set(), (-1, [])
    while stack:
        low, ahead, state = stack.pop()
        taken = set(ahead)
        low, candidates = _settle(ops, ends, low, taken, state)
        if all(math.isinf(ends[i]) for i in range(low, len(ops)) if i not in taken):
            return None
        here = (low, frozenset(taken), state)
        if here in seen:
            continue
        seen.add(here)
        if low + len(taken) > deepest[0]:
            deepest = (low + len(taken), [ops[i] for i in candidates if not math.isinf(ends[i])])
        for i in reversed(candidates):
            if _changes(ops[i]) and _enabled(ops[i], state):
                stack.append((low, frozenset(taken | {i}), None if ops[i].kind == "delete" else ops[i].value))
    return deepest[1]


def _settle(ops, ends, low, taken, state):
    """Operations that change nothing take their turn as soon as they can: that excludes no order. Returns the new `low` and the
    operations that may be next."""
    while True:
        while low in taken:
            taken.discard(low)
            low += 1
        candidates, limit, moved = [], math.inf, False
        for i in range(low, len(ops)):
            if ops[i].begin > limit:
                break
            if i in taken:
                continue
            if not _changes(ops[i]) and _enabled(ops[i], state):
                taken.add(i)
                moved = True
                continue
            limit = min(limit, ends[i])
            candidates.append(i)
        if not moved:
            return low, candidates
