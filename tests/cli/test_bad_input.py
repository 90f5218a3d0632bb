import pytest

from tests.bad_input.cases import GOOD, VALUES, WHOLE_FILE, Case
from tests.bad_input.cli_cases import CLI_CASES, CliCase
from tests.cli.runner import run

SLO_CASES = tuple(case for case in (*WHOLE_FILE, *VALUES) if case.kind == "slo")
JARGON = ("pydantic", "Traceback", "validation error", "Input should")


@pytest.mark.parametrize("case", SLO_CASES, ids=lambda case: case.id)
def test_a_bad_slo_file_ends_in_exit_code_2_and_writes_nothing(case: Case, tmp_path, capsys):
    path = case.write(tmp_path)
    result = tmp_path / "plan.json"
    outcome = run(capsys, "--slo", str(path), "--out", str(result))
    assert outcome.code == 2
    assert outcome.out == ""
    for fault in case.faults:
        assert fault in outcome.err
    assert not [word for word in JARGON if word in outcome.err]
    assert not result.exists()


@pytest.mark.parametrize("case", CLI_CASES, ids=lambda case: case.id)
def test_a_mistake_that_only_the_program_finds_is_answered_too(case: CliCase, tmp_path, capsys):
    for name, text in case.files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    slo = tmp_path / "slo.yaml"
    slo.write_text(case.slo.replace("FOLDER", str(tmp_path)))
    result = tmp_path / "plan.json"
    arguments = [argument.replace("FOLDER", str(tmp_path)) for argument in case.arguments]
    outcome = run(capsys, "--slo", str(slo), "--out", str(result), *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    for fragment in case.fragments:
        assert fragment in outcome.err
    assert not [word for word in JARGON if word in outcome.err]
    assert not result.exists()


def test_all_unknown_names_are_told_at_once_with_line_key_and_repair(tmp_path, capsys):
    slo = tmp_path / "slo.yaml"
    slo.write_text(
        GOOD + "engines: [vlm]\n"
        "purchase: {accelerators: [h100-smx], providers: [awz]}\n"
        "quality: {allow: [kv-nvfp5]}\n"
        "speculation: {methods: [mtq]}\n"
    )
    outcome = run(capsys, "--slo", str(slo))
    first = len(GOOD.splitlines()) + 1
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        f"{slo}: 5 problems",
        f"  line {first}  engines[0]: 'vlm' is unknown; did you mean 'vllm'?",
        f"  line {first + 1}  purchase.accelerators[0]: 'h100-smx' is unknown;"
        " did you mean 'h100-sxm'?",
        f"  line {first + 1}  purchase.providers[0]: 'awz' is unknown; did you mean 'aws'?",
        f"  line {first + 2}  quality.allow[0]: 'nvfp5' is unknown; did you mean 'nvfp4'?",
        f"  line {first + 3}  speculation.methods[0]: 'mtq' is unknown; did you mean 'mtp'?",
    ]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("--slo", "FILE", "score", "x.csv"), "does not go with a command"),
        ((), "Usage"),
        (("--slo", "FILE", "--format", "tabel"), "did you mean 'table'?"),
        (("--slo", "FILE", "--space", "defualt"), "default"),
        (("--slo", "FILE", "--as-of", "yesterday"), "YYYY-MM-DD"),
        (("--slo", "FILE", "--trials", "0"), "--trials"),
        (("score", "nowhere.csv"), "no such file"),
        (("schema", "sloo"), "did you mean 'slo'?"),
        (("explain", "FILE"), "not valid JSON"),
        (("--nonsense",), "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_ends_in_exit_code_2(arguments, fragment, tmp_path, capsys):
    slo = tmp_path / "slo.yaml"
    slo.write_text(GOOD)
    outcome = run(capsys, *(str(slo) if part == "FILE" else part for part in arguments))
    assert outcome.code == 2
    assert fragment in outcome.err + outcome.out
    assert "Traceback" not in outcome.err
