"""Rules: by the tool's name and by what its input says; the first that matches decides."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Loop, Rule, UsageError
from looplatch.permission.rules import decided


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("*", "anything", True),
        ("bash", "bash", True),
        ("bash", "bash_2", False),
        ("bash", "Bash", False),
        ("file_*", "file_read", True),
        ("file_*", "a_file_read", False),
        ("mcp__?", "mcp__a", True),
        ("mcp__?", "mcp__", False),
    ],
)
def test_a_tool_is_named_with_wildcards(pattern: str, tool: str, matches: bool) -> None:
    assert Rule("deny", pattern).matches(tool, {}) is matches


@pytest.mark.parametrize(
    ("expression", "given", "matches"),
    [
        ("rm", {"command": "rm -rf ."}, True),
        ("rm", {"command": "please rm"}, True),
        ("^rm", {"command": "please rm"}, False),
        ("rm", {"command": "ls"}, False),
        ("rm", {}, False),
        ("rm", {"other": "rm"}, False),
        ("^8$", {"command": 8}, True),
        ("^null$", {"command": None}, True),
        ('"path":"/etc', {"command": {"path": "/etc/passwd"}}, True),
        (r"^\[1,2\]$", {"command": [1, 2]}, True),
        ("", {"command": ""}, True),
    ],
)
def test_an_input_matches_where_its_field_is_there_and_is_found_in(
    expression: str, given: dict[str, Any], matches: bool
) -> None:
    assert Rule("deny", input={"command": expression}).matches("bash", given) is matches


def test_every_field_that_is_named_must_match() -> None:
    rule = Rule("ask", "copy", {"from": "^/home", "to": "^/etc"})
    assert rule.matches("copy", {"from": "/home/a", "to": "/etc/a"})
    assert not rule.matches("copy", {"from": "/home/a", "to": "/tmp/a"})
    assert not rule.matches("move", {"from": "/home/a", "to": "/etc/a"})


def test_the_first_rule_that_matches_decides_and_without_one_a_call_may_run() -> None:
    rules = [Rule("allow", "bash", {"command": "^ls"}), Rule("ask", "bash"), Rule("deny", "b*")]
    assert decided(rules, "bash", {"command": "ls"}) == "allow"
    assert decided(rules, "bash", {"command": "rm"}) == "ask"
    assert decided(rules, "browse", {}) == "deny"
    assert decided(rules, "read", {}) == "allow"
    assert decided([], "read", {}) == "allow"


@given(st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(["a", "b", "*"]))))
def test_rules_decide_as_a_plain_search_does(listed: list[tuple[Any, str]]) -> None:
    expected = "allow"
    for decision, tool in reversed(listed):
        if tool in ("a", "*"):
            expected = decision
    assert decided([Rule(decision, tool) for decision, tool in listed], "a", {}) == expected


@pytest.mark.parametrize(
    ("made", "what", "said"),
    [
        ({"decision": "never"}, "Rule.decision", "'never'"),
        ({"decision": "deny", "tool": 7}, "Rule.tool", "7"),
        ({"decision": "deny", "input": {"command": "("}}, "Rule.input", "'('"),
        ({"decision": "deny", "input": {"command": 7}}, "Rule.input", "7"),
        ({"decision": "deny", "input": ["command"]}, "Rule.input", "['command']"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_when_it_is_made(made: dict[str, Any], what: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Rule(**made)
    assert caught.value.what == what
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "what"),
    [([("deny", "bash")], "rules[0]"), ([Rule("deny"), "bash"], "rules[1]"), (7, "rules")],
)
def test_what_is_no_rule_is_refused_by_the_loop(rules: Any, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        Loop(model="m", rules=rules)
    assert caught.value.what == what
