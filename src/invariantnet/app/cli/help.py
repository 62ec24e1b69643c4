"""Help that is wrapped where the terminal ends."""

import functools
from typing import Annotated, Any, get_args, get_origin

import docstring_parser
import tyro


def let_help_flow(commands: Any) -> None:
    """Hand tyro the docstring of every option as one paragraph.

    On its own, tyro breaks an indented docstring where the source does, and then wraps each of these lines again.
    It also shows None among the values of an option and as its default, where the docstring says what happens.

    Args:
        commands: Union of dataclasses, one per subcommand.
    """
    for command in get_args(commands):
        _let_options_flow(get_args(command)[0] if get_origin(command) is Annotated else command)


@functools.cache
def _let_options_flow(command: type) -> None:
    types = command.__annotations__
    for option in docstring_parser.parse_from_object(command).params:
        name = option.arg_name
        if name not in types or option.description is None:
            continue
        shown: dict[str, Any] = {"help": " ".join(option.description.split())}
        if vars(command).get(name, ...) is None:
            shown["help_behavior_hint"] = ""
            if not hasattr(types[name], "__metadata__"):  # else it has a word for its values
                shown["metavar"] = "|".join(kind.__name__.upper() for kind in get_args(types[name])[:-1])
        types[name] = Annotated[types[name], tyro.conf.arg(**shown)]
