"""What a compiled graph becomes: its ops, in order, on host views of the arguments; results go back to the device."""

import torch

from torch_spyre import _C
from torch_spyre.execution.launch import run_on_host

DEVICE_NODES = {"placeholder", "get_attr", "call_function", "output"}


class SpyreKernelRunner:
    """Calls the ops of one graph; a graph of several compute ops counts as compiled, that of one eager kernel does not."""

    def __init__(self, graph_module, plan):
        self.module = graph_module
        self.nodes = list(graph_module.graph.nodes)
        self.plan = plan  # node -> "host" | "device"
        self.compiled = sum(1 for how in plan.values() if how != "view") > 1
        self.last_use = self._last_uses()
        self.__name__ = "spyre_kernel"

    def _last_uses(self):
        last = {}
        for node in self.nodes:
            for used in node.all_input_nodes:
                last[used] = node
        done = {}
        for used, node in last.items():
            done.setdefault(node, []).append(used)
        return done

    def __call__(self, *inputs):
        values, back, given = {}, {}, iter(inputs)
        for node in self.nodes:
            if node.op == "placeholder":
                values[node] = _host(next(given), back)
            elif node.op == "get_attr":
                values[node] = _host(getattr(self.module, node.target), back)
            elif node.op == "output":
                return _device(_bind(node.args[0], values), back)
            else:
                values[node] = self._run(node, values, back)
            for used in self.last_use.get(node, ()):
                values.pop(used, None)
        return None

    def _run(self, node, values, back):
        args, kwargs = _bind(node.args, values), _bind(node.kwargs, values)
        how = self.plan.get(node, "host")
        if how == "host":
            return run_on_host(node.target, args, kwargs, compiled=self.compiled)
        if how == "view":
            if kwargs.get("device") is not None:
                kwargs = {**kwargs, "device": torch.device("cpu")}
            return node.target(*args, **kwargs)
        result = node.target(
            *_device(args, back), **_device(kwargs, back)
        )  # no lowering: the eager kernel, or its error
        return _host(result, {})


def _bind(value, values):
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, (list, tuple)):
        return type(value)(_bind(v, values) for v in value)
    if isinstance(value, dict):
        return {k: _bind(v, values) for k, v in value.items()}
    return value


def _host(value, back):
    if isinstance(value, torch.Tensor):
        if not _C.is_spyre(value):
            return value
        host = _C.to_host(value)
        back[id(host)] = (host, value)  # keeping the host view keeps its id
        return host
    if isinstance(value, (list, tuple)):
        return type(value)(_host(v, back) for v in value)
    return value


def _device(value, back):
    if isinstance(value, torch.Tensor):
        known = back.get(id(value))
        return known[1] if known else _C.to_device(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_device(v, back) for v in value)
    if isinstance(value, dict):
        return {k: _device(v, back) for k, v in value.items()}
    return value
