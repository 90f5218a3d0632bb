"""Where catalog files lie: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputError
from planner.files import digest

FOLDERS = ("accelerators", "engines")
SINGLE = ("precisions.yaml", "speculation.yaml", "efficiency.yaml", "currencies.yaml", "terms.yaml")
OFFERS = "offers.csv"

_PACKAGE = Path(__file__).resolve().parents[1]


def data_root() -> Path:
    """Return the folder that holds ``hardware_catalog/`` and ``search_spaces/``.

    Raises:
        InputError: Neither place has them: the installation is incomplete.
    """
    for root in (_PACKAGE / "data", _PACKAGE.parent):
        if (root / "hardware_catalog").is_dir():
            return root
    raise InputError(
        "installation", ["hardware_catalog is missing from it; install slo-planner again"]
    )


@dataclass(frozen=True)
class CatalogFiles:
    """The files of a catalog folder with overlay folders laid over it.

    Attributes:
        root: The catalog folder.
        entries: YAML files by name inside the folder; those of later folders replace earlier.
        offers: ``offers.csv`` of the catalog, then of overlay folders, then price files.
    """

    root: Path
    entries: dict[str, Path]
    offers: tuple[Path, ...]

    def folder(self, name: str) -> list[Path]:
        """Return the YAML files of one folder, sorted by name."""
        return [path for key, path in sorted(self.entries.items()) if key.startswith(f"{name}/")]

    def digest(self) -> str:
        """Return the SHA-256 over names and contents; neither paths nor line ends matter."""
        return digest(*self._basis(), *_named((OFFERS, path) for path in self.offers))

    def basis_digest(self) -> str:
        """Return the same over all files but prices."""
        return digest(*self._basis())

    def _basis(self) -> Iterator[bytes | str]:
        return _named(sorted(self.entries.items()))


def catalog_files(
    root: Path | None, prices: Sequence[Path], overlays: Sequence[Path]
) -> CatalogFiles:
    """Find the files of a catalog.

    Args:
        root: Catalog folder; None = the one that comes with the program.
        prices: Price files, laid over all offers.
        overlays: Folders with the layout of a catalog, any part of it.

    Raises:
        InputError: A folder does not exist or holds no catalog file.
    """
    base = data_root() / "hardware_catalog" if root is None else root
    entries: dict[str, Path] = {}
    offers: list[Path] = []
    for folder in (base, *overlays):
        found = dict(_entries(folder))
        rows = folder / OFFERS
        if not found and not rows.is_file():
            raise InputError(str(folder), [_empty(folder)])
        entries |= found
        if folder is base or rows.is_file():
            offers.append(rows)
    return CatalogFiles(base, entries, (*offers, *prices))


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    for name in FOLDERS:
        for path in sorted((folder / name).glob("*.yaml")):
            yield f"{name}/{path.name}", path
    for name in SINGLE:
        if (folder / name).is_file():
            yield name, folder / name


def _empty(folder: Path) -> str:
    if folder.is_file():
        return "a file, not a folder; name the folder that holds offers.csv and accelerators/"
    if not folder.exists():
        return "no such folder; check the path"
    return "no catalog file in it; put accelerators/*.yaml, engines/*.yaml or offers.csv there"


def _named(files: Iterable[tuple[str, Path]]) -> Iterator[bytes | str]:
    for name, path in files:
        yield name
        yield _content(path)


def _content(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")
