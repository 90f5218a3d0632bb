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


def test_names_and_values_and_what_does_not_agree_are_told_together(tmp_path, capsys):
    slo = tmp_path / "slo.yaml"
    slo.write_text(
        "model: Qwen/Qwen3-33B\n"
        "traffic: {rate_per_s: -1, prompt_tokens: 100, output_tokens: .nan}\n"
        "engines: vlm\n"
        "purchase: {terms: [owned, ondemand], accelerators: [h100-smx, 7], providers: [awz]}\n"
        "quality: {measured: {fp9: 0.1}}\n"
        "speculation: {methods: [mtq], acceptance: [1]}\n"
    )
    outcome = run(capsys, "--slo", str(slo))
    assert outcome.code == 2
    keys = [line.split(": ")[0] for line in outcome.err.splitlines()[1:]]
    assert keys == [
        "  line 1  model",
        "  line 2  traffic.output_tokens",
        "  line 2  traffic.rate_per_s",
        "  line 3  engines",
        "  line 4  purchase.terms[1]",
        "  line 4  purchase.accelerators[1]",
        "  line 4  purchase.accelerators[0]",
        "  line 4  purchase.providers[0]",
        "  line 5  quality.measured.fp9",
        "  line 6  speculation.acceptance",
        "  line 6  speculation.methods[0]",
    ]


def test_what_does_not_agree_hides_no_unknown_name(tmp_path, capsys):
    slo = tmp_path / "slo.yaml"
    slo.write_text(GOOD.replace("Llama-3.3-70B", "Llama-3.9-70B") + "purchase: {terms: [owned]}\n")
    outcome = run(capsys, "--slo", str(slo))
    assert "  model: " in outcome.err
    assert "owned hardware has no costs" in outcome.err


@pytest.mark.parametrize("command", [("--slo",), ("portfolio",)], ids=["plan", "portfolio"])
def test_filters_that_leave_nothing_are_told_with_file_and_line(command, tmp_path, capsys):
    slo = tmp_path / "mine.yaml"
    slo.write_text(GOOD + "purchase:\n  max_gpus: 8\n  terms: [reserved_1y]\n")
    outcome = run(capsys, *command, str(slo))
    line = len(GOOD.splitlines()) + 3
    assert outcome.code == 2
    assert outcome.err.startswith(
        f"{slo}: 1 problem\n  line {line}  purchase.terms: no offer is reserved_1y; the catalog"
    )


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
