"""What labels were built as, invocations and their events: the journal's obligations, for every backend."""

from __future__ import annotations

import msgspec
from support.store_examples import example, invocation, target

from gsum.store.api import Built
from gsum.store.records import InvocationStatus


def test_latest_and_history_follow_the_order_of_puts(store_factory):
    store = store_factory.open()
    keys = [example(number).action.key for number in range(3)]
    for key in (keys[0], keys[1], keys[1], keys[2], keys[0]):
        store.put_target(target("//d:a", key))
    store.put_target(target("//d:a", keys[2], toolchain="other"))
    store.put_target(target("//d:a", keys[1], principal="somebody"))
    store.put_target(target("//d:b", keys[1]))
    for seen in (store, store_factory.open()):
        latest = seen.latest("//d:a", "reader-demo", "fake")
        assert latest is not None and latest.key == keys[0]
        assert seen.latest("//d:a", "nobody", "fake") is None
        history = seen.target_history("//d:a", "reader-demo")
        assert [(ref.toolchain, ref.key) for ref in history] == [
            ("other", keys[2]),
            ("fake", keys[0]),
            ("fake", keys[2]),
            ("fake", keys[1]),
        ]


def test_a_target_built_again_as_the_same_keeps_its_first_invocation(store):
    key = example(1).action.key
    store.put_target(target("//d:a", key, invocation="i-1"))
    store.put_target(target("//d:a", key, invocation="i-2"))
    assert [ref.invocation for ref in store.target_history("//d:a", "reader-demo")] == ["i-1"]


def test_a_label_built_as_an_entry_that_takes_a_lost_one_s_place_was_built_as_it_last(store):
    nothing = store.put_blob(b"")
    old, new = example(0), example(1)

    def built(whole, **changes):
        entry = msgspec.structs.replace(whole.entry(nothing, nothing, nothing), label="a", **changes)
        return Built(entry, whole.action, whole.perimeter, "reader", "tool")

    store.put_built([built(old), built(new)])  # both refer to requests that are not kept
    store.put_targets([target("a", old.action.key, toolchain="tool", principal="reader")])
    store.put_built([built(new, request=None, generation=None)])
    assert [ref.key for ref in store.target_history("a", "reader")] == [new.action.key, old.action.key]
    assert list(store.entries([old.action.key, new.action.key])) == [new.action.key]


def test_an_invocation_is_finished_once(store_factory):
    store = store_factory.open()
    started = [invocation(f"i-{number}") for number in range(5)]
    for record in started:
        store.begin(record)
    done = msgspec.structs.replace(
        started[2], status=InvocationStatus.OK, exit_code=0, seconds=1.5, lists={"generated": ("//d:a",)}
    )
    store.finish(done)
    store.finish(msgspec.structs.replace(done, status=InvocationStatus.FAILED))
    store.begin(started[2])
    expected = [started[4], started[3], done, started[1], started[0]]
    assert store.invocations(10) == store_factory.open().invocations(10) == expected
    assert store.invocations(2) == expected[:2]
    assert store.invocations(0) == []


def test_an_invocation_that_never_began_can_be_finished(store):
    done = msgspec.structs.replace(invocation("i"), status=InvocationStatus.FAILED)
    store.finish(done)
    assert store.invocations(1) == [done]


def test_events_stay_in_order_and_apart(store_factory):
    store = store_factory.open()
    store.append_events("a", [b"1", b"", b"\x00\xff"])
    store.append_events("b", [b"other"])
    store.append_events("a", [])
    store.append_events("a", [b"1"])
    assert store_factory.open().events("a") == [b"1", b"", b"\x00\xff", b"1"]
    assert store.events("unknown") == []


def test_the_last_append_is_read_alone(store_factory):
    store = store_factory.open()
    store.append_events("a", [b"1", b"2"])
    store.append_events("a", [b"3", b"4"])
    store.append_events("b", [b"5"])
    store.append_events("a", [])
    assert store_factory.open().last_events("a") == [b"3", b"4"]
    assert store.last_events("unknown") == []


def test_events_that_hold_some_bytes_are_read_in_order_and_no_others(store_factory):
    store = store_factory.open()
    store.append_events("a", [b"x//d:1/root", b"y//d:2/root", b"y//d:1/leaf"])
    store.append_events("a", [b"x", b"//d:", b"1/"])
    store.append_events("a", [b"z//d:1/root"])
    store.append_events("b", [b"of another build //d:1/"])
    assert store_factory.open().events_holding("a", b"//d:1/") == [b"x//d:1/root", b"y//d:1/leaf", b"z//d:1/root"]
    assert store.events_holding("a", b"//d:3/") == []
    assert store.events_holding("unknown", b"") == []
