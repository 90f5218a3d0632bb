"""What a stock image lacks: folders of weights have to be mounted."""

from __future__ import annotations

from dataclasses import replace

from planner.deploy.deployment import Deployment
from planner.deploy.folders import is_folder, mounted


def in_container(d: Deployment) -> Deployment:
    """Return a deployment whose folders lie where they are mounted, and say so in its notes."""
    heads = {key: value for key, value in d.speculator.items() if _folder(value)}
    folders = [str(value) for value in (d.model, *heads.values()) if _folder(value)]
    moved = {folder: mounted(folder) for folder in folders}
    notes = (
        f"Mount the folder {folder} at {place} in every container: the image does not hold it."
        for folder, place in moved.items()
    )
    return replace(
        d,
        model=moved.get(d.model, d.model),
        speculator={**d.speculator, **{key: moved[str(value)] for key, value in heads.items()}},
        notes=(*d.notes, *notes),
    )


def _folder(value: object) -> bool:
    return isinstance(value, str) and is_folder(value)
