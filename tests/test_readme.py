import re
import subprocess
import tomllib

import pytest

from planner.catalog import load_catalog
from planner.cli.app import app
from planner.errors import install
from tests.readme import BEGIN, README, ROOT, with_output

TEXT = README.read_text()


def test_the_shown_output_is_what_the_program_prints():
    assert with_output(TEXT) == TEXT


def test_the_test_command_is_marked_for_ci():
    found = re.search(r"<!-- tests -->\n```sh\n(.*?)\n```", TEXT, re.S)
    assert found is not None
    assert "pytest" in found.group(1)
    assert "<!-- tests -->" in (ROOT / ".ci" / "run").read_text()


def test_every_command_is_in_the_table():
    names = [command.name for command in app.registered_commands]
    names += [group.name for group in app.registered_groups]
    missing = [name for name in names if f"| `plan {name}" not in TEXT]
    assert missing == []


@pytest.mark.parametrize(
    "path", re.findall(r"`((?:planner|hardware_catalog|examples)/[^`]*)`", TEXT)
)
def test_every_path_that_is_named_exists(path):
    assert (ROOT / path).exists()


def test_the_ci_script_is_valid_shell():
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_there_is_one_output_block():
    assert TEXT.count(BEGIN) == 1


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"].keys() - {"dev"}


def test_every_extra_is_told_with_the_command_that_adds_it():
    ((told, command),) = re.findall(r"^Extras, (.*?)```sh\n(.*?)```", TEXT, re.S | re.M)
    assert set(re.findall(r"`([\w-]+)` \(", told)) == EXTRAS
    assert install("html,hub") in command


def test_messages_name_extras_that_are_there_and_the_command_of_the_readme():
    source = "\n".join(path.read_text() for path in (ROOT / "planner").rglob("*.py"))
    spelt = set(re.findall(r"slo-planner\[([\w-]+)\]", source))
    assert spelt | set(re.findall(r"\binstall\([\"']([\w-]+)", source)) == EXTRAS
    for name in spelt:
        assert source.count(f"slo-planner[{name}]") == source.count(install(name))


def test_the_figures_of_the_study_of_picks_are_those_of_its_table():
    told = re.findall(r"of (\d+)\s+cheapest picks of random SLOs ([\d.]+) % held", TEXT)
    study = (ROOT / "planner" / "search" / "README.md").read_text()
    assert re.findall(r"\| (\d+) cheapest picks, .*? \| ([\d.]+) % \|", study) == told


def test_the_figures_of_the_catalog_are_those_that_it_has():
    """Expected: what is loaded. A new price, accelerator or model moves the figures in the text."""
    catalog = load_catalog()
    models = len(list((ROOT / "planner" / "catalog" / "architectures").glob("*.json")))
    true = {
        "accelerators": len(catalog.accelerators),
        "dated prices": len(catalog.offers),
        "providers": len({offer.provider for offer in catalog.offers}),
        "model architectures": models,
    }
    changes = (ROOT / "CHANGELOG.md").read_text()
    pattern = rf"(\d+)\s+({'|'.join(true)})\b"
    told = [(what, int(count)) for count, what in re.findall(pattern, TEXT + changes)]
    assert {what for what, _ in told} == set(true)
    assert told == [(what, true[what]) for what, _ in told]
    (at_least,) = re.findall(r"more than (\d+) models", TEXT)
    assert int(at_least) < models
