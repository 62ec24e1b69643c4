r"""The paper's probabilistic input layer, $W = A^\top (V + I p_{q+1})$."""

import math
from collections.abc import Sequence
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.choices import Basis, Draw, Identity, require_choice
from invariantnet.nn.mixture import Mixture
from invariantnet.priors import Dirichlet, as_prior
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.reynolds import invariant_basis, product

MOST_SUMS = 2**27
"""Orbit sums of all inputs that are kept at once, 512 MB: those of MNIST with two groups take half."""
COLDEST = 1e-6
"""Lowest temperature of the Gumbel-Softmax: below, logits over it overflow single precision."""
ROUNDING = 1e-6
"""By how much the sum of given probabilities may differ from 1."""


class InvariantLinear(Mixture):
    r"""Linear layer with a learned distribution π over weight-sharing schemes.

    $$W = A^\top (V + I\,p_{q+1}), \qquad V = (p_1 V_1; \dots; p_q V_q) \in \mathbb{R}^{d \times D}$$

    The rows of $V_k$ span the weights that are invariant to group $k$, and $p_{q+1}$ stands for no symmetry.
    W is never formed: the sums $V_k x$ come first, then A. In training π is drawn by Gumbel-Softmax, in
    evaluation it is its estimate, the softmax of the logits.

    Args:
        groups: The candidates $G_1, \dots, G_q$.
        out_features: Number m of neurons.
        prior: Dirichlet on π, or its α; by default Jeffreys for q = 1 and Dir(2, …, 2) for more.
        temperature: Temperature of the Gumbel-Softmax; the paper uses 1.
        identity: `"paper"` is the printed $I \in \mathbb{R}^{d \times D}$: without symmetry, only the first d
            inputs are seen. `"full"` gives this branch every input and rows of A of its own, so that
            π = (0, …, 0, 1) is an MLP.
        basis: Rows of V of unit length, or 0/1 indicators of the orbits.
        draw: One draw of π per batch, or one per neuron.
        hard: Whether draws are one-hot in the forward pass (straight-through).
        prior_weight: Factor of log p(π | α) against the whole data set; 1 is the formula.
        scheme: A fixed π instead of a learned one; (1, 0) makes the layer of RotNet out of rotations.

    Raises:
        ValueError: If an argument is impossible.

    >>> from invariantnet import symmetry
    >>> layer = InvariantLinear([symmetry("rot90", shape=(28, 28))], 100)
    >>> layer(torch.rand(5, 784)).shape, layer.probabilities.tolist()
    (torch.Size([5, 100]), [0.5, 0.5])
    """

    def __init__(
        self,
        groups: Sequence[Group],
        out_features: int,
        *,
        prior: Dirichlet | float | Sequence[float] | None = None,
        temperature: float = 1.0,
        identity: Identity = "paper",
        basis: Basis = "orthonormal",
        draw: Draw = "batch",
        hard: bool = False,
        prior_weight: float = 1.0,
        scheme: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if not groups:
            raise ValueError("no groups to choose from: pass at least one.")
        if not temperature > 0:
            raise ValueError(f"temperature {temperature} is not positive: the paper uses 1.")
        if not COLDEST <= temperature < math.inf:
            raise ValueError(f"temperature {temperature} leaves single precision: the paper uses 1.")
        require_choice("identity", identity, get_args(Identity))
        require_choice("basis", basis, get_args(Basis))
        require_choice("draw", draw, get_args(Draw))
        schemes = len(groups) + 1
        self.names = (*(g.name for g in groups), "trivial")
        self.out_features = out_features
        self.prior = as_prior(prior, schemes)
        self.temperature, self.draw, self.hard, self.prior_weight = temperature, draw, hard, prior_weight
        self.sums = OrbitSums(groups, identity=identity, basis=basis)
        self.A = nn.Parameter(torch.empty(self.sums.rows, out_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        if scheme is None:
            self.logits = nn.Parameter(torch.zeros(schemes))
        else:
            if len(scheme) != schemes or min(scheme) < 0 or not abs(sum(scheme) - 1) <= ROUNDING:
                raise ValueError(f"scheme {tuple(scheme)} is no π: pass {schemes} probabilities that sum to 1.")
            self.register_buffer("logits", torch.tensor(scheme, dtype=torch.get_default_dtype()).log())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw A and the bias as `nn.Linear` does."""
        bound = 1 / math.sqrt(max(1, len(self.A)))
        nn.init.uniform_(self.A, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def draw_scheme(self) -> Float[Tensor, " schemes"] | Float[Tensor, "neurons schemes"]:
        """Draw π in training mode; return its estimate in evaluation mode."""
        if not (self.training and self.learns_pi):
            return F.softmax(self.logits, dim=-1)
        logits = self.logits if self.draw == "batch" else self.logits.expand(self.out_features, -1)
        return F.gumbel_softmax(logits, self.temperature, self.hard)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch neurons"]:
        """Compute `W x + b`."""
        return self.from_prepared(self.prepare(x))

    def can_prepare(self, numbers: int) -> bool:
        """Whether the orbit sums of all inputs fit into memory.

        Args:
            numbers: How many numbers all inputs have together.

        Returns:
            False if they take more than 512 MB.
        """
        return numbers // self.sums.dim * sum(self.sums.sizes) <= MOST_SUMS

    def prepare(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch sums"]:
        """Compute the orbit sums, which need to be computed only once per data set.

        Args:
            x: Inputs.

        Returns:
            The sums of each input.
        """
        return self.sums(x)

    def from_prepared(self, sums: Float[Tensor, "*batch sums"]) -> Float[Tensor, "*batch neurons"]:
        """Compute the outputs from the orbit sums.

        Args:
            sums: What `prepare` returns for the inputs.

        Returns:
            One row of outputs per input.
        """
        pi = self.draw_scheme()
        if pi.ndim == 1:
            mixed = self.sums.mix(sums, pi)
            return torch.addmm(self.bias, mixed, self.A) if mixed.ndim == 2 else mixed @ self.A + self.bias
        parts = sums.split(self.sums.sizes, dim=-1)
        rows = self.sums.rows_of_A(self.A)
        outputs = [part @ A * p for part, A, p in zip(parts, rows, pi.unbind(-1), strict=True)]
        return torch.stack(outputs).sum(0) + self.bias

    @torch.no_grad()
    def fold(self) -> nn.Linear:
        """Make the plain layer with the same outputs in evaluation mode."""
        linear = nn.Linear(self.sums.dim, self.out_features, device=self.A.device, dtype=self.A.dtype)
        identity = torch.eye(self.sums.dim, device=self.A.device, dtype=self.A.dtype)
        training = self.training
        linear.weight.copy_((self.eval()(identity) - self.bias).mT)
        linear.bias.copy_(self.bias)
        self.train(training)
        return linear

    def extra_repr(self) -> str:
        """Describe the layer for `print`."""
        return f"schemes={self.names}, out_features={self.out_features}, temperature={self.temperature}"


class OrbitSums(nn.Module):
    r"""$x \mapsto (V_1 x, \dots, V_q x, I x)$: the part of the paper's layer that has no parameters.

    Args:
        groups: The candidates.
        identity: What the branch without symmetry sees.
        basis: How long the rows of V are.

    Raises:
        ValueError: If the groups act on inputs of different lengths.
    """

    def __init__(self, groups: Sequence[Group], *, identity: Identity, basis: Basis) -> None:
        super().__init__()
        self.dim = groups[0].dim
        self.identity = identity
        if any(g.dim != self.dim for g in groups):
            lengths = sorted({g.dim for g in groups})
            raise ValueError(f"groups on inputs of different lengths {lengths}: make all for the same shape.")
        bases = [invariant_basis(g, orthonormal=basis == "orthonormal") for g in groups]
        for k, V in enumerate(bases):
            self.register_buffer(f"V{k}", V, persistent=False)
        self.ranks = [len(V) for V in bases]
        d = sum(self.ranks)
        self.seen = min(d, self.dim) if identity == "paper" else self.dim
        self.sizes = [*self.ranks, self.seen]
        self.rows = d if identity == "paper" else d + self.dim
        # One-hot: the scheme of each sum. Products with it, and their gradients, cost less than indexing.
        member = torch.eye(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes), dim=0)
        self.register_buffer("member", member, persistent=False)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch sums"]:
        """Compute all sums, followed by the inputs that the branch without symmetry sees."""
        if x.shape[-1] != self.dim:
            raise ValueError(
                f"the groups act on {self.dim} inputs, x has {x.shape[-1]} in its last axis: flatten the inputs."
            )
        flat = x.reshape(-1, self.dim)
        sums = [product(self.get_buffer(f"V{k}"), flat.mT).mT for k in range(len(self.ranks))]
        return torch.cat([*sums, flat[:, : self.seen]], dim=-1).reshape(*x.shape[:-1], sum(self.sizes))

    def mix(
        self, sums: Float[Tensor, "*batch sums"], pi: Float[Tensor, " schemes"]
    ) -> Float[Tensor, "*batch rows"]:
        """Compute `(V + I p) x`, or with the full identity `V x` and `I p x` side by side.

        Args:
            sums: The sums of each input.
            pi: Probability of each scheme.

        Returns:
            The numbers that A multiplies.
        """
        if self.identity == "full":
            return sums * self.factors(pi)
        invariant, inputs = sums[..., : self.rows], sums[..., self.rows :]
        if len(pi) == 2:
            return torch.lerp(inputs, invariant, pi[0])  # the two probabilities sum to 1
        inputs = F.pad(inputs, (0, self.rows - self.seen)) if self.seen < self.rows else inputs
        return torch.addcmul(inputs * pi[-1], invariant, self.factors(pi)[: self.rows])

    def factors(self, pi: Float[Tensor, " schemes"]) -> Float[Tensor, " sums"]:
        """Expand π to the probability that multiplies each sum."""
        return self.get_buffer("member").to(pi) @ pi

    def rows_of_A(self, A: Float[Tensor, "rows neurons"]) -> list[Tensor]:  # noqa: N802
        """Split A into the rows for each scheme; in the printed layer, no symmetry shares those of the groups."""
        rows = list(A[: sum(self.ranks)].split(self.ranks))
        last = A[: self.seen] if self.identity == "paper" else A[sum(self.ranks) :]
        return [*rows, last]
