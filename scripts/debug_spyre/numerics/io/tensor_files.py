"""Tensors in files: .safetensors by an own reader, .npy without pickle, .pt with weights_only in a quiet torch.

Nothing in a file is ever executed: object pickles are refused. torch is imported without its device backends, so that
looking at a file never touches the card.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

if TYPE_CHECKING:
    from debug_spyre.numerics.formats import Values

SUFFIXES = (".safetensors", ".npy", ".pt", ".pth", ".bin")
MAX_HEADER = 100 << 20
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def need_numpy() -> None:
    """Say in one line that numpy is missing, where it is.

    Raises:
        EnvironmentTroubleError: numpy can't be imported.
    """
    try:
        import numpy  # noqa: F401, ICN001
    except ImportError as error:
        raise EnvironmentTroubleError(
            "comparing tensors needs numpy, which this Python lacks",
            next="DEBUG_SPYRE_PYTHON=PATH of the target's python, then repeat the command",
        ) from error


def split_name(word: str) -> tuple[Path, str | None]:
    """FILE or FILE:KEY as path and key (None if there is none); FILE itself may contain colons."""
    if Path(word).exists():
        return Path(word), None
    for place in (i for i, letter in enumerate(word) if letter == ":"):
        path = Path(word[:place])
        if path.suffix in SUFFIXES and path.is_file():
            return path, word[place + 1 :]
    return Path(word), None


def read_tensor(word: str) -> Values:
    """Read the tensor that FILE or FILE:KEY means (.safetensors, .npy, .pt).

    Raises:
        BadInputError: no such file or key, several tensors and no key, or a file that can't be read.
    """
    need_numpy()
    path, key = split_name(word)
    if not path.is_file():
        raise BadInputError(f"there is no file {word}", next="give FILE or FILE:KEY (.safetensors, .npy or .pt)")
    if path.suffix == ".safetensors":
        return read_safetensors(path, key)
    if path.suffix == ".npy":
        return _read_npy(path)
    if path.suffix in {".pt", ".pth", ".bin"}:
        return _read_pt(path, key)
    raise BadInputError(f"{path} is no tensor file by its name", next="use .safetensors, .npy or .pt")


def safetensors_header(path: Path) -> dict[str, Any]:
    """Read and check the header of a safetensors file: tensor name -> dtype, shape, byte offsets.

    Format: https://github.com/huggingface/safetensors, 8 bytes of length, then JSON.

    Raises:
        BadInputError: it is damaged or cut off.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(MAX_HEADER, size - 8):
                raise ValueError(f"its header claims {length} bytes of {size}")
            header = json.loads(stream.read(length))
        if not isinstance(header, dict):
            raise TypeError("its header is no object")
        header.pop("__metadata__", None)
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            if not (0 <= start <= stop <= size - 8 - length):
                raise ValueError(f"{name!r} lies outside the file")
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, struct.error, RecursionError) as error:
        raise BadInputError(f"{path} is no whole safetensors file: {error}", next="write the tensor again") from error
    return {**header, "": length} if "" not in header else header


def read_safetensors(path: Path, key: str | None = None) -> Values:
    """One tensor of a safetensors file.

    Raises:
        BadInputError: damaged file, missing or ambiguous key, unknown element type.
    """
    header = safetensors_header(path)
    length = header.pop("")
    name = _choose(path, key, header)
    entry = header[name]
    start, stop = entry["data_offsets"]
    with path.open("rb") as stream:
        stream.seek(8 + length + start)
        raw = stream.read(stop - start)
    return _decoded(path, name, raw, entry)


def _decoded(path: Path, name: str, raw: bytes, entry: dict[str, Any]) -> Values:
    from debug_spyre.numerics.formats import decode

    try:
        return decode(raw, entry["dtype"], tuple(entry["shape"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path}: tensor {name!r}: {error}", next="save it as float, integer or bool") from error


def _choose(path: Path, key: str | None, names: Iterable[str]) -> str:
    known = list(names)
    if key is not None:
        if key in known:
            return key
        raise BadInputError(
            f"{path} has no tensor {key!r}; it has {_listed(known)}",
            next=f"debug-spyre compare {path}:{known[0] if known else 'KEY'} ...",
        )
    if len(known) == 1:
        return known[0]
    if not known:
        raise BadInputError(f"{path} holds no tensor", next="write the tensor again")
    raise BadInputError(
        f"{path} holds {len(known)} tensors: {_listed(known)}", next=f"debug-spyre compare {path}:{known[0]} ..."
    )


def _listed(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most]) or "none"
    return f"{shown}, and {len(names) - most} more" if len(names) > most else shown


def _read_npy(path: Path) -> Values:
    import numpy as np

    from debug_spyre.numerics.formats import from_numpy

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "pickle" in text.lower():
            text = "it holds pickled objects, which are never loaded"
        raise BadInputError(f"cannot read {path}: {text}", next="save it with numpy.save(FILE, ARRAY)") from error
    values = from_numpy(array) if isinstance(array, np.ndarray) else None
    if values is None:
        raise BadInputError(f"{path} holds elements of type {getattr(array, 'dtype', type(array).__name__)}")
    return values


@contextmanager
def quiet_torch() -> Iterator[Any]:
    """Import torch without its device backends, so that no card is touched.

    Raises:
        EnvironmentTroubleError: torch can't be imported.
    """
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        import torch

        yield torch
    except ImportError as error:
        raise EnvironmentTroubleError(
            "reading .pt files needs torch, which this Python lacks",
            next="DEBUG_SPYRE_PYTHON=PATH of the target's python, or save as .safetensors",
        ) from error
    finally:
        if before is None:
            os.environ.pop(AUTOLOAD, None)
        else:
            os.environ[AUTOLOAD] = before


def _read_pt(path: Path, key: str | None) -> Values:
    import pickle

    with quiet_torch() as torch:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise BadInputError(
                f"{path} holds pickled objects, which are never loaded, or is damaged",
                next="save tensors only: torch.save({'a': tensor}, FILE)",
            ) from error
        except (RuntimeError, OSError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
            text = (str(error) or type(error).__name__).splitlines()[0][:160]
            raise BadInputError(f"cannot read {path}: {text}", next="write the tensor again") from error
        tensors = dict(_tensors_in(loaded, "", torch))
        tensor = tensors[_choose(path, key, tensors)] if tensors or key else None
        if tensor is None:
            raise BadInputError(f"{path} holds no tensor", next="write the tensor again")
        return from_torch(tensor, torch)


def _tensors_in(value: Any, name: str, torch: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name or "tensor", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors_in(item, f"{name}.{key}" if name else str(key), torch)
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from _tensors_in(item, f"{name}.{place}" if name else str(place), torch)


def from_torch(tensor: Any, torch: Any) -> Values:
    """The elements of a CPU tensor of any dtype in `formats`; the shape stays.

    Raises:
        BadInputError: another dtype.
    """
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    raw = dense.reshape(-1).view(torch.uint8).numpy().tobytes() if dense.numel() else b""
    entry = {"dtype": str(dense.dtype), "shape": list(dense.shape)}
    return _decoded(Path("tensor"), "tensor", raw, entry)


def write_safetensors(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """Write raw tensors: name -> (safetensors element type, shape, little-endian bytes).

    Raises:
        EnvironmentTroubleError: the file can't be written.
    """
    from debug_spyre.host.files import write_atomically

    header, place = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, place + len(raw)]}
        place += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_atomically(
        path, struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values()), mode=0o600
    )
