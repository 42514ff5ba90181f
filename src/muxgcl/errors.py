"""The one exception for a mistake that a user can mend."""


class UserError(ValueError):
    """What was expected and what came, in one line; the command line prints it and exits with 2."""
