"""Where a transformer lies: in a folder, or, by its name, in the cache of the Hugging Face hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple, Self

from longtail.errors import InputError
from longtail.features.text_pieces import needs_transformers

__all__ = [
    "FILES",
    "download_transformer",
    "missing_files",
    "transformer_folder",
]

FILES = ("config.json", "tokenizer.json", "model.safetensors")

_WORD = r"\w(?:[\w.-]*\w)?"
_NAME = re.compile(
    rf"(?!.*(?:--|\.\.))(?P<model>{_WORD}/{_WORD})(?:@(?P<revision>\w[\w./-]*))?", re.ASCII
)


def transformer_folder(name: str | Path) -> Path:
    """Return the folder that a transformer is read from. Nothing is downloaded.

    Parameters
    ----------
    name : str or Path
        A folder; or, where there is none of this name, ``owner/name`` or ``owner/name@revision`` of
        a model of the Hugging Face hub that is in its local cache.

    Returns
    -------
    Path
        What is neither comes back as it is: `check_folder` tells what it lacks.

    Raises
    ------
    InputError
        If the cache does not have all of the model.
    MissingExtraError
        If there is no library that knows the cache.

    Examples
    --------
    >>> from longtail.features.hub import transformer_folder
    >>> transformer_folder("minilm").name
    'minilm'
    """
    model = _HubModel.named(name)
    if model is None:
        return Path(name)
    folder = model.cached()
    missing = FILES if folder is None else missing_files(folder)
    if folder is None or missing:
        raise InputError(
            f"{name} is no folder here, and the Hugging Face cache, "
            f"{_library().constants.HF_HUB_CACHE}, does not have that model: "
            f"{', '.join(missing)} not found. Nothing is downloaded unasked. To fetch it, add "
            f"--download to the command, or run `{model.command()}`; in Python, call "
            f"longtail.features.hub.download_transformer({str(name)!r})."
        )
    return folder


def download_transformer(name: str | Path) -> Path:
    """Fetch a transformer from the Hugging Face hub to its cache, unless it is there already.

    Of its files only those that are read: ``config.json``, ``tokenizer.json`` and
    ``model.safetensors``; none that is pickled. The hub's library shows how far it is.

    Parameters
    ----------
    name : str or Path
        ``owner/name``, or ``owner/name@revision``, where a revision is a branch, a tag or a commit.
        For a folder that is there nothing needs to be fetched.

    Returns
    -------
    Path
        The folder, which a recipe finds by the same name.

    Raises
    ------
    InputError
        If it cannot be fetched, or lacks one of the files.
    MissingExtraError
        If the hub's library is not installed.

    Examples
    --------
    What is in a folder, or in the cache, is used as it stands there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.features.hub import download_transformer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     download_transformer(folder) == Path(folder)
    True
    """
    model = _HubModel.named(name)
    if model is None:
        return Path(name)
    folder = model.cached()
    if folder is not None and not missing_files(folder):
        return folder
    return model.fetched()


def missing_files(folder: Path) -> list[str]:
    """Return which of the files that are read are not in a folder."""
    return [file for file in FILES if not (folder / file).is_file()]


class _HubModel(NamedTuple):
    """A model of the hub; without a revision, what its cache or the hub has as the main one."""

    model: str
    revision: str | None

    @classmethod
    def named(cls, name: str | Path) -> Self | None:
        """Return the model of a name; None if that is a folder that is there, or no such name."""
        found = _NAME.fullmatch(str(name))
        if found is None or Path(name).exists():
            return None
        return cls(found["model"], found["revision"])

    def command(self) -> str:
        """Return the command of the hub's library that fetches it."""
        revision = "" if self.revision is None else f" --revision {self.revision}"
        return f"hf download {self.model} {' '.join(FILES)}{revision}"

    def cached(self) -> Path | None:
        """Return its folder in the cache, where something may be missing; None without one."""
        errors = _library().errors
        try:
            return self._snapshot(local_files_only=True)
        except (errors.LocalEntryNotFoundError, errors.HFValidationError):
            return None

    def fetched(self) -> Path:
        """Fetch it, or raise InputError."""
        try:
            folder = self._snapshot(local_files_only=False)
            absent = self._absent(folder)
        except MemoryError:
            raise
        except Exception as error:  # of any kind: the libraries below have errors of their own
            raise InputError(
                f"{self.model} cannot be fetched from the Hugging Face hub: {self._reason(error)}"
            ) from error
        if absent:
            raise InputError(
                f"{self.model} of the Hugging Face hub has no {' and no '.join(absent)}, and "
                "cannot be read: weights are taken from model.safetensors alone, never from "
                "pickled files (*.bin), which can run code. Name another model, or a revision "
                "that has the files, by owner/name@revision."
            )
        return folder

    def _snapshot(self, *, local_files_only: bool) -> Path:
        """Ask the library for the folder."""
        folder = _library().snapshot_download(
            self.model,
            revision=self.revision,
            allow_patterns=list(FILES),
            local_files_only=local_files_only,
        )
        return Path(folder)

    def _absent(self, folder: Path) -> list[str]:
        """Return which files the hub does not have.

        Where it is out of reach, the library takes what is in the cache for the whole of a model.
        """
        library, absent = _library(), []
        for file in missing_files(folder):
            try:
                library.hf_hub_download(self.model, file, revision=self.revision)
            except library.errors.RemoteEntryNotFoundError:
                absent.append(file)
        return absent

    def _reason(self, error: Exception) -> str:
        """Return why it could not be fetched, and what to do."""
        errors = _library().errors
        page = f"https://huggingface.co/{self.model}"
        if isinstance(error, errors.RevisionNotFoundError):
            return f"it has no revision {self.revision!r}. Look at {page} for those that it has."
        if isinstance(error, errors.GatedRepoError):
            return f"its owner wants to be asked first. Do so at {page}, then run `hf auth login`."
        if isinstance(error, errors.RepositoryNotFoundError):
            return (
                "there is no such model, or it is private. Check the name, or, for a private one, "
                "run `hf auth login`."
            )
        why = error.__cause__ or error  # what is around it says no more than that it failed
        line = " ".join(str(why).split()) or type(why).__name__
        return (
            f"{line.rstrip('.')}. Mend that and run it again, which fetches only what is missing; "
            "or fetch the model on another machine, and name its folder."
        )


def _library() -> Any:
    """Import the hub's library, which takes a while and comes with an extra."""
    try:
        import huggingface_hub  # noqa: PLC0415 - an extra
        from huggingface_hub import constants, errors  # noqa: F401, PLC0415 - its rooms
    except ModuleNotFoundError as error:
        raise needs_transformers(error) from error
    return huggingface_hub
