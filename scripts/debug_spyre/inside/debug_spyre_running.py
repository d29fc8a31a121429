"""Carrying out one op: on the card with its warnings, a second time, in float64; and what an op is by its schema."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from debug_spyre_calls import Copier, mapped, name_of, tensors_in  # type: ignore[import-not-found]
from debug_spyre_judging import difference  # type: ignore[import-not-found]
from debug_spyre_tally import OWN, caller  # type: ignore[import-not-found]

RANDOM = {"normal_", "uniform_", "random_", "bernoulli_"}
CHANCES = ("p", "dropout_p", "dropout")
SWITCHES = ("train", "training")
BACKEND = {"aten", "prims", "prim", "spyre"}


def has_own_kernel(func: Any) -> bool:
    """The card's own kernel, or one that isn't made of other ops: only composites are taken apart."""
    name = func.name()
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"):
        return True
    return not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


def kernel_of_code(func: Any) -> Any:
    """The dispatch key of an op that is code around other ops (vllm::spyre_convert), not a kernel of the backend; or None.

    Such ops are registered for the platform's key or for all devices (vLLM's direct_register_custom_op, 2026).
    """
    if func.namespace in BACKEND:
        return None
    for key in ("PrivateUse1", "CompositeExplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key):
            return getattr(torch._C.DispatchKey, key)
    return None


def is_named(func: Any, names: set[str]) -> bool:
    """One of the names means this op: mean, aten.mean, aten.mean.dim, mean.dim."""
    packet = func.overloadpacket.__name__
    return bool(names & {packet, f"{func.namespace}.{packet}", name_of(func), f"{packet}.{func._overloadname}"})


def is_view(func: Any) -> bool:
    """Its results only look at its arguments."""
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def host_form(func: Any) -> Any:
    """What carries the op out on the CPU: itself, or the public op where the CPU has no kernel of the device's own form."""
    return HOST_FORMS.get(func.overloadpacket.__name__, func)


def _attention(query: Any, key: Any, value: Any, *rest: Any, scale: float | None = None, **named: Any) -> Any:
    """The first result of scaled dot product attention; the others (log-sum-exp, seeds) differ between backends."""
    names = ("attn_bias", "dropout_p", "is_causal", "return_debug_mask")
    given = dict(zip(names, rest, strict=False)) | named
    grouped = query.dim() > 2 and query.shape[-3] != key.shape[-3]
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, given.get("attn_bias"), given.get("dropout_p", 0.0), given.get("is_causal", False),
        scale=scale, enable_gqa=grouped,
    )  # fmt: skip


HOST_FORMS = {"_scaled_dot_product_fused_attention_overrideable": _attention}


def is_random(func: Any, args: Any, kwargs: Any) -> bool:
    """Two runs of this call differ. An op with a random part that this call switches off (dropout of 0) is no random call."""
    name = func.overloadpacket.__name__
    if torch.Tag.nondeterministic_seeded not in func.tags and name not in RANDOM:
        return False
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    values = {a.name: given.get(a.name, a.default_value) for a in func._schema.arguments}
    never = any(values.get(chance) == 0 for chance in CHANCES if not isinstance(values.get(chance), torch.Tensor))
    return not (never or any(values.get(switch) is False for switch in SWITCHES))


def cloned(value: Any) -> Any:
    """A CPU copy with the same strides and offset; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_contiguous():
        return value.clone()
    whole = value.untyped_storage()
    count = whole.nbytes() // value.element_size()
    return value.as_strided((count,), (1,), 0).clone().as_strided(value.shape, value.stride(), value.storage_offset())


def written(func: Any, device: Any, host: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Arguments that the op wrote to and did not return."""
    schema = func._schema
    returned = {frozenset(r.alias_info.before_set) for r in schema.returns if r.alias_info is not None}
    pairs = []
    for place, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is None or not info.is_write or frozenset(info.before_set) in returned:
            continue
        for (args, kwargs), into in ((device, 0), (host, 1)):
            value = kwargs.get(argument.name) if argument.name in kwargs else args[place] if place < len(args) else None
            if into == 0:
                mine = list(tensors_in(value))
            else:
                pairs += list(zip(mine, tensors_in(value), strict=False))
    return pairs


def run_on_card(func: Any, args: Any, kwargs: Any) -> tuple[Any, bool, Exception | None]:
    """The op on the card: result, whether it fell back, and its error. Warnings are passed on afterwards."""
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = func(*args, **kwargs)
        except Exception as raised:  # noqa: BLE001  passed on by the caller
            error = raised
    fell_back = any(w.category.__name__ == "FallbackWarning" for w in caught)
    for w in caught:
        file, line = caller() if w.filename.startswith(OWN) else (w.filename, w.lineno)
        warnings.warn_explicit(w.message, w.category, file, line, source=w.source)
    return result, fell_back, error


def repeated(func: Any, device: Any, want: torch.Tensor, copier: Copier) -> str:
    """What the same call gives a second time."""
    args, kwargs = device
    result, _, error = run_on_card(func, args, kwargs)
    if error is not None:
        return f"raises {type(error).__name__}"
    first = next(iter(tensors_in(result)), None)
    if first is None:
        return "gives nothing"
    found = difference(func, copier.copies(first), want, *copier.copies(device))
    return "is wrong again" if found and found.is_clear else "is right"


def golden_errors(func: Any, host: Any, results: dict[str, torch.Tensor]) -> dict[str, str] | None:
    """Errors of device and CPU against the same op in float64."""

    def wide(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    try:
        golden = func(*mapped(host[0], wide), **mapped(host[1], wide))
    except Exception:  # noqa: BLE001  no float64 form of it
        return None
    if not isinstance(golden, torch.Tensor):
        return None
    results["golden"] = golden
    return {key: str(float((results[key].double() - golden).abs().max())) for key in ("actual", "expected")}
