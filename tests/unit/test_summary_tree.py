"""The rule `summary_tree`: the tree's shape, requests, and the status of every kind of generation."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.products import PROMPT, generated, hidden, inputs_of, readable, run_tree, snapshot_of

from gsum.rules.claims import Claim, Result, Status
from gsum.rules.config import ExtractPackage, Strength, SummaryTreePackage
from gsum.rules.evidence import catalogue
from gsum.rules.expand.shape import EmptyDossierError, inner_nodes, leaf_names
from gsum.rules.grammar import answer_text
from gsum.rules.graph import Action, ActionKind
from gsum.rules.kinds import RULES
from gsum.rules.parsing import JSON_FENCE
from gsum.rules.requests import Request
from gsum.rules.rule import Finished
from gsum.rules.snapshot import Scope
from gsum.store.canonical import canonical_json
from gsum.store.records import StopReason

TREE = RULES["summary_tree"]
TEXT = "Reference 7\nProduct P-01-00 delivery: 25 February.\nProduct P-01-00 site: Hall 3.\n"
DELIVERY = {"subject": "P-01-00", "field": "delivery", "value": "25 February"}
SITE = {"subject": "P-01-00", "field": "site", "value": "Hall 3"}
SCOPE = readable("D-0", TEXT)
RECORDS = catalogue(SCOPE, TEXT)


def package(fan_in: int = 4) -> SummaryTreePackage:
    return SummaryTreePackage("corpus", "map-v1", "reduce-v1", "product", fan_in, 2048, 3072)


def expand(scopes: list[Scope], fan_in: int = 4, toolchain: str | None = "smollm2") -> tuple[Action, ...]:
    return TREE.expand("dossier", package(fan_in), snapshot_of(scopes), toolchain)


def many(count: int) -> list[Scope]:
    return [readable(f"D-{index}", TEXT) for index in range(count)]


LEAF, ROOT = expand([SCOPE])


def child(status: Status, *claims: Claim) -> Result:
    cited = {identifier for claim in claims for identifier in claim.evidence}
    return Result(status, claims, tuple(record for record in RECORDS if record.id in cited))


VALID_CHILD = child(Status.VALID, Claim(DELIVERY, (RECORDS[1].id,)), Claim(SITE, (RECORDS[2].id, RECORDS[0].id)))


def request(action: Action, **given_inputs: object) -> Request:
    rendered = TREE.render(action, inputs_of(**given_inputs))  # type: ignore[arg-type]
    assert isinstance(rendered, Request)
    return rendered


# --- the tree


def test_twelve_documents_make_twelve_leaves_three_reductions_and_a_root() -> None:
    actions = {action.label: action for action in expand(many(12))}
    assert len(actions) == 16
    assert list(actions) == [
        *(f"//dossier:S-1/leaf-{slot:02d}" for slot in range(12)),
        *(f"//dossier:S-1/reduce-{slot:02d}" for slot in range(3)),
        "//dossier:S-1/root",
    ]
    assert actions["//dossier:S-1/reduce-01"].children == tuple(
        f"//dossier:S-1/leaf-{slot:02d}" for slot in range(4, 8)
    )
    assert actions["//dossier:S-1/root"].children == tuple(f"//dossier:S-1/reduce-{slot:02d}" for slot in range(3))


def test_up_to_fan_in_documents_stand_directly_below_the_root() -> None:
    for count in (1, 3, 4):
        assert [action.label.rpartition("/")[2] for action in expand(many(count))] == [*leaf_names(count), "root"]


def test_deeper_trees_number_each_level() -> None:
    names = [(node.name, len(node.children)) for node in inner_nodes(leaf_names(9), 2)]
    assert names == [
        ("reduce-00", 2),
        ("reduce-01", 2),
        ("reduce-02", 2),
        ("reduce-03", 2),
        ("reduce-04", 1),
        ("reduce2-00", 2),
        ("reduce2-01", 2),
        ("reduce2-02", 1),
        ("reduce3-00", 2),
        ("reduce3-01", 1),
        ("root", 2),
    ]


def test_names_widen_with_their_number() -> None:
    assert leaf_names(100)[-1] == "leaf-99"
    assert leaf_names(101)[:1] + leaf_names(101)[-1:] == ("leaf-000", "leaf-100")


@given(st.integers(1, 300), st.integers(2, 50))
def test_every_tree_is_a_partition_of_its_leaves_in_order(count: int, fan_in: int) -> None:
    leaves = leaf_names(count)
    nodes = {node.name: node for node in inner_nodes(leaves, fan_in)}
    assert list(nodes)[-1] == "root"
    assert all(1 <= len(node.children) <= fan_in for node in nodes.values())
    assert len({*leaves, *nodes}) == count + len(nodes)

    def below(name: str) -> list[str]:
        return [leaf for child in nodes[name].children for leaf in below(child)] if name in nodes else [name]

    assert below("root") == list(leaves)
    seen = set(leaves)
    for node in nodes.values():
        assert seen.issuperset(node.children)
        seen.add(node.name)


def test_actions_say_what_they_read_and_no_more() -> None:
    gone = hidden("D-1", active=False)
    leaf, withdrawn, root = expand([SCOPE, gone])
    assert leaf == Action(
        label="//dossier:S-1/leaf-00",
        kind=ActionKind.MAP,
        rule="summary_tree",
        package="dossier",
        dossier="S-1",
        source="corpus",
        principal="reader-demo",
        children=(),
        scope=SCOPE,
        path="corpus/S-1/D-0.txt",
        prompt="map-v1",
        schema="product",
        toolchain="smollm2",
        input_tokens=2048,
        fan_in=None,
    )
    assert (withdrawn.label, withdrawn.scope, withdrawn.path) == ("//dossier:S-1/leaf-01", gone, None)
    assert (root.kind, root.prompt, root.input_tokens, root.fan_in) == (ActionKind.REDUCE, "reduce-v1", 3072, 4)
    assert (root.scope, root.path) == (None, None)


def test_a_chosen_toolchain_comes_before_the_package_s_own() -> None:
    own = msgspec.structs.replace(package(), toolchain="qwen")
    for chosen, expected in (("smollm2", "smollm2"), (None, "qwen")):
        assert {action.toolchain for action in TREE.expand("d", own, snapshot_of([SCOPE]), chosen)} == {expected}


def test_a_dossier_without_documents_is_an_error() -> None:
    with pytest.raises(EmptyDossierError, match="dossier `S-1` has no documents"):
        expand([])


def test_another_rule_s_package_is_a_programming_error() -> None:
    with pytest.raises(TypeError):
        TREE.expand("dossier", ExtractPackage("corpus", "product"), snapshot_of([SCOPE]), None)


# --- requests


def test_a_leaf_asks_over_its_numbered_lines() -> None:
    made = request(LEAF, text=TEXT, strength=Strength.NONE)
    lines = "[1] Reference 7\n[2] Product P-01-00 delivery: 25 February.\n[3] Product P-01-00 site: Hall 3."
    assert made.messages[-1].content == f"{PROMPT.instruction}\n\n{lines}"
    assert (made.shared, len(made.messages), made.grammar) == (3, 4, None)
    assert (made.input_tokens, made.max_new_tokens) == (2048, 384)
    assert (made.toolchain, made.perimeter) == ("toolchain-key", "perimeter-key")


def test_a_reduction_numbers_the_claims_of_all_children_in_slot_order() -> None:
    children = [VALID_CHILD, child(Status.INELIGIBLE), child(Status.VALID, Claim(SITE, (RECORDS[2].id,)))]
    assert request(ROOT, children=children).messages[-1].content.splitlines()[2:] == [
        "[1] subject: P-01-00; field: delivery; value: 25 February",
        "[2] subject: P-01-00; field: site; value: Hall 3",
        "[3] subject: P-01-00; field: site; value: Hall 3",
    ]


def test_a_request_does_not_depend_on_ids_versions_or_statuses() -> None:
    other = readable("D-9", TEXT, "2")
    renamed = expand([other])[0]
    assert request(LEAF, text=TEXT) == request(renamed, text=TEXT)
    partial = msgspec.structs.replace(VALID_CHILD, status=Status.PARTIAL, evidence=catalogue(other, TEXT))
    assert request(ROOT, children=[VALID_CHILD]) == request(ROOT, children=[partial])


@pytest.mark.parametrize("strength", Strength)
def test_a_result_that_came_back_from_the_store_gives_the_same_request(strength: Strength) -> None:
    stored = msgspec.json.decode(canonical_json(VALID_CHILD), type=Result)
    assert list(stored.claims[0].values) != list(VALID_CHILD.claims[0].values)
    made, again = (request(ROOT, children=[child], strength=strength) for child in (VALID_CHILD, stored))
    assert made == again
    inputs = inputs_of(children=[stored], strength=strength)
    result = TREE.resolve(ROOT, inputs, generated(answer_text([([1], DELIVERY)])))
    assert list(result.claims[0].values) == ["subject", "field", "value"]


@pytest.mark.parametrize("strength", Strength)
def test_only_strength_none_goes_without_a_grammar(strength: Strength) -> None:
    for made in (request(LEAF, text=TEXT, strength=strength), request(ROOT, children=[VALID_CHILD], strength=strength)):
        assert (made.grammar is None) == (strength is Strength.NONE)


def test_a_document_that_may_not_be_read_asks_nothing() -> None:
    for scope in (hidden("D-0"), hidden("D-0", active=False)):
        leaf = expand([scope])[0]
        assert TREE.render(leaf, inputs_of()) == Finished(Result(Status.INELIGIBLE), True)


def test_a_reduction_over_nothing_eligible_asks_nothing() -> None:
    nothing = [child(Status.INELIGIBLE)] * 2
    assert TREE.render(ROOT, inputs_of(children=nothing)) == Finished(Result(Status.INELIGIBLE), True)
    for status in (Status.INVALID, Status.VALID):
        assert isinstance(TREE.render(ROOT, inputs_of(children=[*nothing, child(status)])), Request)


# --- results


def test_a_leaf_resolves_numbers_to_evidence() -> None:
    text = answer_text([([3, 1], SITE), ([2], DELIVERY), ([3], SITE)])
    assert TREE.resolve(LEAF, inputs_of(text=TEXT), generated(text)) == Result(
        status=Status.VALID,
        claims=(
            Claim(SITE, (RECORDS[2].id, RECORDS[0].id)),
            Claim(DELIVERY, (RECORDS[1].id,)),
            Claim(SITE, (RECORDS[2].id,)),
        ),
        evidence=(RECORDS[2], RECORDS[0], RECORDS[1]),
    )


def test_a_reduction_resolves_numbers_to_the_evidence_of_the_claims_cited() -> None:
    children = [VALID_CHILD, child(Status.VALID, Claim(SITE, (RECORDS[0].id,)))]
    text = answer_text([([3, 2], SITE)])
    assert TREE.resolve(ROOT, inputs_of(children=children), generated(text)) == Result(
        status=Status.VALID,
        claims=(Claim(SITE, (RECORDS[0].id, RECORDS[2].id)),),
        evidence=(RECORDS[0], RECORDS[2]),
    )


def test_an_answer_without_claims_is_valid() -> None:
    empty = generated(answer_text([]))
    assert TREE.resolve(LEAF, inputs_of(text=TEXT), empty) == Result(Status.VALID)
    assert TREE.resolve(ROOT, inputs_of(children=[VALID_CHILD]), empty) == Result(Status.VALID)


def test_a_refused_generation_is_invalid_with_a_diagnostic_and_no_claims() -> None:
    text = f"```json\n{answer_text([([4], SITE)])}\n```"
    assert TREE.resolve(LEAF, inputs_of(text=TEXT), generated(text)) == Result(
        Status.INVALID,
        diagnostic="claim 1, `evidence` cites a number that was not given, only 1 to 3 were",
        repairs=(JSON_FENCE,),
    )


def test_a_generation_that_ended_by_length_is_invalid() -> None:
    cut = generated(answer_text([([2], DELIVERY)]), StopReason.LENGTH)
    for action, inputs in ((LEAF, inputs_of(text=TEXT)), (ROOT, inputs_of(children=[VALID_CHILD]))):
        assert TREE.resolve(action, inputs, cut).status is Status.INVALID


def test_invalid_and_partial_children_make_a_valid_reduction_partial_and_ineligible_ones_do_not() -> None:
    children = [child(Status.INELIGIBLE), child(Status.INVALID), VALID_CHILD, child(Status.PARTIAL)]
    result = TREE.resolve(ROOT, inputs_of(children=children), generated(answer_text([([1], DELIVERY)])))
    assert result.status is Status.PARTIAL
    assert result.partial_because == ("child 2 is INVALID", "child 4 is PARTIAL")
    assert len(result.claims) == 1
    around = [child(Status.INELIGIBLE), VALID_CHILD]
    assert TREE.resolve(ROOT, inputs_of(children=around), generated(answer_text([]))).status is Status.VALID


def test_a_reduction_says_what_was_repaired() -> None:
    written = f"```json\n{answer_text([([1], DELIVERY)])}\n```"
    result = TREE.resolve(ROOT, inputs_of(children=[VALID_CHILD]), generated(written))
    assert (result.status, result.repairs) == (Status.VALID, (JSON_FENCE,))


def test_an_invalid_reduction_stays_invalid_over_invalid_children() -> None:
    result = TREE.resolve(ROOT, inputs_of(children=[child(Status.INVALID), VALID_CHILD]), generated("no"))
    assert (result.status, result.partial_because) == (Status.INVALID, ())


INVENTED = {"subject": "P-01-00", "field": "delivery", "value": "26 February"}
PART = {"subject": "P-01-00", "field": "site", "value": "25"}


@pytest.mark.parametrize(
    ("strength", "claim", "cited", "valid"),
    [
        (Strength.NONE, INVENTED, [2], True),
        (Strength.SCHEMA, INVENTED, [2], True),
        (Strength.LITERAL, INVENTED, [2], False),
        (Strength.LITERAL, DELIVERY, [1], False),
        (Strength.LITERAL, DELIVERY, [1, 2], True),
        (Strength.LITERAL, {**DELIVERY, "value": "Reference 7"}, [1, 2], False),
        (Strength.LITERAL, PART, [2], True),
        (Strength.PATTERN, PART, [2], False),
        (Strength.PATTERN, DELIVERY, [2], True),
        (Strength.PATTERN, DELIVERY, [3], False),
        (Strength.PATTERN, DELIVERY, [2, 3], True),
        (Strength.PATTERN, DELIVERY, [1, 3], False),
    ],
)
def test_what_a_strength_promises_is_checked_again_in_code(
    strength: Strength, claim: dict[str, str], cited: list[int], valid: bool
) -> None:
    result = TREE.resolve(LEAF, inputs_of(text=TEXT, strength=strength), generated(answer_text([(cited, claim)])))
    assert result.status is (Status.VALID if valid else Status.INVALID)
    assert (result.claims == ()) is not valid


@pytest.mark.parametrize(
    ("strength", "claim", "cited", "valid"),
    [
        (Strength.NONE, INVENTED, [1], True),
        (Strength.SCHEMA, INVENTED, [1], True),
        (Strength.LITERAL, INVENTED, [1], False),
        (Strength.PATTERN, {**DELIVERY, "value": "25"}, [1], False),
        (Strength.LITERAL, SITE, [1], False),
        (Strength.LITERAL, SITE, [1, 2], False),
        (Strength.LITERAL, SITE, [2], True),
    ],
)
def test_a_reduction_s_choice_is_checked_again_in_code(
    strength: Strength, claim: dict[str, str], cited: list[int], valid: bool
) -> None:
    inputs = inputs_of(children=[VALID_CHILD], strength=strength)
    result = TREE.resolve(ROOT, inputs, generated(answer_text([(cited, claim)])))
    assert result.status is (Status.VALID if valid else Status.INVALID)


def test_no_diagnostic_repeats_a_word_of_a_document() -> None:
    for strength, claim in ((Strength.LITERAL, INVENTED), (Strength.PATTERN, PART)):
        leaf = TREE.resolve(LEAF, inputs_of(text=TEXT, strength=strength), generated(answer_text([([2], claim)])))
        root = TREE.resolve(
            ROOT, inputs_of(children=[VALID_CHILD], strength=strength), generated(answer_text([([1], claim)]))
        )
        for result in (leaf, root):
            assert result.diagnostic is not None
            assert not any(word in result.diagnostic for word in ("P-01-00", "February", "Hall", "25", "Reference"))


def test_a_withdrawn_document_leaves_its_slot_and_no_trace_in_the_tree() -> None:
    texts = {f"D-{slot}": TEXT.replace("P-01", f"P-0{slot}") for slot in range(5)}
    scopes = [readable(name, text) for name, text in texts.items()]
    scopes[1] = hidden("D-1", active=False)
    asked: list[Request] = []

    def first_claim(made: Request) -> str:
        asked.append(made)
        line = made.messages[-1].content.split("\n")[-1]
        if "field: " in line:
            values = dict(part.split(": ") for part in line.partition("] ")[2].split("; "))
        else:
            values = {"subject": line.split()[2], "field": "site", "value": "Hall 3"}
        return answer_text([([int(line[1 : line.index("]")])], values)])

    results = run_tree(expand(scopes, fan_in=2), texts, first_claim, Strength.LITERAL)
    assert [result.status for result in results.values()].count(Status.INELIGIBLE) == 1
    root = results["//dossier:S-1/root"]
    assert root.status is Status.VALID
    assert [claim.values["subject"] for claim in root.claims] == ["P-04-00"]
    assert root.evidence == (catalogue(scopes[4], texts["D-4"])[2],)
    assert not any("P-01" in message.content for made in asked for message in made.messages)
