"""The one exception for a mistake that a user can mend; what any exception says, in one line."""


class UserError(ValueError):
    """What was expected and what came, in one line; the command line prints it and exits with 2."""


def reason_of(error: BaseException) -> str:
    """What an exception says, in one line; its type where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
