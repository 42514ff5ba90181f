r"""The perceptron of `mux-hop` as an ONNX model: f(x), scale 0 of the embedding, without Python.

The model takes features [nodes, f] as the run saw them (its encoding.json) and returns, for each
member of the run, $f(x)$ [nodes, width]. Scale k is $\hat A^k f(X)$: a product with the graph,
which is left to the user of the model. A node without edges has f(x) at every scale.

Where f sees neighbours too (`convolutions` > 0), the model also takes the entries of
$\hat A = D^{-1/2}(A + I)D^{-1/2}$: `target` and `source` are the rows and columns [entries],
`value` the numbers.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from muxgcl.app.estimator_folder import empty_graph
from muxgcl.errors import UserError
from muxgcl.io.files import write_atomically
from muxgcl.methods.mux_hop import MuxHop
from muxgcl.nn.perceptron import Perceptron
from muxgcl.runs.committee import restore_members
from muxgcl.runs.environment import versions
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

OPSET = 17  # the first with LayerNormalization
MOST_BYTES = 2_000_000_000  # of one file of protocol buffers


def export_onnx(run: Path | str, out: Path | str) -> Path:
    """Write the perceptron of a `mux-hop` run as an ONNX model; returns where it is.

    Its input is `x` [nodes, features], its output `f` [nodes, width]; a run of several members has
    the outputs `f`, `f2`, `f3` and so on. With `convolutions` > 0 the inputs `target`, `source` and
    `value` are the entries of the propagation matrix.

    Args:
        run: a run folder.
        out: a file ending in .onnx.

    Example:
        >>> export_onnx("runs/mine", "f.onnx")  # propagation alone has no perceptron
        Traceback (most recent call last):
        muxgcl.errors.UserError: only mux-hop has a perceptron to export, but runs/mine holds sgc
    """
    trained, path = Run(Path(run)), Path(out)
    if path.suffix != ".onnx":
        raise UserError(f"expected a file ending in .onnx, got {path.name!r}")
    if find_spec("onnx") is None:
        raise UserError("an ONNX model needs onnx: pip install onnx")
    tables = trained.config()
    plan = Plan.from_tables(tables, device="cpu")
    if plan.method != "mux-hop":
        raise UserError(f"only mux-hop has a perceptron to export, but {run} holds {plan.method}")
    features = tables.get("data", {}).get("features")
    if features is None:
        raise UserError(f"{trained.config_file}: data.features is missing")
    committee = restore_members(trained, plan, empty_graph(plan, 1, features))
    members = [method for method in committee.methods if isinstance(method, MuxHop)]
    model = _model([m.network for m in members], features, plan.settings.row_normalize)
    if (size := model.ByteSize()) > MOST_BYTES:
        raise UserError(f"an ONNX model holds 2 GB at most, this one has {size / 1e9:.1f} GB")
    content = model.SerializeToString()
    write_atomically(path, lambda file: file.write(content))
    return path


def _model(networks: list[Perceptron], features: int, row_normalize: bool) -> Any:
    from onnx import TensorProto, checker, helper

    graph = _Nodes()
    x = graph.rows_sum_to_one("x") if row_normalize else "x"
    outputs = []
    for k, network in enumerate(networks):
        name = "f" if k == 0 else f"f{k + 1}"
        graph.add("Identity", [graph.perceptron(network, x)], name)
        shape = ["nodes", network.weights[-1].shape[1]]
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    kinds: dict[str, tuple[Any, list[Any]]] = {"x": (TensorProto.FLOAT, ["nodes", features])}
    if networks[0].convolutions:
        whole: tuple[Any, list[Any]] = (TensorProto.INT64, ["entries"])
        kinds |= {"target": whole, "source": whole, "value": (TensorProto.FLOAT, ["entries"])}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    made = helper.make_graph(graph.nodes, "mux-hop", inputs, outputs, graph.tensors)
    opset = helper.make_opsetid("", OPSET)
    version = helper.find_min_ir_version_for([opset])
    model = helper.make_model(
        made,
        producer_name="muxgcl",
        producer_version=str(versions().get("muxgcl", "")),
        opset_imports=[opset],
        ir_version=version,
    )
    checker.check_model(model)
    return model


class _Nodes:
    """Operators in the order in which they run, and the numbers that they need."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def add(self, kind: str, inputs: list[str], name: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: Tensor) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(values.detach().cpu().numpy(), name))
        return name

    def rows_sum_to_one(self, x: str) -> str:
        """Each row divided by its absolute sum; zero rows stay zero."""
        sizes = self.add("Abs", [x])
        columns = self.constant(torch.tensor([1]))
        sums = self.add("ReduceSum", [sizes, columns], keepdims=1)
        zero = self.add("Equal", [sums, self.constant(torch.zeros(1))])
        return self.add("Div", [x, self.add("Where", [zero, self.constant(torch.ones(1)), sums])])

    def propagated(self, table: str) -> str:
        """Row `target` receives `value` times row `source`, over all entries."""
        last = self.constant(torch.tensor([1]))
        sent = self.add("Gather", [table, "source"])
        sent = self.add("Mul", [sent, self.add("Unsqueeze", ["value", last])])
        rows = self.add("Unsqueeze", ["target", last])
        none = self.add("Mul", [table, self.constant(torch.zeros(1))])
        return self.add("ScatterND", [none, rows, sent], reduction="add")

    def perceptron(self, network: Perceptron, x: str) -> str:
        """Blocks of a linear map, PReLU and a norm, as after training."""
        blocks = zip(network.weights, network.biases, network.acts, network.norms, strict=True)
        for k, (weight, bias, act, norm) in enumerate(blocks):
            mixed = self.add("MatMul", [x, self.constant(weight)])
            mixed = self.propagated(mixed) if k < network.convolutions else mixed
            mixed = self.add("Add", [mixed, self.constant(bias)])
            x = self.add("PRelu", [mixed, self.constant(act.get_parameter("weight"))])
            if isinstance(norm, nn.LayerNorm):
                scaled = [self.constant(norm.weight), self.constant(norm.bias)]
                x = self.add("LayerNormalization", [x, *scaled], axis=-1, epsilon=norm.eps)
            elif isinstance(norm, nn.BatchNorm1d):
                assert norm.running_mean is not None
                assert norm.running_var is not None
                kept = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
                scaled = [self.constant(values) for values in kept]
                x = self.add("BatchNormalization", [x, *scaled], epsilon=norm.eps)
        return x
