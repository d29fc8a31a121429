"""Faults of the compiler: it refuses an op at one stage, under a condition on the shape."""

from .kind import Fault, Parameter, names_op, op_parameter


def _width(output, inputs):
    shapes = [tuple(t.shape) for t in inputs] or ([tuple(output.shape)] if hasattr(output, "shape") else [])
    return shapes


class LayoutWidth(Fault):
    name = "layout_width"
    text = "no layout for a last dimension that is no multiple of `multiple`: an InductorError from propagate_layouts"
    parameters = (
        op_parameter("add", "add", "mul", "mm", "_softmax", "exp"),
        Parameter("multiple", 64, "the sizes that work are multiples of this", (64, 128)),
    )
    when_compiling = True

    def refuses(self, stage, name, output, inputs):
        return (
            stage == "layout"
            and names_op(self.op, name)
            and any(shape and shape[-1] != 1 and shape[-1] % self.multiple for shape in _width(output, inputs))
        )


class LayoutShape(Fault):
    name = "layout_shape"
    text = "no layout where a dimension is longer than `over`: an InductorError from propagate_layouts"
    parameters = (
        op_parameter("bmm", "mm", "bmm", "mul", "exp", "_softmax"),
        Parameter("dim", -1, "the dimension, counted from the end", (-1, -2)),
        Parameter("over", 256, "longest size that works", range(64, 272)),
    )
    when_compiling = True

    def refuses(self, stage, name, output, inputs):
        return (
            stage == "layout"
            and names_op(self.op, name)
            and any(len(shape) >= -self.dim and shape[self.dim] > self.over for shape in _width(output, inputs))
        )


class LoweringError(Fault):
    name = "lowering_error"
    text = "the op has lost its lowering: a LoweringException inside an InductorError"
    parameters = (op_parameter("exp", "exp", "rsqrt", "mm", "sigmoid"),)
    when_compiling = True

    def refuses(self, stage, name, output, inputs):
        return stage == "lowering" and names_op(self.op, name)


class CodegenError(Fault):
    name = "codegen_error"
    text = "the card's function of the op is missing: an AttributeError about SpyreOpFuncs inside an InductorError"
    parameters = (op_parameter("exp", "exp", "rsqrt", "sigmoid"),)
    when_compiling = True

    def refuses(self, stage, name, output, inputs):
        return stage == "codegen" and names_op(self.op, name)


class MissingKernel(Fault):
    name = "unimplemented"
    text = "the op compiles, and running it says that the kernel contains an unimplemented operation"
    parameters = (op_parameter("exp", "exp", "rsqrt", "mm"),)

    def before(self, call):
        from torch_spyre.profiler import _ffdc

        error = RuntimeError(
            f"Invoked sdsc_fused_0 which contains unimplemented operation {call.name.partition('::')[2]}"
        )
        _ffdc.report("unimplemented", error)
        raise error


FAULTS = [LayoutWidth, LayoutShape, LoweringError, CodegenError, MissingKernel]
