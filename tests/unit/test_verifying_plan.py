"""What a verification asks, in what order and company, and where outputs part: no store, no executor."""

from gsum.engine.verifying.plan import Divergence, Stored, choose, divergence, plan_rounds
from gsum.store.digests import Digest, Key
from gsum.store.records import Generation, StopReason

KEYS = [Key(f"{number:064x}") for number in range(40)]
STORED = [Stored(key, Digest("d"), "t", ("//a:b/root",)) for key in KEYS]


def written(*tokens, text="x", stop=StopReason.EOS):
    return Generation(tuple(tokens), text, stop)


def test_every_round_asks_every_request_once():
    for planned in plan_rounds(KEYS, rounds=4, seed=0, capacity=16):
        asked = [key for batch in planned.batches for key in batch]
        assert sorted(asked) == KEYS


def test_the_first_round_asks_each_alone_and_later_ones_in_batches_of_several_widths():
    first, second, third = plan_rounds(KEYS, rounds=3, seed=0, capacity=16)
    assert first.widths == (1,)
    assert {len(batch) for batch in second.batches[:5]} == {2, 3, 5, 8, 13}
    assert [len(batch) for batch in third.batches[:5]] == [3, 5, 8, 13, 2]


def test_no_batch_is_wider_than_the_executor_wants():
    assert all(max(planned.widths) <= 3 for planned in plan_rounds(KEYS, rounds=4, seed=0, capacity=3))
    assert all(planned.widths == (1,) for planned in plan_rounds(KEYS, rounds=4, seed=0, capacity=1))


def test_rounds_differ_in_order_and_a_seed_gives_the_same_again():
    def orders(seed):
        return [planned.batches for planned in plan_rounds(KEYS, rounds=4, seed=seed, capacity=16)]

    assert orders(7) == orders(7)
    assert orders(7) != orders(8)
    flat = [tuple(key for batch in batches for key in batch) for batches in orders(7)]
    assert len(set(flat)) == 4


def test_a_sample_is_a_choice_that_its_seed_decides_and_not_the_order_of_what_is_given():
    some = choose(STORED, 5, seed=3)
    assert some == choose(STORED[::-1], 5, seed=3)
    assert len({one.request for one in some}) == 5
    assert some != choose(STORED, 5, seed=4)
    assert some == choose(STORED, 9, seed=3)[:5]
    assert len(choose(STORED, None, seed=3)) == len(STORED)


def test_outputs_part_at_the_first_token_that_differs():
    assert divergence(written(1, 2, 3), written(1, 2, 3)) is None
    assert divergence(written(1, 2, 3), written(1, 9, 3, 4)) == Divergence(("token_ids",), 1, 3, 4)
    assert divergence(written(1, 2), written(1, 2, 3)) == Divergence(("token_ids",), 2, 2, 3)
    assert divergence(written(1), written(1, text="y")) == Divergence(("text",), None, 1, 1)
    ended = divergence(written(1, 2, text="y"), written(1, 3, text="z", stop=StopReason.LENGTH))
    assert ended == Divergence(("token_ids", "text", "stop"), 1, 2, 2)
