"""Weights in a folder of one's own: its path, on the machine and in a container."""

from __future__ import annotations

STARTS = ("/", "./", "../", "~")
"""How paths of folders begin: no hub is asked for what lies there."""
HERE = (".", "..")
CONFIG = "config.json"
MOUNT = "/models"
"""Where a container finds folders that have no absolute path."""


def is_folder(name: str) -> bool:
    """Return whether what an engine loads is a folder, by its name."""
    return name in HERE or name.startswith(STARTS)


def model_folder(model: str) -> str:
    """Return the folder of a model that a path names; empty = no path.

    >>> model_folder("./llama/config.json"), model_folder("config.json"), model_folder("org/llama")
    ('./llama', '.', '')
    """
    if model == CONFIG:
        return "."
    if not is_folder(model) and not model.endswith(f"/{CONFIG}"):
        return ""
    folder = model.removesuffix(f"/{CONFIG}").rstrip("/")
    return folder if is_folder(folder) else f"./{folder}"


def mounted(folder: str) -> str:
    """Return where a container finds a folder.

    >>> mounted("./llama"), mounted("/data/llama"), mounted(".")
    ('/models/llama', '/data/llama', '/models/model')
    """
    if folder.startswith("/"):
        return folder
    name = folder.rstrip("/").rpartition("/")[2]
    return f"{MOUNT}/{'model' if name in HERE or name.startswith('~') else name}"
