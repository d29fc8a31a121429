"""The classification rules in their order: the first that matches a failure gives its stage, tags and reason.

Each rule carries an example that it must match first (a test holds that). Hardware and environment come before the
compiler, the compiler before the runtime; general rules stand last.
"""

from __future__ import annotations

from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules_compiler import (
    CODEGEN_RULES,
    DISPATCH_RULES,
    DYNAMO_RULES,
    FALLBACK_RULES,
    LAYOUT_RULES,
    LOWERING_RULES,
)
from debug_spyre.triage.rules_device import LATE_RULES, RUNTIME_RULES
from debug_spyre.triage.rules_environment import ENVIRONMENT_RULES, TEST_RULES
from debug_spyre.vocabulary.evidence import Stage

RUN = Stage.RUNTIME
LAYOUT, LOWER, GEN = Stage.LAYOUT, Stage.LOWERING, Stage.CODEGEN

RULES: tuple[Rule, ...] = (
    *FALLBACK_RULES,
    *ENVIRONMENT_RULES[:4],
    *TEST_RULES,
    *RUNTIME_RULES,
    *ENVIRONMENT_RULES[4:8],
    *DISPATCH_RULES,
    *LAYOUT_RULES,
    *LOWERING_RULES,
    *CODEGEN_RULES,
    *DYNAMO_RULES,
    *ENVIRONMENT_RULES[8:],
    *LATE_RULES,
)

# where the innermost backend frame lies says the stage when no text does
FRAME_STAGES: tuple[tuple[str, Stage], ...] = (
    ("ops/fallbacks", Stage.FALLBACK),
    ("propagate_layouts", LAYOUT),
    ("pass_utils", LAYOUT),
    ("restickify", LAYOUT),
    ("stickify", LAYOUT),
    ("_inductor/views", LAYOUT),
    ("graph_validation", LAYOUT),
    ("split_multi_ops", LAYOUT),
    ("padding", LAYOUT),
    ("decompositions", LOWER),
    ("lowering", LOWER),
    ("customops", LOWER),
    ("temp_passes", LOWER),
    ("spyre_kernel", GEN),
    ("_inductor/codegen", GEN),
    ("async_compile", GEN),
    ("work_division", GEN),
    ("coarse_tile", GEN),
    ("memory_planning", GEN),
    ("scratchpad", GEN),
    ("scheduler", GEN),
    ("kernel_runner", RUN),
    ("csrc/", RUN),
    ("torch_spyre/streams", RUN),
    ("ops/eager", Stage.DISPATCH),
    ("_monkey_patch", Stage.DISPATCH),
    ("torch/_dynamo", Stage.DYNAMO),
    ("torch/_inductor", LOWER),
)
