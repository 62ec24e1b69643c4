"""What the kinds of networks are, for readers new to neural networks."""

from invariantnet._system.words import with_article

_WORDS = {
    "linear": "a linear function of the inputs",
    "plain mlp": "one hidden layer",
    "decayed mlp": "one hidden layer whose weights are kept small, which suits few or noisy examples",
    "deep mlp": "two hidden layers",
    "averaging mlp": "two hidden layers, averaged over the copies of an input, which suits sums and counts",
    "plain cnn": "convolutions that keep the places of what they find",
    "pooled cnn": "convolutions that average over all places, as textures need",
    "set network": "one function of every entry, pooled over the entries",
    "circular cnn": "convolutions that go on at the opposite edge",
    "sorted plain mlp": "one hidden layer, on sorted entries",
    "sorted decayed mlp": "one hidden layer whose weights are kept small, on sorted entries",
    "sorted deep mlp": "two hidden layers, on sorted entries",
    "linear head": "a linear function of the features of the pretrained body",
    "decayed linear head": "a linear function of these features whose weights are kept small",
    "hidden head": "one hidden layer on these features",
    "own": "the backbone that was passed",
}
"""What each kind is, by its name."""
_SHARED = " in shared units"
"""What the names of networks end in that compete in other units too."""


def network_words(name: str) -> str:
    """Say what a kind of network is.

    Args:
        name: Name of a model.

    Returns:
        The words.

    Example:
        >>> network_words("deep mlp in shared units")
        'two hidden layers, with all columns in the units that every candidate allows'
    """
    plain = name.removesuffix(_SHARED)
    return _WORDS[plain] + (", with all columns in the units that every candidate allows" if plain != name else "")


def one_network(name: str) -> str:
    """Name one network of a kind.

    Args:
        name: Name of a model.

    Returns:
        The name with an article, as it stands in a sentence.

    Example:
        >>> one_network("plain cnn"), one_network("linear in shared units")
        ('a plain cnn', 'a linear function in shared units')
    """
    plain = name.removesuffix(_SHARED)
    return with_article(name.replace(plain, "linear function") if plain == "linear" else name)
