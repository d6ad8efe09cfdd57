"""One program: what its text means, and what is said of a text that means nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import (
    Assignment,
    NamedPosition,
    Program,
    chain_positions,
    name_at,
    parse_program,
    position_of,
)
from bindscope.tasks.binding.positions import LINE_PARTS, QUERY_PARTS, n_positions


@st.composite
def programs_with_reassignment(draw: st.DrawFn) -> Program:
    """Any program of a language of few letters, so that variables are assigned again often."""
    letters = "abcd"
    assignments: list[Assignment] = []
    for _ in range(draw(st.integers(1, 12))):
        assigned = sorted({assignment.variable for assignment in assignments})
        source = draw(st.sampled_from([*"0123456789", *assigned * 5]))
        assignments.append(Assignment(draw(st.sampled_from(letters)), source))
    query = draw(st.sampled_from(sorted({assignment.variable for assignment in assignments})))
    return Program(tuple(assignments), query)


def execute_as_python(program: Program) -> int:
    """Python itself as the interpreter: the lines of a program are Python statements."""
    scope: dict[str, int] = {}
    exec("\n".join(map(str, program.assignments)), {"__builtins__": {}}, scope)
    return scope[program.query]


@given(programs_with_reassignment())
def test_a_program_answers_what_python_would_compute(program: Program) -> None:
    assert program.answer == execute_as_python(program)


@given(programs_with_reassignment())
def test_changing_the_root_constant_changes_the_answer_to_it(program: Program) -> None:
    for digit in range(10):
        changed = program.with_root_constant(digit)
        assert execute_as_python(changed) == digit
        assert changed.chain == program.chain


@given(programs_with_reassignment())
def test_without_its_distractors_a_program_of_fresh_names_has_the_same_answer(program: Program) -> None:
    renamed = {line: "abcdefghijklmnopqrstuvwxyz"[line] for line in program.chain}
    kept = []
    for line in sorted(program.chain):
        reference = program.references[line - 1]
        source = program.assignments[line - 1].source if reference is None else renamed[reference]
        kept.append(Assignment(renamed[line], source))
    assert Program(tuple(kept), renamed[program.query_line]).answer == program.answer
    assert set(program.distractor_lines) | set(program.chain) == set(range(1, program.n_lines + 1))


@given(programs_with_reassignment())
def test_text_and_tokens_lead_back_to_the_program(program: Program) -> None:
    assert parse_program(program.text, reassignment=True) == program
    assert Program.from_tokens(program.tokens) == program
    assert len(program.tokens) == n_positions(program.n_lines)


@given(programs_with_reassignment())
def test_each_position_holds_what_its_name_says(program: Program) -> None:
    signs = {"equals": "=", "newline": "\n", "hash": "#", "colon": ":", "query": program.query}
    for position, character in enumerate(program.text):
        named = name_at(position, program.n_lines)
        assert position_of(named, program.n_lines) == position
        if named.line is None:
            assert character == signs[named.part]
        else:
            line = program.assignments[named.line - 1]
            assert character == {**signs, "lhs": line.variable, "rhs": line.source}[named.part]


@given(programs_with_reassignment())
def test_along_the_chain_each_line_names_the_one_before(program: Program) -> None:
    *sources, query, colon = [program.text[position] for position in chain_positions(program)]
    assert sources[0] == str(program.answer)
    names = [program.assignments[line - 1].variable for line in reversed(program.chain)]
    assert sources[1:] == names[:-1]
    assert (query, colon) == (names[-1], ":")


def test_chains_are_counted_by_lines_from_the_query_to_the_root() -> None:
    program = parse_program("a=5\nb=a\nc=3\nd=c\ne=b\nf=a\n#e:")
    assert (program.answer, program.chain, program.depth, program.root_line) == (5, (5, 2, 1), 3, 1)
    assert program.distractor_lines == (3, 4, 6)
    assert program.distractor_chains == ((4, 3), (6, 1))


def test_a_reference_keeps_the_value_of_its_time() -> None:
    program = parse_program("a=1\nb=a\na=2\nc=a\n#b:", reassignment=True)
    assert (program.answer, program.chain) == (1, (2, 1))
    assert parse_program("a=1\nb=a\na=2\nc=a\n#c:", reassignment=True).chain == (4, 3)
    assert parse_program("a=1\na=a\n#a:", reassignment=True).chain == (2, 1)


@pytest.mark.parametrize("text", ["a=5\r\nb=a\r\n#b:\r\n", "a=5  \nb=a\t\n#b: \n\n", "a=5\nb=a\n#b:"])
def test_line_ends_and_trailing_blanks_do_not_matter(text: str) -> None:
    assert parse_program(text).text == "a=5\nb=a\n#b:"


ERRORS = [
    ("", "the program is empty"),
    (" \n\n", "the program is empty"),
    ("a=5\nb=a", "line 2: no query follows"),
    ("a=5\nb=4\nc=q\n#c:", "line 3: 'q' is used before it is assigned."),
    ("a=a\n#a:", "line 1: 'a' is used before it is assigned."),
    ("b=c\nc=1\n#b:", "line 1: 'c' is used before it is assigned."),
    ("a=5\nb=1\na=2\n#a:", "line 3: 'a' is assigned twice, first on line 1"),
    ("a=5\nb=?\n#b:", "line 2: unknown character '?'"),
    ("A=5\n#A:", "line 1: unknown character 'A'"),
    ("a = 5\n#a:", "line 1: unknown character ' ' (write lines without blanks)"),
    ("a=٣\n#a:", "line 1: unknown character '٣'"),
    ("a5\n#a:", "line 1: '=' is missing in 'a5'"),
    ("a=5\n\n#a:", "line 2: the line is empty"),
    ("5=a\n#a:", "line 1: the left of '=' must be one letter, not '5'."),
    ("=5\n#a:", "line 1: the left of '=' must be one letter, not ''."),
    ("a=12\n#a:", "line 1: the right of '=' must be one letter or one digit, not '12'."),
    ("a=\n#a:", "line 1: the right of '=' must be one letter or one digit, not ''."),
    ("a==5\n#a:", "line 1: the right of '=' must be one letter or one digit, not '=5'."),
    ("a=5\n#a", "line 2: a query is '#', one letter and ':'"),
    ("a=5\n#:", "line 2: a query is '#', one letter and ':'"),
    ("a=5\n#a:5", "line 2: a query is '#', one letter and ':'"),
    ("a=5\n#a:\nb=2", "line 3: nothing may follow the query on line 2."),
    ("a=5\n#a:\n#a:", "line 3: nothing may follow the query on line 2."),
    ("a=5\n#b:", "line 2: 'b' is queried but never assigned."),
    ("#b:", "line 1: 'b' is queried but never assigned."),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BindscopeError) as error:
        parse_program(text)
    assert str(error.value).startswith(message)


@given(st.text(alphabet="ab=15#:\n ?", max_size=20))
def test_any_text_is_a_program_or_one_clear_error(text: str) -> None:
    message = "none"
    try:
        program = parse_program(text)
        assert program.text == "\n".join(line.rstrip() for line in text.rstrip().split("\n"))
    except BindscopeError as error:
        message = str(error)
    assert message.startswith(("line ", "the program is empty", "none"))
    assert "\n" not in message


@pytest.mark.parametrize(
    "position", [NamedPosition("rhs", 0), NamedPosition("lhs", 4), NamedPosition("rhs"), NamedPosition("colon", 1)]
)
def test_a_position_that_a_program_lacks_is_an_error(position: NamedPosition) -> None:
    with pytest.raises(BindscopeError, match="has no position"):
        position_of(position, n_lines=3)


@pytest.mark.parametrize("position", [-1, 15])
def test_a_position_outside_a_program_is_an_error(position: int) -> None:
    with pytest.raises(BindscopeError, match="positions 0 to 14"):
        name_at(position, n_lines=3)


def test_every_part_has_its_own_position() -> None:
    positions = [NamedPosition(part, line) for line in (1, 2) for part in LINE_PARTS] + [
        NamedPosition(part) for part in QUERY_PARTS
    ]
    assert [position_of(position, n_lines=2) for position in positions] == list(range(11))
