"""Several processes that train one network: each takes its share of every batch, and gradients are summed.

All of them run the same program with the same seeds, so each computes everything but the gradients on its own.
lightning-fabric starts them, on one machine or on several, and carries the sums.
"""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn


class Team:
    """The processes of this run, and which of them we are."""

    def __init__(self, fabric: Any = None) -> None:
        self.fabric = fabric
        self.rank: int = fabric.global_rank if fabric else 0
        self.size: int = fabric.world_size if fabric else 1

    def wait(self) -> None:
        """Until every process has come this far."""
        if self.size > 1:
            self.fabric.barrier()

    def share(self, batch: Tensor) -> Tensor:
        """Our examples of a batch."""
        return batch[self.rank :: self.size] if self.size > 1 else batch

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the gradient of the whole batch."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = self.fabric.all_reduce(torch.cat([g.flatten() for g in gradients]), reduce_op="sum")
        for gradient, part in zip(gradients, total.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def average_buffers(self, network: nn.Module) -> None:
        """Give every process the same running statistics, such as those of batch norm: the mean of all."""
        for buffer in network.buffers() if self.size > 1 else ():
            if buffer.is_floating_point():
                buffer.copy_(self.fabric.all_reduce(buffer, reduce_op="mean"))


_ours = Team()


def our_team() -> Team:
    """The team of this process; alone, unless `together` was asked for."""
    return _ours


@contextlib.contextmanager
def together(devices: int, nodes: int = 1) -> Iterator[Team]:
    """Inside, training is shared among `devices` processes on each of `nodes` machines.

    The processes are started here, unless torchrun or a cluster has started them already.
    """
    global _ours
    if devices < 1 or nodes < 1:
        raise ValueError(f"{devices} devices on {nodes} machines: ask for at least one of each.")
    if devices * nodes == 1:
        yield _ours
        return
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise ValueError("lightning-fabric is missing: pip install 'invariantnet[devices]'.") from None
    accelerator = "cuda" if torch.cuda.is_available() else "cpu"
    fabric = Fabric(accelerator=accelerator, devices=devices, num_nodes=nodes, strategy="ddp")
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    fabric.launch()
    before, _ours = _ours, Team(fabric)
    try:
        yield _ours
    finally:
        _ours = before
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
