"""Several processes that train one network: each takes a share of every batch, and gradients are summed.

All processes run the same program with the same seeds, so each of them computes everything but the gradients by
itself. lightning-fabric starts them, on one machine or on several, and connects them.
"""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn


class ProcessGroup:
    """The processes of a run, and the rank of this process among them.

    Args:
        fabric: Connects the processes; None if there is only this one.
    """

    def __init__(self, fabric: Any = None) -> None:
        self.fabric = fabric
        self.rank: int = fabric.global_rank if fabric else 0
        self.size: int = fabric.world_size if fabric else 1

    def wait(self) -> None:
        """Wait until every process has called this."""
        if self.size > 1:
            self.fabric.barrier()

    def share(self, batch: Tensor) -> Tensor:
        """Select the examples of a batch that this process computes."""
        return batch[self.rank :: self.size] if self.size > 1 else batch

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the gradient of the whole batch."""
        if self.size > 1:
            _sum_over_processes([p.grad for p in parameters if p.grad is not None])

    def average_buffers(self, network: nn.Module) -> None:
        """Give every process the mean running statistics, such as those of batch norm.

        Otherwise the processes would validate different networks, and could stop at different epochs.
        """
        if self.size > 1:
            # Buffers that are not stored are constants, equal in all processes.
            stored = network.state_dict()
            statistics = [
                stored[name] for name, b in network.named_buffers() if name in stored and b.is_floating_point()
            ]
            _sum_over_processes(statistics)
            for value in statistics:
                value.div_(self.size)


def _sum_over_processes(tensors: list[Tensor]) -> None:
    """Replace every tensor by its sum over all processes, with a single message."""
    if not tensors:
        return
    total = torch.cat([t.flatten() for t in tensors])
    torch.distributed.all_reduce(total)
    for tensor, part in zip(tensors, total.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


_current = ProcessGroup()


def processes() -> ProcessGroup:
    """Return the processes that train together; this process alone outside of `launch_processes`."""
    return _current


@contextlib.contextmanager
def launch_processes(devices: int, nodes: int = 1) -> Iterator[ProcessGroup]:
    """Train with several processes inside the block.

    The processes are started here, unless torchrun or a cluster has started them already.

    Args:
        devices: Processes per machine, one for each of its devices.
        nodes: Machines.

    Yields:
        The processes.

    Raises:
        ValueError: If a number is below 1, or lightning-fabric is missing.
    """
    global _current
    if devices < 1 or nodes < 1:
        raise ValueError(f"{devices} devices on {nodes} machines: ask for at least one of each.")
    if devices * nodes == 1:
        yield _current
        return
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise ValueError("lightning-fabric is missing: pip install 'invariantnet[devices]'.") from None
    accelerator = "cuda" if torch.cuda.is_available() else "cpu"
    fabric = Fabric(accelerator=accelerator, devices=devices, num_nodes=nodes, strategy="ddp")
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    fabric.launch()
    before, _current = _current, ProcessGroup(fabric)
    try:
        yield _current
    finally:
        _current = before
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
