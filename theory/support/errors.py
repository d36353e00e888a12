"""The one error that bad input raises, in every package of the project."""


class InputError(ValueError):
    """Input that cannot be used. The message says what was wrong and what to do about it.

    The command line prints the message alone and exits with status 2; library users catch it as
    a `ValueError`.
    """


class RequirementError(RuntimeError):
    """A result that the project promises did not come out: the message gives the numbers.

    Or an extra that is needed is not installed: the message names it.

    The command line prints the message and exits with status 1.
    """
